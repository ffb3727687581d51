"""Length scales in the units of the columns: they follow units, and no outlier or rare value spoils them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from mercer.kernels import Gaussian, Laplace, Matern, Periodic, Subspace, as_kernel, resolve
from mercer.kernels.shown import kernel_text
from mercer.kernels.spread import Gaps, column_spreads, robust_spread

rng = np.random.default_rng(0)
N = 300
COLUMNS = {
    "normal": rng.normal(size=N),
    "uniform": rng.uniform(size=N),
    "binary": (rng.uniform(size=N) < 0.5).astype(float),
    "rare": (rng.uniform(size=N) < 0.02).astype(float),
    "mostly zero": np.where(rng.uniform(size=N) < 0.1, rng.exponential(size=N), 0.0),
    "skewed": rng.lognormal(sigma=2.0, size=N),
    "codes": rng.integers(0, 5, size=N).astype(float),
}
X = np.stack(list(COLUMNS.values()), axis=1)


def scales(X, weights=None, kernel=None, **options):
    found = resolve(Laplace("auto") if kernel is None else kernel, X, weights, **options).length_scale
    return np.atleast_1d(found)


def spread(column, weights=None):
    weights = np.ones(len(column)) if weights is None else weights
    column = np.asarray(column, dtype=float).reshape(-1, 1)
    return column_spreads(column, weights, column, weights)[0]


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    st.lists(st.floats(-6, 6), min_size=7, max_size=7),
    st.lists(st.floats(-1e3, 1e3), min_size=7, max_size=7),
)
def test_length_scales_have_the_units_of_their_columns_and_ignore_shifts(powers, shifts):
    units = 10.0 ** np.array(powers)
    moved = X * units + units * np.array(shifts)
    np.testing.assert_allclose(scales(moved, max_rows=100), units * scales(X, max_rows=100), rtol=1e-8)


def test_the_median_distance_of_rows_in_units_of_the_length_scales_is_one():
    assert np.median(pdist(X / scales(X))) == pytest.approx(1.0)
    by_l1 = scales(X, kernel=Laplace("auto", metric="l1"))
    assert np.median(pdist(X / by_l1, "cityblock")) == pytest.approx(1.0)


def test_of_one_column_auto_is_the_median_distance():
    one = X[:, :1]
    assert resolve(Gaussian("auto"), one).length_scale == pytest.approx(np.median(pdist(one)), rel=1e-12)


@pytest.mark.parametrize("max_rows", [1000, 40])
def test_integer_weights_equal_repeated_rows(max_rows):
    weights = np.random.default_rng(1).integers(0, 4, size=N)
    again = np.repeat(X, weights, axis=0)
    expected = scales(again, max_rows=max_rows)
    np.testing.assert_allclose(scales(X, weights, max_rows=max_rows), expected, rtol=1e-10)


@pytest.mark.parametrize("name", ["normal", "uniform", "binary", "rare", "mostly zero", "codes"])
def test_the_spread_of_ordinary_columns_is_their_deviation(name):
    assert spread(COLUMNS[name]) == pytest.approx(np.std(COLUMNS[name]), rel=1e-12)


@pytest.mark.parametrize("name", list(COLUMNS))
@pytest.mark.parametrize("far", [1e3, 1e9])
def test_one_outlier_does_not_make_a_column_vanish(name, far):
    column = np.append(COLUMNS[name], far)
    assert spread(column) <= 5.0 * np.std(COLUMNS[name])


def test_the_typical_gap_is_a_median_over_pairs_of_different_values():
    column = np.round(X[:, 0], 1)
    weights = np.random.default_rng(2).integers(1, 4, size=N)
    repeated = np.repeat(column, weights)
    gaps = pdist(repeated[:, None])
    share = 1 - sum((repeated == v).mean() ** 2 for v in np.unique(repeated))
    expected = np.median(gaps[gaps > 1e-9]) * np.sqrt(share)
    assert Gaps.of(column, weights.astype(float)).typical == pytest.approx(expected, rel=1e-9)


def test_a_constant_column_never_counts():
    with_constant = np.column_stack([X, np.full(N, 7.0)])
    found = scales(with_constant)
    np.testing.assert_allclose(found[:-1], scales(X), rtol=1e-12)
    new = np.column_stack([X[:5], np.full(5, 1e4)])  # a value never seen before
    kernel, plain = resolve(Laplace("auto"), with_constant), resolve(Laplace("auto"), X)
    np.testing.assert_allclose(kernel(new, with_constant), plain(X[:5], X), rtol=1e-6)


def test_where_nothing_moves_the_length_scale_is_one():
    assert resolve(Gaussian("auto"), np.ones((4, 3))) == Gaussian(1.0)


def test_every_kernel_of_an_expression_has_the_scales_of_its_own_columns():
    kernel = Subspace(Matern(1.5, "auto"), (0, 5)) + 2.0 * Laplace("auto")
    found = resolve(kernel, X)
    assert found.get_params()["k1__kernel__length_scale"] == resolve(Matern(1.5, "auto"), X[:, [0, 5]]).length_scale
    assert found.get_params()["k2__kernel__length_scale"] == tuple(scales(X))


def test_angles_have_no_units_so_that_auto_is_median_for_a_periodic_kernel():
    assert resolve(Periodic("auto", period=2.0), X) == resolve(Periodic("median", period=2.0), X)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_huge_and_tiny_units_are_units(size):
    np.testing.assert_allclose(scales(X[:, :2] * size), size * scales(X[:, :2]), rtol=1e-12)


def test_reports_say_auto_and_reprs_say_numbers():
    found = resolve(2.0 * as_kernel("laplace") + 1.0, X)
    assert kernel_text(found, 2.0 * as_kernel("laplace") + 1.0) == repr(2.0 * Laplace("auto") + 1.0)
    assert "7 from" in kernel_text(found)
    namespace = {}
    exec("from mercer.kernels import *", namespace)
    assert eval(repr(found), namespace) == found


def test_the_robust_spread_is_the_deviation_of_a_normal_sample_and_hardly_moved_by_outliers():
    values = np.random.default_rng(0).normal(5.0, 3.0, 4000)
    clean = robust_spread(values, np.ones(4000))
    assert abs(clean - 3.0) < 0.15
    values[::10] = 1e6
    assert robust_spread(values, np.ones(4000)) < 1.4 * clean
    assert robust_spread(np.full(5, 1e6), np.ones(5)) == 0.0
