"""One law over all functions: samples at the edge have a finite answer, or an error of ours that says why not."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone

from mercer.core.errors import InputError, InputTypeError, MercerError
from mercer.data.rows import ArrayRows
from mercer.stats import (
    DriftDetector,
    KernelHerding,
    KernelThinning,
    MeanEmbedding,
    SteinThinning,
    change_points,
    characteristic_function,
    conditional_independence_test,
    control_functional,
    goodness_of_fit_test,
    hsic,
    independence_test,
    kolmogorov,
    ksd,
    mmd,
    total_variation,
    two_sample_test,
    wasserstein,
)

RNG = np.random.default_rng(0)
FEW = {"n_resamples": 19}


def score(x):
    return -x


TWO = {  # functions of two samples: a number that is 0 for equal ones, or a p-value
    "mmd": mmd,
    "mmd linear": lambda X, Y: mmd(X, Y, estimator="linear"),
    "mmd block": lambda X, Y: mmd(X, Y, estimator="block"),
    "mmd incomplete": lambda X, Y: mmd(X, Y, estimator="incomplete"),
    "mmd cross": lambda X, Y: mmd(X, Y, estimator="cross"),
    "mmd features": lambda X, Y: mmd(X, Y, estimator="features", random_state=0),
    "mmd unbiased": lambda X, Y: mmd(X, Y, estimator="u"),
    "hsic": hsic,
    "wasserstein": wasserstein,
    "two_sample_test": lambda X, Y: two_sample_test(X, Y, **FEW).pvalue,
    "two_sample_test agg": lambda X, Y: two_sample_test(X, Y, combine="agg", **FEW).pvalue,
    "two_sample_test gamma": lambda X, Y: two_sample_test(X, Y, "median", null="gamma").pvalue,
    "two_sample_test wild": lambda X, Y: two_sample_test(X, Y, null="wild", **FEW).pvalue,
    "two_sample_test features": lambda X, Y: two_sample_test(X, Y, "median", estimator="features").pvalue,
    "independence_test": lambda X, Y: independence_test(X, Y, **FEW).pvalue,
    "independence_test gamma": lambda X, Y: independence_test(X, Y, "median", "median", null="gamma").pvalue,
    "conditional": lambda X, Y: conditional_independence_test(X, Y, X, **FEW).pvalue,
    "drift": lambda X, Y: DriftDetector(level=0.2, **FEW).fit(X).test(Y).pvalue,
    "drift online": lambda X, Y: DriftDetector(expected_run_length=50).fit(X).update(Y).statistic,
    "embedding": lambda X, Y: MeanEmbedding().fit(X)(Y).sum(),
}
COLUMN = {"kolmogorov": kolmogorov, "total_variation": total_variation}
ONE = {  # functions of one sample
    "ksd": lambda X: ksd(X, score),
    "goodness_of_fit_test": lambda X: goodness_of_fit_test(X, score, **FEW).pvalue,
    "goodness_of_fit_test sampler": lambda X: (
        goodness_of_fit_test(X, sampler=lambda n, rng: rng.normal(size=(n, np.shape(X)[1])), **FEW).pvalue
    ),
    "SteinThinning": lambda X: SteinThinning(1).fit(X, score).discrepancy_,
    "KernelThinning": lambda X: KernelThinning(1, random_state=0).fit(X).discrepancy_,
    "KernelHerding": lambda X: KernelHerding(1).fit(X).discrepancy_,
    "control_functional": lambda X: control_functional(np.ones(len(X)), X, score).mean,
    "change_points": lambda X: len(change_points(X, min_size=1, n_resamples=39).points),
    "characteristic_function": lambda X: abs(characteristic_function(X, np.zeros((1, np.shape(X)[1])))[0]),
    "MeanEmbedding": lambda X: MeanEmbedding().fit(X).norm(),
}
SAMPLES = {
    "one row": np.array([[0.5, 1.0]]),
    "two rows": np.array([[0.5, 1.0], [0.0, -1.0]]),
    "two equal rows": np.ones((2, 2)),
    "constant": np.ones((30, 2)),
    "ties": RNG.integers(0, 2, size=(30, 2)).astype(float),
    "huge": 1e150 * RNG.normal(size=(12, 2)),
    "tiny": 1e-150 * RNG.normal(size=(12, 2)),
}


def answer(work):
    """A finite number, or the message of an error of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            return float(work())
        except MercerError as error:
            return str(error)


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("name", [*TWO, *COLUMN, *ONE])
def test_there_is_a_finite_answer_or_an_error_of_ours(name, sample):
    X = SAMPLES[sample]
    if name in ONE:
        found = answer(lambda: ONE[name](X))
    else:
        found = answer(lambda: TWO[name](X, X[::-1].copy()) if name in TWO else COLUMN[name](X[:, :1], X[:, :1]))
    assert len(found) > 20 if isinstance(found, str) else np.isfinite(found)
    if not isinstance(found, str) and ("test" in name or name in ("drift", "conditional")):
        assert 0 < found <= 1


@pytest.mark.parametrize("name", [*TWO, *COLUMN])
def test_nothing_is_found_between_equal_samples(name):
    if name.startswith(("independence", "hsic", "conditional", "drift online", "embedding")):
        pytest.skip("its answer is about pairs")
    X = RNG.normal(size=(40, 1))
    found = TWO[name](X, X.copy()) if name in TWO else COLUMN[name](X, X)
    if "test" in name or name == "drift":
        assert found > 0.2
    else:
        assert found < 0.5
        assert found == pytest.approx(0.0, abs=1e-7) or name.split()[-1] in ("cross", "linear", "block", "incomplete")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", [*TWO, *COLUMN, *ONE])
