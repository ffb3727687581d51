"""Units do not matter: scaling or shifting columns of X changes no prediction of a model with a kernel by name."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mercer
from mercer import stats
from mercer.rows import ArrayRows

rng = np.random.default_rng(0)
N = 90
X = np.column_stack([rng.normal(size=(N, 2)), rng.integers(0, 2, N), rng.exponential(size=N), np.full(N, 3.0)])
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=N)
LABELS = np.array(["a", "b", "c"])[np.digitize(Y, np.quantile(Y, [0.3, 0.7]))]
UNITS, SHIFTS = np.array([1e-3, 70.0, 3.0, 1e5, 0.3]), np.array([5.0, -900.0, 0.1, 2e5, 11.0])
NEW = X[:20] + 0.1 * rng.normal(size=(20, 5)) * (X.std(0) > 0)


def moved(X):
    return X * UNITS + SHIFTS


MODELS = {
    "ridge": lambda: mercer.KernelRidge(),
    "ridge auto": lambda: mercer.KernelRidge(alpha="auto"),
    "ridge of a number": lambda: mercer.KernelRidge("gaussian", alpha=0.1),
    "ridge pcg": lambda: mercer.KernelRidge("matern32", solver="pcg", tol=1e-12),
    "ridge nystrom": lambda: mercer.KernelRidge(solver="nystrom", n_landmarks=30, alpha="auto"),
    "ridge falkon": lambda: mercer.KernelRidge(solver="falkon", n_landmarks=30, alpha="auto", tol=1e-12),
    "ridge random features": lambda: mercer.KernelRidge("rational_quadratic", solver="random_features", n_features=60),
    "regressor": lambda: mercer.KernelRegressor(alpha="auto"),
    "regressor quantile": lambda: mercer.KernelRegressor("imq", loss="quantile", tol=1e-9),
    "process": lambda: mercer.GaussianProcessRegressor(),
    "ridge tuned": lambda: mercer.KernelRidge(tune=True),
    "ridge eigenpro": lambda: mercer.KernelRidge(solver="eigenpro"),
    "ridge flow": lambda: mercer.KernelRidge(solver="flow"),
    "regressor huber": lambda: mercer.KernelRegressor(loss="huber"),
    "regressor tube": lambda: mercer.KernelRegressor(loss="epsilon_insensitive", tol=1e-9),
    "feature machine": lambda: mercer.RFMRegressor(max_iter=2, n_folds=2),
    "table": lambda: mercer.tabular(mercer.KernelRidge()),
}
MAPS = {
    "pca": lambda: mercer.KernelPCA(3),
    "nystrom": lambda: mercer.NystromFeatures(20),
    "fourier": lambda: mercer.RandomFourierFeatures(50),
    "mercer": lambda: mercer.MercerDecomposition(3),
    "taylor": lambda: mercer.TaylorFeatures(),
}
CLASSIFIERS = {
    "classifier": lambda: mercer.KernelClassifier(),
    "classifier hinge": lambda: mercer.KernelClassifier("gaussian", loss="hinge", tol=1e-9),
    "process of classes": lambda: mercer.GaussianProcessClassifier(),
    "classifier tuned": lambda: mercer.KernelClassifier(tune=True),
    "classifier squared hinge": lambda: mercer.KernelClassifier(loss="squared_hinge"),
    "feature machine of classes": lambda: mercer.RFMClassifier(max_iter=2, n_folds=2),
    "table of classes": lambda: mercer.tabular(mercer.KernelClassifier()),
}
STATISTICS = {
    "two samples": lambda A, B: stats.two_sample_test(A, B, n_resamples=20).statistic,
    "discrepancy": lambda A, B: stats.mmd(A, B),
    "criterion of independence": lambda A, B: stats.hsic(A, B[:, :1]),
    "independence": lambda A, B: stats.independence_test(A, B, n_resamples=20).statistic,
    "thinning": lambda A, B: stats.KernelThinning().fit(A).indices_.astype(float),
}


def close(found, expected):
    return np.abs(found - expected).max() <= 1e-6 * np.abs(expected).max()


@pytest.mark.parametrize("name", MODELS)
def test_units_of_columns_change_no_regression(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = MODELS[name]().fit(X, Y).predict(NEW)
        found = MODELS[name]().fit(moved(X), Y).predict(moved(NEW))
    assert close(found, expected)
    assert np.std(expected) > 0.1 * np.std(Y)


@pytest.mark.parametrize("name", MODELS)
def test_what_is_added_to_targets_is_added_to_predictions(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = MODELS[name]().fit(X, Y).predict(NEW) + 1000.0
        found = MODELS[name]().fit(X, Y + 1000.0).predict(NEW)
    assert close(found - 1000.0, expected - 1000.0)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_units_of_columns_change_no_classification(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = CLASSIFIERS[name]().fit(X, LABELS).predict_proba(NEW)
        found = CLASSIFIERS[name]().fit(moved(X), LABELS).predict_proba(moved(NEW))
    assert close(found, expected)


@pytest.mark.parametrize("name", MAPS)
def test_units_of_columns_change_no_features(name):
    expected = np.asarray(MAPS[name]().fit(X).transform(NEW))
    found = np.asarray(MAPS[name]().fit(moved(X)).transform(moved(NEW)))
    assert close(found @ found.T, expected @ expected.T)


def test_units_of_columns_change_no_stream():
    def fitted(X):
        return mercer.KernelRidge(n_landmarks=30).fit(ArrayRows(X, Y, rows_at_once=25))

    assert close(fitted(moved(X)).predict(moved(NEW)), fitted(X).predict(NEW))


def test_partial_fits_keep_the_length_scales_of_their_first_rows():
    model = mercer.KernelRidge(solver="nystrom", n_landmarks=20).partial_fit(X[:40], Y[:40])
    first = model.kernel_
    assert model.partial_fit(100 * X[40:], Y[40:]).kernel_ == first


def test_reports_print_auto():
    model = mercer.KernelRidge().fit(X, Y)
    assert "Laplace(length_scale='auto'" in str(model.report())
    assert len(model.kernel_.length_scale) == 5


@pytest.mark.parametrize("name", STATISTICS)
def test_units_of_columns_change_no_statistic(name):
    expected = STATISTICS[name](X[:45], X[45:] + 0.2)
    found = STATISTICS[name](moved(X[:45]), moved(X[45:] + 0.2))
    assert close(np.asarray(found), np.asarray(expected))
