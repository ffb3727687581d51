"""Integer sample weights equal repeated rows, on informative data, for everything that looks at data."""

import numpy as np
import pytest
from sklearn.base import clone

from mercer import KernelClassifier, KernelRegressor, KernelRidge, RFMClassifier, RFMRegressor
from mercer.kernels import Gaussian, Laplace


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, size=(60, 2))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.2 * rng.normal(size=60)
    weights = rng.integers(0, 4, size=60)
    repeated = rng.permutation(np.repeat(np.arange(60), weights))
    return X, y, weights, repeated, rng.uniform(-2, 2, size=(25, 2))


SETTINGS = {
    "fixed alpha": {"kernel": "laplace", "alpha": 0.3},
    "eigh": {"kernel": "gaussian", "alpha": 0.3, "solver": "eigh"},
    "loo": {"kernel": "matern32", "alpha": "loo"},
    "gcv": {"kernel": "laplace_l1", "alpha": "gcv"},
    "own path": {"kernel": "gaussian", "alpha": "loo", "alphas": [1e-3, 1e-2, 0.1, 1.0, 10.0]},
    "tuned at fixed alpha": {"kernel": "gaussian", "alpha": 0.3, "tune": True},
    "tuned with alpha": {"kernel": Gaussian((1.0, 1.0)), "alpha": "loo", "tune": True},
    "tuned by gcv": {"kernel": "laplace", "alpha": "gcv", "tune": True},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_integer_weights_equal_repeated_rows(data, name):
    X, y, weights, repeated, X_test = data
    by_weight = KernelRidge(**SETTINGS[name]).fit(X, y, sample_weight=weights)
    by_rows = KernelRidge(**SETTINGS[name]).fit(X[repeated], y[repeated])
    loose = 1e-4 if by_weight.tune else 1e-8
    for parameter, value in by_weight.kernel_.tunable().items():
        np.testing.assert_allclose(value, by_rows.kernel_.tunable()[parameter], rtol=loose)
    np.testing.assert_allclose(by_weight.alpha_, by_rows.alpha_, rtol=loose)
    np.testing.assert_allclose(by_weight.lambda_, by_rows.lambda_, rtol=loose)
    np.testing.assert_allclose(by_weight.predict(X_test), by_rows.predict(X_test), atol=10 * loose)
    loo = by_weight.loo_predictions_[repeated]
    np.testing.assert_allclose(loo, by_rows.loo_predictions_, atol=10 * loose)


def test_the_weights_matter_on_these_data(data):
    X, y, weights, _, X_test = data
    plain = KernelRidge("gaussian", alpha="loo").fit(X, y)
    weighted = KernelRidge("gaussian", alpha="loo").fit(X, y, sample_weight=weights)
    assert plain.kernel_.length_scale != weighted.kernel_.length_scale
    assert np.abs(plain.predict(X_test) - weighted.predict(X_test)).max() > 0.01


def test_a_weight_of_zero_removes_the_row(data):
    X, y, weights, _, X_test = data
    kept = weights > 0
    spoiled = np.where(kept, y, 1e3)
    with_zeros = KernelRidge("laplace", alpha="loo").fit(X, spoiled, sample_weight=weights)
    removed = KernelRidge("laplace", alpha="loo").fit(X[kept], y[kept], sample_weight=weights[kept])
    np.testing.assert_allclose(with_zeros.predict(X_test), removed.predict(X_test), atol=1e-8)
    np.testing.assert_array_equal(with_zeros.dual_coef_[~kept], 0.0)


FITS = {
    "ridge": KernelRidge("gaussian"),
    "landmarks": KernelRidge("gaussian", n_landmarks=20, landmarks="uniform"),
    "features": KernelRidge("gaussian", n_features=20),
    "descent": KernelRidge("gaussian", solver="gd"),
    "tuned": KernelRidge("gaussian", tune=True),
    **{loss: KernelClassifier("gaussian", loss=loss) for loss in ("logistic", "hinge", "squared_hinge", "squared")},
    "classes on landmarks": KernelClassifier("gaussian", n_landmarks=20, landmarks="uniform"),
    "classes, given alpha": KernelClassifier("gaussian", alpha=1.0, class_weight="balanced"),
    **{f"{loss} of numbers": KernelRegressor("gaussian", loss=loss) for loss in ("huber", "epsilon_insensitive")},
    "quantiles": KernelRegressor("gaussian", loss="quantile", quantiles=[0.1, 0.9]),
    "machine": RFMRegressor(),
    "machine of classes": RFMClassifier(),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", FITS)
def test_whatever_a_model_says_is_the_same_without_the_rows_that_have_no_weight(data, name):
    X, y, weights, _, X_test = data
    kept = weights > 0
    classes = name in ("logistic", "hinge", "squared_hinge", "squared") or "classes" in name
    target = np.digitize(y, [0.0, 1.0]) if classes else y
    spoiled = np.where(kept[:, None], X, 1e3 * X), np.where(kept, target, 0 if classes else 1e3)
    with_zeros = clone(FITS[name]).fit(*spoiled, sample_weight=weights)
    removed = clone(FITS[name]).fit(X[kept], target[kept], sample_weight=weights[kept])
    for method in ("predict", "predict_proba", "predict_interval"):
        if hasattr(removed, method) and (method != "predict_interval" or _keeps_rows(removed)):
            found, wanted = (np.asarray(getattr(model, method)(X_test)) for model in (with_zeros, removed))
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5, err_msg=method)
    found, wanted = (_judged(model) for model in (with_zeros, removed))
    assert found == wanted


def _keeps_rows(model):
    return getattr(model, "n_landmarks", None) is None and getattr(model, "n_features", None) is None


def _judged(model):
    """What a report says of rows left out, without counts of rows."""
    lines = str(model.report()).splitlines()
    return [
        line.split(" by ")[0] for line in lines if line.strip().startswith(("R2", "accuracy", "log loss", "pinball"))
    ]


def test_multiplying_weights_and_alpha_by_one_number_changes_nothing(data):
    X, y, weights, _, X_test = data
    once = KernelRidge("laplace", alpha=0.2).fit(X, y, weights + 0.5).predict(X_test)
    seven = KernelRidge("laplace", alpha=1.4).fit(X, y, 7 * (weights + 0.5)).predict(X_test)
    np.testing.assert_allclose(seven, once, atol=1e-10)


def test_weighted_leave_one_out_is_a_refit_without_one_unit_of_weight(data):
    X, y, weights, _, _ = data
    kernel = Laplace(0.8)
    model = KernelRidge(kernel, alpha=0.3).fit(X, y, sample_weight=weights)
    for i in np.flatnonzero(weights)[:10]:
        less = weights.copy()
        less[i] -= 1
        refit = KernelRidge(kernel, alpha=0.3).fit(X, y, sample_weight=less)
        np.testing.assert_allclose(model.loo_predictions_[i], refit.predict(X[i : i + 1])[0], atol=1e-9)
