"""Predictions equal scikit-learn's KernelRidge to 1e-8."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from sklearn.linear_model import Ridge

from mercer import KernelRidge
from mercer.kernels import FeatureMap, Gaussian, Laplace, Linear, Polynomial, Precomputed

PAIRS = {
    "rbf": (Gaussian.from_gamma(0.3), {"kernel": "rbf", "gamma": 0.3}),
    "laplacian": (Laplace(1 / 0.4, metric="l1"), {"kernel": "laplacian", "gamma": 0.4}),
    "polynomial": (Polynomial(3, 0.5, 2.0), {"kernel": "polynomial", "degree": 3, "gamma": 0.5, "coef0": 2.0}),
    "linear": (Linear(), {"kernel": "linear"}),
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X, X_test = rng.normal(size=(150, 4)), rng.normal(size=(60, 4))
    Y = np.c_[np.sin(X[:, 0]) + X[:, 1] * X[:, 2], X.sum(1)] + 0.1 * rng.normal(size=(150, 2))
    return X, Y, X_test, rng.uniform(0.1, 3.0, size=150)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("solver", ["cholesky", "eigh"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("targets", [1, 2])
def test_predictions_equal_those_of_scikit_learn(data, name, solver, weighted, targets):
    X, Y, X_test, weights = data
    kernel, options = PAIRS[name]
    y = Y[:, 0] if targets == 1 else Y
    sample_weight = weights if weighted else None
    peer = SklearnKernelRidge(alpha=0.7, **options).fit(X, y, sample_weight=sample_weight)
    ours = KernelRidge(kernel, alpha=0.7, solver=solver, fit_intercept=False).fit(X, y, sample_weight=sample_weight)
    np.testing.assert_allclose(ours.predict(X_test), peer.predict(X_test), rtol=0, atol=1e-8 * np.abs(y).max())
    np.testing.assert_allclose(ours.dual_coef_, peer.dual_coef_, rtol=1e-7, atol=1e-8)


def test_one_alpha_per_target_equals_scikit_learn(data):
    X, Y, X_test, _ = data
    peer = SklearnKernelRidge(alpha=[0.1, 5.0], kernel="rbf", gamma=0.3).fit(X, Y)
    ours = KernelRidge(Gaussian.from_gamma(0.3), alpha=[0.1, 5.0], fit_intercept=False).fit(X, Y)
    np.testing.assert_allclose(ours.predict(X_test), peer.predict(X_test), atol=1e-8)
    np.testing.assert_array_equal(ours.alpha_, [0.1, 5.0])


def test_a_precomputed_matrix_gives_the_same_predictions(data):
    X, Y, X_test, weights = data
    kernel = Gaussian(1.3)
    direct = KernelRidge(kernel, alpha=0.2).fit(X, Y, weights).predict(X_test)
    ready = KernelRidge("precomputed", alpha=0.2).fit(kernel(X), Y, weights).predict(kernel(X_test, X))
    np.testing.assert_allclose(ready, direct, atol=1e-9)
    assert KernelRidge(Precomputed()).__sklearn_tags__().input_tags.pairwise


def test_ridge_on_features_is_kernel_ridge_with_their_inner_product(data):
    X, Y, X_test, _ = data

    def features(rows):
        rows = np.asarray(rows)
        return np.c_[rows, rows**2, rows[:, :1] * rows[:, 1:2]]

    primal = Ridge(alpha=0.5, fit_intercept=False).fit(features(X), Y[:, 0]).predict(features(X_test))
    dual = KernelRidge(FeatureMap(features), alpha=0.5, fit_intercept=False).fit(X, Y[:, 0]).predict(X_test)
    np.testing.assert_allclose(dual, primal, atol=1e-8)
