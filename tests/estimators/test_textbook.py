"""Worked examples of the textbooks, as statements that can fail."""

import numpy as np
import pytest
import torch

from mercer import KernelRidge, RKHSFunction
from mercer.kernels import FeatureMap, Gaussian, Laplace, Linear

SQUARE_FEET = np.array([850.0, 1100, 1250, 1400, 1600, 1750, 1900, 2200, 2600, 3100]).reshape(-1, 1)
PRICES = np.array([155.0, 199, 245, 219, 312, 279, 308, 405, 324, 480])


def circles(n=60):
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    ring = np.c_[np.cos(angle), np.sin(angle)]
    return np.r_[ring, 3 * ring], np.r_[np.full(n, -1.0), np.full(n, 1.0)]


def test_the_radius_feature_makes_concentric_circles_separable():
    X, y = circles()

    def with_radius(rows):
        rows = np.asarray(rows)
        return np.c_[rows, (rows**2).sum(1), np.ones(len(rows))]

    straight = KernelRidge(Linear(bias=1.0), alpha=1e-6).fit(X, y)
    lifted = KernelRidge(FeatureMap(with_radius), alpha=1e-6).fit(X, y)
    assert np.mean(np.sign(straight.predict(X)) == y) < 0.7
    assert np.mean(np.sign(lifted.predict(X)) == y) == 1.0


@pytest.mark.parametrize("kernel", [Gaussian, Laplace])
@pytest.mark.parametrize("width", [50.0, 150.0, 400.0])
def test_ten_houses_are_interpolated_at_every_width(kernel, width):
    model = KernelRidge(kernel(width), alpha=0.0).fit(SQUARE_FEET, PRICES)
    np.testing.assert_allclose(model.predict(SQUARE_FEET), PRICES, rtol=1e-6)


@pytest.mark.parametrize("kernel", [Gaussian, Laplace])
def test_narrow_kernels_spike_at_the_houses_and_vanish_between_them(kernel):
    between = (SQUARE_FEET[:-1] + SQUARE_FEET[1:]) / 2
    narrow = KernelRidge(kernel(5.0), alpha=0.0, fit_intercept=False).fit(SQUARE_FEET, PRICES)
    wide = KernelRidge(kernel(150.0), alpha=0.0, fit_intercept=False).fit(SQUARE_FEET, PRICES)
    assert np.abs(narrow.predict(between)).max() < 1.0
    assert wide.predict(between).min() > 100.0
    # with an intercept they come back to the mean
    shifted = KernelRidge(kernel(5.0), alpha=0.0, fit_intercept=True).fit(SQUARE_FEET, PRICES)
    np.testing.assert_allclose(shifted.predict(between), PRICES.mean(), atol=1.0)


def test_duplicated_points_count_only_through_the_sum_of_their_coefficients():
    x1, x3 = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    X = np.r_[x1, x1, x3]
    grid = np.random.default_rng(0).normal(size=(20, 2))
    for c in ([0.7, 0.3, 2.0], [2.0, -1.0, 2.0], [0.5, 0.5, 2.0]):
        f = RKHSFunction(Linear(), X, np.array(c))
        assert f.norm() ** 2 == pytest.approx((c[0] + c[1]) ** 2 + c[2] ** 2)
        np.testing.assert_allclose(f(grid), grid @ [1.0, 2.0])


def test_duplicating_a_row_is_a_weight_of_two_and_shares_its_coefficient_equally():
    rng = np.random.default_rng(0)
    X, y, grid = rng.normal(size=(20, 2)), rng.normal(size=20), rng.normal(size=(15, 2))
    weights = np.ones(20)
    weights[0] = 2.0
    doubled = KernelRidge(Gaussian(1.0), alpha=0.1).fit(np.r_[X[:1], X], np.r_[y[:1], y])
    weighted = KernelRidge(Gaussian(1.0), alpha=0.1).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(doubled.predict(grid), weighted.predict(grid), atol=1e-10)
    assert doubled.dual_coef_[0] == pytest.approx(doubled.dual_coef_[1], rel=1e-10)
    assert doubled.dual_coef_[:2].sum() == pytest.approx(weighted.dual_coef_[0], rel=1e-10)


def test_a_consistent_duplicate_changes_nothing_without_ridge_but_the_plain_penalty_has_no_such_property():
    rng = np.random.default_rng(1)
    X, y, grid = rng.normal(size=(12, 2)), rng.normal(size=12), rng.normal(size=(15, 2))
    X2, y2 = np.r_[X, X[:1]], np.r_[y, y[:1]]
    kernel = Gaussian(0.7)
    once = KernelRidge(kernel, alpha=0.0).fit(X, y).predict(grid)
    twice = KernelRidge(kernel, alpha=0.0).fit(X2, y2).predict(grid)
    np.testing.assert_allclose(twice, once, atol=1e-6)

    def plain_penalty(rows, targets, weight, alpha=0.1):
        """Minimise sum w (f - y)^2 + alpha |c|^2 over the coefficients themselves."""
        K = kernel(rows)
        W = np.diag(weight)
        c = np.linalg.solve(K @ W @ K + alpha * np.eye(len(K)), K @ W @ targets)
        return kernel(grid, rows) @ c

    by_rows = plain_penalty(X2, y2, np.ones(13))
    by_weight = plain_penalty(X, y, np.r_[2.0, np.ones(11)])
    assert np.abs(by_rows - by_weight).max() > 1e-3


def test_weights_on_the_mercer_features_carry_the_norm():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    eigenvalues = np.array([3.0, 1.0, 0.25])
    model = KernelRidge(
        FeatureMap(lambda rows: rows * torch.tensor(eigenvalues).sqrt()), alpha=0.5, fit_intercept=False
    ).fit(X, y)
    w = eigenvalues * (X.T @ model.dual_coef_)
    np.testing.assert_allclose(X @ w, model.predict(X), atol=1e-9)
    assert np.sum(w**2 / eigenvalues) == pytest.approx(model.function_.norm() ** 2)
