"""Tests of independence."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import binom, kstest

from mercer.core.arrays import as_points
from mercer.core.errors import InputError, MemoryBudgetError
from mercer.kernels import Gaussian, Laplace, Linear, Spectrum
from mercer.stats import hsic, independence_test
from mercer.stats.centred_grams import CentredGram, centred_gram, permutation_moments, permuted_sums
from mercer.stats.orders import consecutive_blocks, orders, row_blocks

RNG = np.random.default_rng(0)


def sums_by_gathering(K, L, every):
    H = np.eye(len(K)) - 1 / len(K)
    K, L = H @ K @ H, H @ L @ H
    return [np.sum(K * L[np.ix_(order, order)]) for order in every]


def test_factors_and_gathering_give_the_sums_of_the_definition():
    X, Y = RNG.normal(size=(80, 2)), RNG.normal(size=(80, 1))
    kernels_x, kernels_y = [Gaussian(3.0), Laplace(1.0)], [Laplace(0.3), Gaussian(4.0), Linear()]
    x, y = ([centred_gram(k, as_points(Z)) for k in ks] for Z, ks in ((X, kernels_x), (Y, kernels_y)))
    assert [g.factor is None for g in x + y] == [False, True, True, False, False]
    every = torch.cat(list(orders(80, 12, 0)))
    found = permuted_sums(x, y, iter(every.split(5)), torch.float64)
    expected = [sums_by_gathering(k(X), l(Y), every.numpy()) for k in kernels_x for l in kernels_y]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n", [4, 6])
def test_the_mean_and_the_variance_over_all_orders_have_a_closed_form(n):
    x, y = (CentredGram(matrix=centred_gram(Laplace(0.5), as_points(RNG.normal(size=(n, 2)))).whole) for _ in "xy")
    every = torch.tensor(list(itertools.permutations(range(n))))
    sums = permuted_sums([x], [y], iter([every]), torch.float64)
    assert permutation_moments(x, y) == pytest.approx((float(sums.mean()), float(sums.var(unbiased=False))))


def test_with_one_pair_of_kernels_the_statistic_is_hsic_and_few_orders_are_all_taken():
    X, Y = RNG.normal(size=(5, 2)), RNG.normal(size=5)
    result = independence_test(X, Y, Gaussian(1.0), Laplace(0.5))
    assert result.statistic == pytest.approx(hsic(X, Y, Gaussian(1.0), Laplace(0.5)), rel=1e-6)
    assert len(result.null_distribution) == 119
    every = sums_by_gathering(Gaussian(1.0)(X), Laplace(0.5)(Y[:, None]), itertools.permutations(range(5)))
    assert result.pvalue == pytest.approx(np.mean([t >= every[0] - 1e-9 for t in every]))


@pytest.mark.parametrize("combine", ["fused", "min_p", "agg"])
def test_the_level_holds_at_small_n_with_ties(combine):
    pvalues = []
    for i in range(60):
        rng = np.random.default_rng(i)
        x, y = rng.poisson(1.0, (9, 1)), rng.poisson(1.0, (9, 1))
        pvalues.append(independence_test(x, y, combine=combine, n_resamples=59, random_state=i).pvalue)
    assert np.sum(np.array(pvalues) <= 0.1) <= binom.ppf(0.999, 60, 0.1)


def test_gamma_p_values_are_uniform_from_two_hundred_rows():
    found = []
    for i in range(30):
        rng = np.random.default_rng(i)
        x, y = rng.normal(size=(200, 1)), rng.exponential(size=(200, 2))
        found.append(independence_test(x, y, "median", "median", null="gamma").pvalue)
    assert kstest(found, "uniform").pvalue > 1e-3


def test_dependence_without_correlation_is_found_and_named():
    X = pd.DataFrame(RNG.normal(size=(200, 3)), columns=["age", "bmi", "bp"])
    Y = pd.DataFrame({"noise": RNG.normal(size=200), "risk": X["bmi"] ** 2 + RNG.normal(size=200)})
    result = independence_test(X, Y, n_resamples=300)
    assert result.pvalue == 1 / 301
    assert {(c.side, c.name) for c in result.columns() if c.pvalue < 0.05} == {("X", "bmi"), ("Y", "risk")}
    assert "most through bmi (X), risk (Y)" in result.summary
    assert np.abs(X["bmi"].iloc[result.rows(20)]).mean() > np.abs(X["bmi"]).mean()
    assert sum(f.weight for f in result.per_kernel) == pytest.approx(1.0)
    assert len(result.per_kernel) == 25


def test_the_witness_is_large_where_pairs_occur_together():
    x = RNG.normal(size=150)
    result = independence_test(x, x + 0.3 * RNG.normal(size=150), n_resamples=99)
    together = result.witness([[1.5], [-1.5]], [[1.5], [-1.5]])
    apart = result.witness([[1.5], [-1.5]], [[-1.5], [1.5]])
    assert together.min() > 0 > apart.max()
    K, L = (k(s.points.values) for k, s in zip(result.kernel, (result.x, result.y), strict=True))
    K, L = K.numpy(), L.numpy()
    at_rows = result.witness(result.x.points.values, result.y.points.values)
    assert at_rows == pytest.approx((K * L).mean(1) - K.mean(1) * L.mean(1))


def test_labels_objects_and_ready_gram_matrices_are_sides_too():
    x = RNG.normal(size=90)
    labels = np.array(["low", "high"])[(np.abs(x) > 0.7).astype(int)]
    found = independence_test(x, labels, n_resamples=99)
    assert found.pvalue == 0.01
    assert found.witness([[0.0]], ["low"]) > 0 > found.witness([[0.0]], ["high"])
    assert independence_test(labels, RNG.integers(3, size=90), n_resamples=99).pvalue > 0.01
    words = ["aab" if value > 0 else "bbx" for value in x]
    assert independence_test(words, x, Spectrum(2), n_resamples=99).pvalue == 0.01
    K, L = Gaussian(1.0)(x[:, None]), Laplace(1.0)(x[:, None] ** 2)
    ready = independence_test(K, L, "precomputed", "precomputed", n_resamples=50)
    rows = independence_test(x, x**2, Gaussian(1.0), Laplace(1.0), n_resamples=50)
    assert ready.null_distribution == pytest.approx(rows.null_distribution, rel=1e-4)


def test_units_of_columns_do_not_matter_by_default():
    X, Y = RNG.normal(size=(60, 2)), RNG.normal(size=(60, 2))
    a = independence_test(X, Y, n_resamples=50)
    b = independence_test(X * [1e-3, 1e4], Y * [1e5, 1.0], n_resamples=50)
    assert a.null_distribution == pytest.approx(b.null_distribution, rel=1e-5, abs=1e-7)


def test_groups_change_partners_as_a_whole():
    """Rows of a patient are alike on both sides: row by row that looks like dependence, by patients it does not."""
    rng = np.random.default_rng(1)
    patients = np.repeat(np.arange(16), 10)
    x, y = (rng.normal(size=16)[patients] + 0.1 * rng.normal(size=160) for _ in "xy")
    assert independence_test(x, y, n_resamples=200).pvalue < 0.01
    assert independence_test(x, y, groups=patients, n_resamples=200).pvalue > 0.05
    with pytest.raises(InputError, match="no two of the 3 groups"):
        independence_test(x[:6], y[:6], groups=[0, 1, 1, 2, 2, 2])


def test_blocks_of_one_size_take_each_others_places():
    blocks = row_blocks(["b", "a", "b", "a", "c"], 5)
    for order in torch.cat(list(orders(5, 9, 0, blocks))).tolist():
        assert order in ([0, 1, 2, 3, 4], [1, 0, 3, 2, 4])
    drawn = torch.cat(list(orders(40, 30, 0, consecutive_blocks(40, 3))))
    assert (drawn.sort(1).values == torch.arange(40)).all()
    assert (drawn[:, :39].reshape(-1, 13, 3).diff(dim=2) == 1).all()
    assert (drawn[:, 39] == 39).all()


def test_series_change_partners_in_blocks():
    def walk(rng):
        x = np.zeros(300)
        for t in range(1, 300):
            x[t] = 0.9 * x[t - 1] + rng.normal()
        return x

    rejected = dict.fromkeys((False, True), 0)
    for i in range(10):
        rng = np.random.default_rng(i)
        x, y = walk(rng), walk(rng)
        for order in rejected:
            rejected[order] += independence_test(x, y, "median", "median", order=order, n_resamples=99).pvalue <= 0.05
    assert rejected[False] > 4
    assert rejected[True] <= 3


def test_constant_and_identical_sides():
    x = RNG.normal(size=(30, 2))
    assert independence_test(x, np.ones(30), n_resamples=99).pvalue == 1.0
    assert independence_test(np.ones((400, 2)), np.ones(400), n_resamples=49).pvalue == 1.0
    assert independence_test(x, x, n_resamples=99).pvalue == 0.01
    assert independence_test([0.0, 1.0], [3.0, 4.0]).pvalue == 1.0
    assert independence_test([0.0, 1.0, 5.0], [3.0, 4.0, 9.0], Linear(), Linear()).pvalue >= 1 / 6


def test_a_kernel_without_a_factor_says_what_would_fit():
    X = RNG.normal(size=(3000, 6))
    with pytest.raises(MemoryBudgetError, match="smoother kernel"):
        independence_test(X, X, Laplace(0.1), Laplace(0.1), memory_budget="50MiB")


def test_the_same_seed_gives_the_same_test_and_the_global_generators_stay():
    x, y = RNG.normal(size=(30, 2)), RNG.normal(size=(30, 2))
    before = torch.get_rng_state()
    a, b = (independence_test(x, y, n_resamples=50, random_state=3) for _ in range(2))
    assert (a.null_distribution == b.null_distribution).all()
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("X", "Y", "options", "match"),
    [
        ([[0.0]], [[1.0]], {}, "at least two"),
        ([0.0, 1.0], [1.0, 2.0, 3.0], {}, "X has 2 rows but Y has 3"),
        ([0.0, np.nan], [1.0, 2.0], {}, "X contains NaN"),
        ([0.0, 1.0], ["a", None], {}, "row 1 has none"),
        ([0.0, 1.0], [1.0, 2.0], {"null": "wild"}, "null='wild'"),
        ([0.0, 1.0], [1.0, 2.0], {"null": "gamma"}, "one pair of kernels"),
        ([0.0, 1.0], [1.0, 2.0], {"order": -1}, "order=-1"),
        (
            [0.0, 1.0, 2.0, 3.0],
            [1.0, 2.0, 0.0, 5.0],
            {"kernel_x": "median", "kernel_y": "median", "null": "gamma", "order": 2},
            "leave out groups and order",
        ),
        ([0.0, 1.0], [1.0, 2.0], {"groups": [1]}, "groups has 1 entries"),
        ([[0.0, 1.0]], [[1.0, 2.0]], {"kernel_x": "precomputed"}, "not a Gram matrix"),
    ],
)
def test_wrong_arguments_are_clear_errors(X, Y, options, match):
    with pytest.raises(InputError, match=match):
        independence_test(X, Y, **options)


def test_pictures_are_drawn():
    x, y = RNG.normal(size=50), RNG.normal(size=50)
    result = independence_test(x, x + y, n_resamples=50)
    assert result.plot().get_xlabel() == "Statistic"
    assert result.plot_dependence().get_ylabel() == "y"
    wide = independence_test(np.c_[x, y], x + y, n_resamples=50)
    assert "Dependence" in wide.plot_dependence().get_xlabel()


def test_integers_of_many_values_are_numbers_and_of_few_are_labels():
    x = np.random.default_rng(0).normal(size=100)
    ranks = x.argsort().argsort()
    assert independence_test(x, ranks, n_resamples=99).pvalue == 0.01
    assert independence_test(x, torch.from_numpy(ranks), n_resamples=99).pvalue == 0.01
    assert independence_test(x, ranks // 25, n_resamples=99).y.labels == (0, 1, 2, 3)


def test_columns_are_named_in_words_where_they_have_no_names():
    X = np.random.default_rng(0).normal(size=(100, 3))
    result = independence_test(X, X[:, 1], n_resamples=99)
    assert "most through column 1 (X) (p" in result.summary
