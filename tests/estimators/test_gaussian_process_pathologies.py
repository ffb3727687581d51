"""Gaussian processes on ordinary and odd data: every method gives the right answer, or a clear error of ours."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import GaussianProcessClassifier, GaussianProcessRegressor
from mercer.core.errors import InputError, MercerError
from mercer.kernels import Gaussian, Laplace, Linear
from mercer.processes.methods import METHODS

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 2))
Y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=30)
BY_LENGTH = np.c_[np.arange(30.0), 2.0 * np.arange(30.0)]
ODD = {
    "constant y": (X, np.full(30, 3.0)),
    "zero y": (X, np.zeros(30)),
    "constant X": (np.ones((30, 2)), Y),
    "zero X": (np.zeros((30, 2)), Y),
    "one row": (X[:1], Y[:1]),
    "two equal rows": (X[[0, 0]], Y[[0, 0]]),
    "two values at one point": (X[[0, 0]], Y[:2]),
    "fewer rows than features": (rng.normal(size=(5, 20)), Y[:5]),
    "collinear": (BY_LENGTH, np.sin(BY_LENGTH[:, 0])),
    "duplicates": (X[np.arange(30) // 3], Y),
    "near duplicates": (np.r_[X, X + 1e-9], np.r_[Y, Y]),
}


def ordinary(kind, n):
    rng = np.random.default_rng(n)
    noise = 0.1 * rng.normal(size=n)
    x = rng.uniform(0.0, 10.0, size=(n, 1))
    if kind == "sin":
        return x, np.sin(x[:, 0]) + noise
    if kind == "line":
        X = rng.uniform(-1.0, 1.0, size=(n, 3))
        return X, X @ [1.0, -2.0, 0.5] + 0.1 * noise
    if kind == "constant column":
        return np.c_[x, np.full(n, 3.0)], np.cos(x[:, 0]) + noise
    x = x[rng.integers(0, n // 5, size=n)]
    return x, np.sin(x[:, 0]) + noise


def learned(method, X, y, kernel="gaussian", **settings):
    return GaussianProcessRegressor(kernel, method=method, random_state=0, n_restarts=0, **settings).fit(X, y)


@pytest.mark.parametrize("kind", ["sin", "line", "constant column", "duplicates"])
@pytest.mark.parametrize("n", [60, 120])
def test_inducing_points_learn_what_all_rows_do_where_they_are_singular(kind, n):
    X, y = ordinary(kind, n)
    exact, sparse = learned("exact", X, y), learned("sgpr", X, y)
    # a line is a flat ridge towards long length scales, along which two ascents need not end at one place
    assert sparse.log_marginal_likelihood_ == pytest.approx(exact.log_marginal_likelihood_, abs=2.0)
    assert np.mean(sparse.noise_) == pytest.approx(np.mean(exact.noise_), rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["gaussian", "matern52", "laplace"])
@pytest.mark.parametrize("kind", ["sin", "line", "constant column", "duplicates"])
@pytest.mark.parametrize("method", METHODS)
def test_ordinary_data_of_four_hundred_rows_are_learned(method, kind, kernel):
    X, y = ordinary(kind, 400)
    model = learned(method, X, y, kernel)
    mean, std = model.predict(X, return_std=True)
    assert model.optimum_.value > model.optimum_.start_value
    assert np.sqrt(np.mean((mean - y) ** 2)) < 0.12
    assert np.isfinite(std).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bounds", ["fixed", (2.0, 2.0)])
@pytest.mark.parametrize("mean", ["constant", "auto"])
def test_with_nothing_left_to_learn_the_process_is_the_one_given(method, bounds, mean):
    model = learned(method, X, Y, Gaussian(2.0), noise=0.1, bounds={"length_scale": bounds}, mean=mean)
    fitted = model._fit.posterior.mean_function.mean
    given = learned(method, X, Y, Gaussian(2.0), noise=0.1, tune=False, mean=fitted)
    assert model.optimum_ is None
    assert repr(model.kernel_) == repr(Gaussian(2.0))
    np.testing.assert_array_equal(model.predict(X), given.predict(X))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("bounds", ["fixed", (2.0, 2.0)])
def test_a_classifier_with_nothing_left_to_learn_is_the_one_given(classes, bounds):
    labels = np.digitize(X[:, 0], [0.0, 0.5][: classes - 1])
    model = GaussianProcessClassifier(Gaussian(2.0), bounds={"length_scale": bounds}).fit(X, labels)
    given = GaussianProcessClassifier(Gaussian(2.0), tune=False).fit(X, labels)
    assert model.optimum_ is None
    np.testing.assert_array_equal(model.predict_proba(X), given.predict_proba(X))


SIZES = [2.0**332, 2.0**-332, 2.0**460]  # near 1e100, 1e-100 and 1e138


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("method", METHODS)
def test_the_unit_of_y_does_not_matter(method, size):
    one = learned(method, X, Y, 0.5 * Gaussian(1.0), noise=0.01, tune=False)
    other = learned(method, X, size * Y, 0.5 * size**2 * Gaussian(1.0), noise=0.01 * size**2, tune=False)
    (mean, std), (large, wide) = (model.predict(X, return_std=True) for model in (one, other))
    np.testing.assert_allclose(large / size, mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(wide / size, std, rtol=1e-6)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("method", ["exact", "sgpr"])
def test_what_is_learned_follows_the_unit_of_y(method, size):
    one, other = learned(method, X, Y), learned(method, X, size * Y)
    np.testing.assert_allclose(other.predict(X) / size, one.predict(X), rtol=0, atol=1e-2)
    assert float(other.noise_) / size**2 == pytest.approx(float(one.noise_), rel=2e-2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("offset", [1e6, 1e8])
def test_a_large_constant_in_y_changes_nothing_else(method, offset):
    settings = {"noise": 1e-3, "tune": False}
    one, other = learned(method, X, Y, **settings), learned(method, X, Y + offset, **settings)
    np.testing.assert_allclose(other.predict(X) - offset, one.predict(X), rtol=0, atol=1e-6)
    assert other.log_marginal_likelihood_ == pytest.approx(one.log_marginal_likelihood_, abs=0.1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1e100, 1e-100])
def test_one_row_of_any_size_is_its_own_mean(method, size):
    mean, std = learned(method, X[:1], [size]).predict(X[:1], return_std=True)
    assert mean == pytest.approx(size)
    assert 0.0 < std[0] < np.inf


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1e300, 1e154, 1e-300])
def test_values_whose_squares_are_no_numbers_are_refused(method, size):
    with pytest.raises(InputError, match="rescale"):
        learned(method, X, size * Y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("size", [1e100, 1e-100, 1e200, 1e300, 1e-300])
@pytest.mark.parametrize("method", METHODS)
def test_kernels_of_any_size_give_numbers_or_an_error(method, size):
    try:
        mean, std = learned(method, X, Y, size * Gaussian(1.0)).predict(X, return_std=True)
    except MercerError:
        return
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()


@pytest.mark.parametrize("size", [1e100, 1e-100, 1e300])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_classifier_with_a_kernel_of_any_size_gives_probabilities(classes, size, recwarn):
    labels = np.digitize(X[:, 0], [0.0, 0.5][: classes - 1])
    model = GaussianProcessClassifier(size * Gaussian(1.0), tune=False).fit(X, labels)
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.solver_report_.converged or any(w.category is ConvergenceWarning for w in recwarn)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("kernel", ["gaussian", Laplace(1.0), Linear()], ids=["gaussian", "laplace", "linear"])
@pytest.mark.parametrize("settings", [{}, {"noise": 1e-3, "tune": False}], ids=["learned", "fixed"])
def test_odd_data_give_what_the_exact_method_does(case, kernel, settings):
    X, y = ODD[case]
    exact, *others = (learned(method, X, y, kernel, **settings) for method in METHODS)
    truth, spread = exact.predict(X, return_std=True)
    assert np.isfinite(truth).all()
    assert np.isfinite(spread).all()
    if settings:
        for model in others:
            mean, std = model.predict(X, return_std=True)
            np.testing.assert_allclose(mean, truth, rtol=0, atol=1e-3 * max(1.0, np.abs(y).max()))
            np.testing.assert_allclose(std, spread, rtol=1e-2)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_without_noise_values_are_met_or_an_error_or_report_says_why_not(method, each):
    X, y = ODD["duplicates"]
    noise = np.zeros(len(y)) if each else 0.0
    if method == "sgpr":
        with pytest.raises(InputError, match="noise"):
            learned(method, X, y, noise=noise)
        return
    model = learned(method, X, y, noise=noise)
    assert np.isfinite(model.predict(X)).all()
    assert not model._fit.posterior.report.converged
    assert "more noise" in model._fit.posterior.report.reason


def test_a_likelihood_that_would_be_rounding_errors_is_an_error():
    with pytest.raises(InputError, match="too small compared with y"):
        learned("sgpr", X, Y, Gaussian(1.0), noise=1e-200, tune=False)
    exact, sparse = (learned(m, X, Y, Gaussian(1.0), noise=1e-8, tune=False) for m in ("exact", "sgpr"))
    assert sparse.log_marginal_likelihood_ == pytest.approx(exact.log_marginal_likelihood_, rel=1e-6)


@pytest.mark.parametrize("size", [1e141, -1e160, 1e308])
@pytest.mark.parametrize("tune", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_a_mean_whose_distance_from_y_has_no_square_is_refused(method, tune, size):
    for mean in (size, lambda rows: np.full(len(rows), size)):
        with pytest.raises(InputError, match="less mean="):
            learned(method, X, Y, mean=mean, tune=tune)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "kernel", [0.3 * Gaussian(0.7), 1e-12 * Linear(), 0.7 * Laplace(2.0) * Gaussian(3.0)], ids=repr
)
def test_float32_rows_far_from_zero_have_the_deviations_of_the_same_numbers_in_float64(method, kernel):
    rows = (X + 1e6).astype(np.float32)
    same = rows.astype(np.float64)
    model = learned(method, same, Y, kernel, tune=False, noise=0.01)
    single, double = (model.predict(Z, return_std=True, latent=True)[1] for Z in (rows, same))
    np.testing.assert_allclose(single, double, rtol=2e-6, atol=0.0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_saved_classifier_gives_the_same_bits_where_rounding_is_large(n_classes, tmp_path):
    rows, labels = X + 1e6, np.arange(30) % n_classes
    model = GaussianProcessClassifier(Gaussian(1.3) + 2.7 * Linear(1.0), tune=False).fit(rows, labels)
    model.save(tmp_path / "model.safetensors")
    loaded = mercer.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict_proba(rows), model.predict_proba(rows))