def test_what_is_not_finite_is_named(name, bad):
    X, good = RNG.normal(size=(12, 1)), RNG.normal(size=(12, 1))
    X[7, 0] = bad
    with pytest.raises(MercerError, match="NaN|infinity"):
        ONE[name](X) if name in ONE else (TWO | COLUMN)[name](X, good)


@pytest.mark.parametrize("name", TWO)
def test_other_columns_are_refused(name):
    if name.startswith(("independence", "hsic", "conditional")):
        pytest.skip("each side has its own columns")
    with pytest.raises(MercerError, match="columns"):
        TWO[name](RNG.normal(size=(12, 2)), RNG.normal(size=(12, 3)))


@pytest.mark.parametrize("name", ["ksd", "fit", "thinning", "control"])
def test_scores_that_are_not_finite_are_refused(name):
    X, bad = RNG.normal(size=(12, 2)), np.zeros((12, 2))
    bad[3, 1] = -np.inf
    use = {
        "ksd": lambda: ksd(X, bad),
        "fit": lambda: goodness_of_fit_test(X, bad),
        "thinning": lambda: SteinThinning(2).fit(X, bad),
        "control": lambda: control_functional(np.ones(12), X, bad),
    }
    with pytest.raises(MercerError, match="infinity.*row 3, column 1"):
        use[name]()


def gram_of(n):
    return np.exp(-np.square(np.arange(n)[:, None] - np.arange(n)))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: two_sample_test(np.ones((3, 2)), np.ones((4, 2)), "precomputed"), "7 rows and 2 columns"),
        (lambda: two_sample_test(gram_of(5)[:2], gram_of(5)[2:4], "precomputed"), "4 rows and 5 columns"),
        (lambda: mmd(gram_of(5)[:2], 2 * gram_of(5)[2:], "precomputed"), "not symmetric"),
        (lambda: two_sample_test(["ab", "c"], ["d", "ee"], n_resamples=9).plot_differences(), "Only tables have"),
        (lambda: two_sample_test(np.ones((3, 2)) * 1e200, np.eye(2) * 1e200), "X has values as large"),
        (lambda: MeanEmbedding.of(norm(0, 1)), "give a kernel such as"),
        (lambda: ksd(np.ones((3, 1)), log_prob=norm(0, 1).logpdf), "written with numpy"),
        (lambda: goodness_of_fit_test(np.ones((3, 2)), sampler=lambda n: np.ones((n, 2))), r"sampler\(n, rng\)"),
        (lambda: goodness_of_fit_test(np.ones((3, 2)), sampler=lambda n, r: np.ones((n, 3))), "sampler draws 3"),
        (lambda: two_sample_test(npy_source(), npy_source()), "read in parts: give estimator='features'"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_a_clear_error(call, match):
    with pytest.raises((InputError, InputTypeError), match=match):
        call()


def npy_source():
    return ArrayRows(np.ones((5, 2)))


def test_an_error_inside_a_sampler_is_shown_as_it_is():
    with pytest.raises(TypeError, match="unsupported operand"):
        goodness_of_fit_test(np.ones((3, 1)), sampler=lambda n, rng: n + "a")


def test_a_sampler_of_one_column_may_draw_a_vector():
    x = np.random.default_rng(0).normal(size=(30, 1))
    assert goodness_of_fit_test(x, sampler=lambda n, rng: rng.normal(size=n), n_resamples=99).pvalue > 0.01


def test_a_target_that_is_not_reached_is_said():
    with pytest.warns(UserWarning, match="not target=1e-09"):
        KernelHerding(target=1e-9).fit(np.random.default_rng(0).normal(size=(20, 1)))


def test_thinning_prints_and_clones_like_an_estimator():
    assert repr(clone(KernelHerding(3))) == "KernelHerding(m=3)"


def test_hsic_and_change_points_take_categories():
    table = pd.DataFrame({"a": ["x", "y"] * 20 + ["x", "x"] * 20, "b": np.random.default_rng(0).normal(size=80)})
    assert hsic(table, table) > 10 * hsic(table, table.sample(frac=1.0, random_state=0))
    assert len(change_points(table[["a"]], random_state=0).points) == 1


DISTANCES = {
    "mmd": mmd,
    "mmd in blocks": lambda X, Y: mmd(X, Y, block_size=5),
    "two samples": lambda X, Y: two_sample_test(X, Y, random_state=0, **FEW).statistic,
    "independence": lambda X, Y: independence_test(X, Y, random_state=0, **FEW).statistic,
    "hsic": hsic,
    "ksd": lambda X, Y: ksd(X, score=score),
    "herding": lambda X, Y: KernelHerding(m=3).fit(X).discrepancy_,
}


@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.parametrize(("dtype", "powers"), [(np.float64, (-300, -170, 170, 300)), (np.float32, (-30, 30))])
def test_samples_whose_squared_distances_are_no_numbers_are_refused(name, dtype, powers):
    X, Y = (RNG.normal(size=(20, 2)) for _ in range(2))
    for power in powers:
        scaled = ((10.0**power * sample).astype(dtype) for sample in (X, Y))
        with pytest.raises(InputError, match="squares (overflow|vanish)"):
            DISTANCES[name](*scaled)


def test_thinning_gives_rows_of_a_list_and_reads_flags():
    X = RNG.normal(size=(20, 2))
    found = KernelHerding(m=3).fit(X)
    assert found.transform(X.tolist()) == found.transform(X).tolist()
    with pytest.raises(InputTypeError, match="standardize"):
        SteinThinning(m=3, standardize=np.ones(2)).fit(X, score)
