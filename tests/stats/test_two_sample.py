"""Two-sample tests."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from naive import mmd_u
from scipy.signal import lfilter
from scipy.stats import binom, chi2, norm

from mercer.core.arrays import as_points
from mercer.core.errors import InputError, MemoryBudgetError
from mercer.kernels import Gaussian, Laplace, Linear, Spectrum
from mercer.stats import two_sample, two_sample_test
from mercer.stats.combining import normal_scores
from mercer.stats.exchanges import exchanged_sums
from mercer.stats.pair_sums import pair_sums
from mercer.stats.resampling import labels, signs
from mercer.stats.two_sample import flip_probability, near_means, unbiased

RNG = np.random.default_rng(0)


def statistics(kernels, Z, A, dtype=None):
    shift = near_means(A)
    return unbiased(pair_sums(kernels, as_points(Z), A - shift, dtype=dtype), A, shift)


def test_all_permutations_in_one_product_are_those_by_index():
    Z = RNG.normal(size=(23, 2))
    kernels = [Gaussian(0.5), Laplace(2.0, "l1"), Gaussian((1.0, 3.0)) + 1.0, Linear()]
    A = labels(23, 9, 20, 0)
    found = statistics(kernels, Z, A)
    for row, kernel in zip(found, kernels, strict=True):
        expected = [mmd_u(kernel(Z), a > 0) for a in A.numpy().T]
        assert row.numpy() == pytest.approx(expected, rel=1e-9, abs=1e-11)


def test_the_sums_do_not_depend_on_how_they_are_cut():
    Z, V = as_points(RNG.normal(size=(120, 2))), torch.randn(120, 5, generator=torch.Generator().manual_seed(0))
    whole = pair_sums([Gaussian(1.0), Laplace(1.0)], Z, V)
    cut = pair_sums([Gaussian(1.0), Laplace(1.0)], Z, V, memory_budget=130_000)
    for name in ("rows", "squares", "diagonal", "forms"):
        torch.testing.assert_close(getattr(cut, name), getattr(whole, name))
    with pytest.raises(MemoryBudgetError, match="sums over the pairs"):
        pair_sums([Gaussian(1.0)], Z, V, memory_budget=1000)


def test_exchanges_of_pairs_are_permutations_by_index():
    Z, n = RNG.normal(size=(42, 2)), 21
    kernels = [Gaussian(0.5), Laplace(2.0, "l1"), Gaussian((1.0, 3.0)) + 1.0, Linear()]
    S = torch.cat([torch.ones(n, 1), signs(n, 5, 0)], 1)
    sums = exchanged_sums(kernels, as_points(Z), S)
    for row, kernel in zip(sums.unbiased, kernels, strict=True):
        expected = [mmd_u(kernel(Z), np.r_[s > 0, s < 0]) for s in S.numpy().T]
        assert row.numpy() == pytest.approx(expected, rel=1e-9, abs=1e-11)
    cut = exchanged_sums(kernels, as_points(Z), S, memory_budget=110_000)
    for name in ("forms", "totals", "squares", "within"):
        torch.testing.assert_close(getattr(cut, name), getattr(sums, name))
    with pytest.raises(MemoryBudgetError, match="sums over the pairs"):
        exchanged_sums(kernels, as_points(Z), S, memory_budget=1000)


@pytest.mark.parametrize("combine", ["fused", "min_p", "agg"])
def test_exchanges_of_pairs_keep_the_level_with_sorted_rows_and_ties(combine, monkeypatch):
    """At most what chance allows of 200 tests of level 0.1; rows that are sorted are paired at random."""
    monkeypatch.setattr(two_sample, "EXACT_ROWS", 10)
    pvalues = []
    for i in range(200):
        rng = np.random.default_rng(i)
        X, Y = (np.sort(rng.poisson(3.0, (8, 1)), axis=0) for _ in range(2))
        pvalues.append(two_sample_test(X, Y, combine=combine, n_resamples=59, random_state=i).pvalue)
    assert np.sum(np.array(pvalues) <= 0.1) <= binom.ppf(0.999, 200, 0.1)
    assert np.mean(pvalues) < 0.75


def test_samples_of_equally_many_rows_give_the_same_statistic_and_answer_as_others(monkeypatch):
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(300, 2)), rng.normal(size=(300, 2)) + np.array([0.12, 0.0])
    paired = two_sample_test(X, Y, "median", n_resamples=999)
    monkeypatch.setattr(two_sample, "EXACT_ROWS", 1000)
    permuted = two_sample_test(X, Y, "median", n_resamples=999)
    assert paired.statistic == pytest.approx(permuted.statistic, rel=1e-4)
    assert np.std(paired.null_distribution) == pytest.approx(np.std(permuted.null_distribution), rel=0.15)
    assert abs(paired.pvalue - permuted.pvalue) < 0.06


@pytest.mark.parametrize("factor", [1.0, 20.0])
def test_float32_sums_of_exchanges_stay_within_a_thousandth_of_the_spread_of_the_null(factor, monkeypatch):
    Z = RNG.normal(size=(1200, 3))
    kernel, S = [Gaussian(factor * 2.3)], torch.cat([torch.ones(600, 1), signs(600, 60, 0)], 1)
    single = exchanged_sums(kernel, as_points(Z.astype(np.float32)), S)
    monkeypatch.setattr("mercer.stats.pair_sums.EXACT_ROWS", 2000)
    exact = exchanged_sums(kernel, as_points(Z), S)
    assert (single.dtype, exact.dtype) == (torch.float32, torch.float64)
    assert float((single.unbiased - exact.unbiased).abs().max()) < 0.001 * float(exact.unbiased.std())


@pytest.mark.parametrize("factor", [1.0, 20.0])
def test_float32_products_stay_within_a_hundredth_of_the_spread_of_the_null(factor):
    Z = RNG.normal(size=(1200, 3))
    kernel = Gaussian(factor * 2.3)
    A = labels(1200, 600, 60, 0)
    exact = statistics([kernel], Z, A, torch.float64)
    single = statistics([kernel], Z.astype(np.float32), A, torch.float32)
    assert float((single - exact).abs().max()) < 0.01 * float(exact.std())


def test_where_there_are_few_ways_to_permute_all_are_taken():
    X, Y = [[0.0], [1.0], [2.0]], [[5.0], [6.0]]
    result = two_sample_test(X, Y, Gaussian(1.0))
    Z = np.array([*X, *Y])
    every = [mmd_u(Gaussian(1.0)(Z), np.isin(range(5), c)) for c in itertools.combinations(range(5), 3)]
    assert len(result.null_distribution) == 9
    assert result.complete
    assert "+-" not in result.summary
    assert result.pvalue == pytest.approx(np.mean([t >= every[0] - 1e-12 for t in every]))


@pytest.mark.parametrize("combine", ["fused", "min_p", "agg"])
def test_samples_that_are_the_same_or_constant_have_the_p_value_one(combine):
    same = RNG.normal(size=(30, 2))
    assert two_sample_test(same, same, combine=combine, n_resamples=199).pvalue > 0.9
    assert two_sample_test(np.ones((20, 2)), np.ones((30, 2)), combine=combine, n_resamples=199).pvalue == 1.0
    assert two_sample_test(np.ones((800, 2)), np.ones((900, 2)), combine=combine, n_resamples=49).pvalue == 1.0


@pytest.mark.parametrize("combine", ["fused", "min_p", "agg"])
def test_the_level_holds_at_small_n_with_ties(combine):
    """At most what chance allows of 100 tests of level 0.1 on counts, where many statistics are equal."""
    pvalues = []
    for i in range(100):
        rng = np.random.default_rng(i)
        pvalues.append(
            two_sample_test(
                rng.poisson(1.0, (7, 1)), rng.poisson(1.0, (5, 1)), combine=combine, n_resamples=59, random_state=i
            ).pvalue
        )
    assert np.sum(np.array(pvalues) <= 0.1) <= binom.ppf(0.999, 100, 0.1)


def test_a_difference_is_found_and_named():
    X = pd.DataFrame(RNG.normal(size=(150, 3)), columns=["age", "bmi", "bp"])
    Y = pd.DataFrame(RNG.normal(size=(130, 3)), columns=["age", "bmi", "bp"])
    Y["bmi"] += 1.0
    result = two_sample_test(X, Y, n_resamples=300)
    statistic, pvalue = result
    assert pvalue == result.pvalue == 1 / 301
    assert statistic == result.statistic
    assert "most in bmi" in result.summary
    assert [c.name for c in result.columns() if c.pvalue < 0.05] == ["bmi"]
    rows_x, rows_y = result.rows(10)
    assert X["bmi"].iloc[rows_x].mean() < -0.3
    assert Y["bmi"].iloc[rows_y].mean() > 1.3
    assert result.witness(X).mean() > 0 > result.witness(Y).mean()
    assert sum(f.weight for f in result.per_kernel) == pytest.approx(1.0)


@pytest.mark.parametrize("squares", [1, 2, 5, 30])
def test_sums_of_squares_have_normal_scores(squares):
    shares = (np.arange(20_000) + 0.5) / 20_000
    scores = normal_scores(torch.from_numpy(chi2.ppf(shares, squares)).unsqueeze(0))[0].numpy()
    middle_to_far = (shares > 0.5) & (shares < 0.999)
    assert np.abs(scores - norm.ppf(shares))[middle_to_far].max() < 0.1
    assert (np.diff(scores) > 0).all()


def test_a_shift_of_the_mean_is_found_as_often_as_by_one_wide_kernel():
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X, Y = rng.normal(size=(60, 1)), rng.normal(size=(60, 1)) + 0.5
        found.append([two_sample_test(X, Y, k, n_resamples=199).pvalue <= 0.05 for k in (None, "median")])
    default, one = np.mean(found, axis=0)
    assert default >= one - 0.1  # 0.4 of 0.67 where kernels are compared in units of their size


def test_columns_that_go_together_in_another_way_are_said_to():
    rng = np.random.default_rng(0)  # one draw in twenty has a column that differs by itself, too
    z = rng.normal(size=300)
    other = np.c_[z, 0.95 * z + 0.31 * rng.normal(size=300)]
    result = two_sample_test(rng.normal(size=(300, 2)), other, n_resamples=200)
    assert result.pvalue < 0.01
    assert "though no single column differs clearly (closest: column" in result.summary


def test_units_of_columns_do_not_matter_by_default():
    X, Y = RNG.normal(size=(40, 2)), RNG.normal(size=(40, 2)) * [1.0, 1.5]
    unit = [1e-3, 1e4]
    a, b = two_sample_test(X, Y, n_resamples=99), two_sample_test(X * unit, Y * unit, n_resamples=99)
    assert a.null_distribution == pytest.approx(b.null_distribution, rel=1e-6, abs=1e-9)


def test_ready_gram_matrices_and_strings_are_samples_too():
    Z = RNG.normal(size=(30, 1))
    K = Gaussian(1.0)(Z)
    ready = two_sample_test(K[:12], K[12:], "precomputed", n_resamples=99)
    rows = two_sample_test(Z[:12], Z[12:], Gaussian(1.0), n_resamples=99)
    assert ready.null_distribution == pytest.approx(rows.null_distribution)
    assert ready.rows(3)[0].tolist() == rows.rows(3)[0].tolist()
    words = ["aab", "aba", "aabb", "baab", "abab"] * 4, ["xyx", "yyx", "xxy", "xyxy", "yxy"] * 4
    assert two_sample_test(*words, n_resamples=99).pvalue == 0.01
    assert two_sample_test(*words, Spectrum(2), n_resamples=99).pvalue == 0.01


def test_groups_change_sides_as_a_whole():
    """Rows of a patient are alike: row by row that looks like a difference, by patients it does not."""
    rng = np.random.default_rng(1)
    patients = np.repeat(np.arange(20), 15)
    values = rng.normal(size=20)[patients][:, None] + 0.1 * rng.normal(size=(300, 1))
    X, Y = values[:150], values[150:]
    by_rows = two_sample_test(X, Y, n_resamples=200)
    by_groups = two_sample_test(X, Y, groups=(patients[:150], patients[150:]), n_resamples=200)
    assert by_rows.pvalue < 0.01 < by_groups.pvalue
    with pytest.raises(InputError, match="occurs in both X and Y"):
        two_sample_test(X, Y, groups=patients % 3)


def test_the_length_of_a_block_may_be_any_whole_number():
    X, Y = RNG.normal(size=(2, 12, 1))
    a, b = (two_sample_test(X, Y, order=length, n_resamples=20) for length in (3, np.int64(3)))
    assert a.method == b.method
    assert (a.null_distribution == b.null_distribution).all()


def test_series_are_exchanged_in_blocks():
    def walk(seed):
        rng, x = np.random.default_rng(seed), np.zeros(400)
        for t in range(1, 400):
            x[t] = 0.9 * x[t - 1] + rng.normal()
        return x[:, None]

    rejected = dict.fromkeys(("rows", "blocks", "wild"), 0)
    for i in range(12):
        X, Y = walk(2 * i), walk(2 * i + 1)
        settings = {"rows": {}, "blocks": {"order": True}, "wild": {"order": True, "null": "wild"}}
        for how, options in settings.items():
            rejected[how] += two_sample_test(X, Y, "median", n_resamples=199, **options).pvalue <= 0.05
    assert rejected["rows"] > 5
    assert rejected["blocks"] <= 3
    assert rejected["wild"] <= 3


@pytest.mark.parametrize("rho", [0.3, 0.5, 0.9])
def test_signs_keep_most_of_the_variance_of_means_of_a_chain(rho):
    noise = np.random.default_rng(0).normal(size=20_000)
    flip = flip_probability(torch.from_numpy(lfilter([1.0], [1.0, -rho], noise)).unsqueeze(1))
    kept = rho * (1 - 2 * flip)  # the correlation of neighbours times their signs, whose mean product it is
    assert (1 + kept) / (1 - kept) > 0.85 * (1 + rho) / (1 - rho)


def test_signs_of_a_markov_chain_change_as_often_as_asked():
    W = signs(2000, 20, 0, flip=0.1)
    assert float((W[1:] != W[:-1]).float().mean()) == pytest.approx(0.1, abs=0.01)
    assert float(W.mean()) == pytest.approx(0.0, abs=0.1)


@pytest.mark.parametrize(
    "options",
    [
        {"null": "gamma"},
        {"estimator": "cross"},
        {"estimator": "block"},
        {"estimator": "linear"},
        {"estimator": "incomplete"},
    ],
    ids=str,
)
def test_formulas_for_the_null_hold_their_level_and_find_a_shift(options):
    found = []
    for i in range(60):
        rng = np.random.default_rng(i)
        X, Y = rng.normal(size=(200, 2)), rng.normal(size=(200, 2))
        found.append(two_sample_test(X, Y, Gaussian(1.5), random_state=i, **options).pvalue)
    assert np.sum(np.array(found) <= 0.05) <= binom.ppf(0.9995, 60, 0.05)
    assert 0.3 < np.mean(found) < 0.7
    assert two_sample_test(X, Y + 1.5, Gaussian(1.5), **options).pvalue < 0.01


def test_the_same_seed_gives_the_same_test_and_the_global_generators_stay():
    X, Y = RNG.normal(size=(30, 2)), RNG.normal(size=(30, 2))
    before = torch.get_rng_state()
    a, b = (two_sample_test(X, Y, n_resamples=50, random_state=3) for _ in range(2))
    assert (a.null_distribution == b.null_distribution).all()
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("X", "Y", "options", "match"),
    [
        ([[0.0]], [[0.0], [1.0]], {}, "at least two rows"),
        ([[0.0], [np.inf]], [[0.0], [1.0]], {}, "X contains infinity"),
        ([[0.0], [1.0]], [[0.0], [1.0]], {"combine": "best"}, "combine='best'"),
        ([[0.0], [1.0]], [[0.0], [1.0]], {"n_resamples": 0}, "n_resamples=0"),
        ([[0.0], [1.0]], [[0.0], [1.0]], {"null": "gamma"}, "needs one kernel"),
        ([[0.0], [1.0]], [[0.0], [1.0]], {"kernel": []}, "empty list"),
        ([[0.0], [1.0], [2.0]], [[0.0], [1.0]], {"null": "wild"}, "equally many"),
        ([[0.0], [1.0]], [[0.0], [1.0]], {"order": 0}, "order=0"),
        ([[0.0], [1.0]], [[0.0], [1.0]], {"order": 2, "null": "wild"}, "null='wild' takes True"),
        ([[0.0], [1.0]], [[0.0], [1.0]], {"groups": [0, 0, 1, 1], "null": "wild"}, "no account of groups"),
        ([[0.0], [1.0]], [[0.0], [1.0]], {"order": True, "null": "gamma", "kernel": "median"}, "no account of order"),
        ([[0.0], [1.0]], [[0.0], [1.0]], {"order": 1, "estimator": "cross", "kernel": "median"}, "no account of order"),
        ([[0.0], [1.0]], [[0.0], [1.0]], {"null": "gamma", "estimator": "cross"}, "of its own"),
    ],
)
def test_wrong_arguments_are_clear_errors(X, Y, options, match):
    with pytest.raises(InputError, match=match):
        two_sample_test(X, Y, **options)


def test_pictures_are_drawn():
    X, Y = RNG.normal(size=(50, 1)), RNG.normal(size=(50, 1)) + 1
    result = two_sample_test(X, Y, n_resamples=50)
    assert result.plot().get_xlabel() == "Statistic"
    assert result.plot_differences().get_ylabel() == "Density"
    wide = two_sample_test(np.c_[X, X], np.c_[X, Y], n_resamples=50)
    assert "Kolmogorov" in wide.plot_differences().get_xlabel()


@pytest.mark.parametrize("options", [{"null": "gamma"}, {"estimator": "cross"}, {"estimator": "features"}], ids=str)
def test_a_null_distribution_that_is_a_formula_gives_the_p_value_and_the_picture(options):
    X, Y = np.random.default_rng(0).normal(size=(2, 60, 2))
    result = two_sample_test(X, Y, "median", **options)
    assert result.pvalue == pytest.approx(result.approximation.sf(result.statistic))
    ax = result.plot()
    assert ax.get_ylabel() == "Density"
    assert len(ax.collections) == 1
