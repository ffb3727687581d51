"""Prediction intervals of regressions hold what they promise, by errors at rows that fits have not seen."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

import mercer
from mercer import GaussianProcessRegressor, KernelRegressor, KernelRidge
from mercer.core.errors import InputError
from mercer.kernels import Gaussian

rng = np.random.default_rng(0)


def rows(n, seed=0, noise=0.3):
    draw = np.random.default_rng(seed)
    X = draw.uniform(-3, 3, size=(n, 2))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + noise * draw.normal(size=n)


X, y = rows(60)
NEW, seen_there = rows(400, seed=1)


def covered(model, level=0.9, **options):
    low, high = model.predict_interval(NEW, level, **options)
    return float(((low <= seen_there) & (seen_there <= high)).mean())


def left_out(model):
    """Errors of refits without each row, at the alpha and kernel of the model."""
    settings = {"alpha": model.alpha_, "kernel": model.kernel_}
    errors = []
    for i in range(len(X)):
        keep = np.arange(len(X)) != i
        errors.append(y[i] - clone(model).set_params(**settings).fit(X[keep], y[keep]).predict(X[i : i + 1])[0])
    return np.array(errors)


@pytest.mark.parametrize("model", [KernelRidge(Gaussian(1.0), alpha=0.3), KernelRegressor(Gaussian(1.0), alpha=0.3)])
def test_intervals_reach_the_conformal_quantile_of_leave_one_out_errors(model):
    model.fit(X, y)
    low, high = model.predict_interval(NEW, level=0.8)
    reach = np.sort(np.abs(left_out(model)))[int(np.ceil(0.8 * 61)) - 1]
    np.testing.assert_allclose(high - model.predict(NEW), reach, rtol=1e-6)
    np.testing.assert_allclose(model.predict(NEW) - low, reach, rtol=1e-6)


def test_jackknife_plus_takes_quantiles_of_refits_without_each_row():
    model = KernelRidge(Gaussian(1.0), alpha=0.3).fit(X, y)
    low, high = model.predict_interval(NEW[:5], level=0.8, method="jackknife+")
    errors, place = np.abs(left_out(model)), int(np.ceil(0.8 * 61)) - 1
    others = []
    for i in range(len(X)):
        keep = np.arange(len(X)) != i
        others.append(clone(model).fit(X[keep], y[keep]).predict(NEW[:5]))
    others = np.array(others)
    np.testing.assert_allclose(high, np.sort(others + errors[:, None], axis=0)[place], rtol=1e-6)
    np.testing.assert_allclose(low, -np.sort(errors[:, None] - others, axis=0)[place], rtol=1e-6)


@pytest.mark.parametrize("method", ["residuals", "jackknife+"])
def test_integer_weights_give_the_intervals_of_repeated_rows(method):
    w = rng.integers(1, 4, len(X))
    weighted = KernelRidge(Gaussian(1.0), alpha=0.3).fit(X, y, w).predict_interval(NEW, method=method)
    repeated = KernelRidge(Gaussian(1.0), alpha=0.3).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(weighted, repeated.predict_interval(NEW, method=method), rtol=1e-8, atol=1e-8)


def test_rows_without_weight_do_not_count():
    w = np.r_[np.ones(60), np.zeros(20)]
    strange = np.r_[y, np.full(20, 1e3)]
    model = KernelRidge(Gaussian(1.0), alpha=0.3).fit(np.r_[X, X[:20]], strange, w)
    np.testing.assert_allclose(
        model.predict_interval(NEW), KernelRidge(Gaussian(1.0), alpha=0.3).fit(X, y).predict_interval(NEW), atol=1e-8
    )


SETTINGS = {
    "number": KernelRidge("gaussian", alpha=0.5),
    "path": KernelRidge("gaussian", alpha="loo"),
    "tuned": KernelRidge("gaussian", alpha="loo", tune=True),
    "iterations": KernelRidge("gaussian", alpha=0.5, solver="pcg"),
    "huber": KernelRegressor("gaussian", loss="huber", delta=0.3),
    "median": KernelRegressor("gaussian", loss="quantile", quantiles=0.5, alpha="auto"),
    "quantiles": KernelRegressor("gaussian", loss="quantile", quantiles=[0.05, 0.5, 0.95], alpha=0.05),
}


SLOW = [pytest.param(name, marks=pytest.mark.slow) if name in ("tuned", "median") else name for name in SETTINGS]


@pytest.mark.parametrize("name", SLOW)
def test_intervals_hold_what_they_promise_for_rows_like_those_of_the_training(name):
    model = clone(SETTINGS[name])
    shares = [covered(model.fit(*rows(100, seed))) for seed in (2, 3, 4)]
    assert 0.84 < np.mean(shares) < 0.96


def test_quantiles_keep_their_shape_and_are_moved_together():
    draw = np.random.default_rng(5)
    places = draw.uniform(0, 3, size=(200, 1))
    target = places[:, 0] * draw.normal(size=200)
    model = KernelRegressor("gaussian", loss="quantile", quantiles=[0.05, 0.5, 0.95], alpha=0.1).fit(places, target)
    ends, quantiles = model.predict_interval(places), model.predict(places)
    moved = np.c_[quantiles[:, 0] - ends[0], ends[1] - quantiles[:, 2]]
    np.testing.assert_allclose(moved, moved[0, 0], atol=1e-9)


def test_several_targets_have_widths_of_their_own():
    both = np.c_[y, 100 * y]
    low, high = KernelRidge("gaussian", alpha="loo").fit(X, both).predict_interval(NEW)
    assert low.shape == (400, 2)
    np.testing.assert_allclose((high - low)[:, 1], 100 * (high - low)[:, 0], rtol=1e-6)
    plus = KernelRidge("gaussian", alpha="loo").fit(X, both).predict_interval(NEW[:3], method="jackknife+")
    np.testing.assert_allclose((plus[1] - plus[0])[:, 1], 100 * (plus[1] - plus[0])[:, 0], rtol=1e-6)


def test_a_precomputed_kernel_gives_the_intervals_of_its_rows():
    k = Gaussian(1.0)
    for settings in ({}, {"order": np.arange(60)}):
        ready = KernelRidge("precomputed", alpha=0.3).fit(k(X), y, **settings)
        direct = KernelRidge(k, alpha=0.3).fit(X, y, **settings)
        np.testing.assert_allclose(ready.predict_interval(k(NEW, X)), direct.predict_interval(NEW), atol=1e-8)


def test_rows_that_the_model_has_not_seen_can_decide():
    model = KernelRidge("gaussian", n_landmarks=20).fit(X, y)
    low, high = model.predict_interval(NEW, calibrate=(NEW, seen_there))
    reach = np.sort(np.abs(model.predict(NEW) - seen_there))[int(np.ceil(0.9 * 401)) - 1]
    np.testing.assert_allclose(high - low, 2 * reach)
    for loss in (KernelRegressor("gaussian"), KernelRegressor("gaussian", loss="quantile", quantiles=[0.1, 0.9])):
        assert covered(loss.fit(X, y), calibrate=(NEW, seen_there)) == pytest.approx(0.9, abs=0.01)


# Rows in order


def walk(n, seed):
    """A random walk over time: the past says little of the future."""
    return np.arange(n, dtype=float).reshape(-1, 1), np.cumsum(np.random.default_rng(seed).normal(size=n))


MODELS_OF_TIME = {
    "ridge": lambda: KernelRidge(Gaussian(3.0), alpha=0.1),
    "huber": lambda: KernelRegressor(Gaussian(3.0), loss="huber", alpha=0.1),
    "process": lambda: GaussianProcessRegressor(4.0 * Gaussian(3.0), noise=0.1, tune=False),
}


@pytest.mark.parametrize("name", MODELS_OF_TIME)
def test_forecasts_are_covered_where_the_order_is_given_and_not_where_it_is_not(name):
    plain, ordered = [], []
    for seed in range(8):
        time, path = walk(220, seed)
        past, future = slice(200), slice(200, 220)
        for found, order in ((plain, None), (ordered, time[past, 0])):
            model = MODELS_OF_TIME[name]().fit(time[past], path[past], order=order)
            low, high = model.predict_interval(time[future], level=0.9)
            found.append(np.mean((low <= path[future]) & (path[future] <= high)))
    assert np.mean(plain) < 0.6
    assert np.mean(ordered) > 0.78


@pytest.mark.parametrize("name", MODELS_OF_TIME)
def test_forecasts_go_by_the_order_and_not_by_the_places_of_rows_and_survive_files(name, tmp_path):
    time, path = walk(100, 0)
    shuffled = rng.permutation(100)
    model = MODELS_OF_TIME[name]().fit(time[shuffled], path[shuffled], order=time[shuffled, 0])
    straight = MODELS_OF_TIME[name]().fit(time, path, order=np.datetime64("2024-01-01") + np.arange(100))
    ends = model.predict_interval(time)
    np.testing.assert_allclose(ends, straight.predict_interval(time), rtol=1e-6, atol=1e-6)
    model.save(tmp_path / "model.safetensors")
    np.testing.assert_allclose(mercer.load(tmp_path / "model.safetensors").predict_interval(time), ends, atol=1e-8)


def test_each_block_is_forecast_by_a_whole_fit_to_the_rows_before():
    time, path = walk(100, 0)
    model = KernelRidge("gaussian", alpha="loo").fit(time, path, order=time[:, 0])
    errors = []
    for start in (50, 60, 70, 80, 90):
        past = KernelRidge("gaussian", alpha="loo").fit(time[:start], path[:start])
        errors.append(np.abs(path[start : start + 10] - past.predict(time[start : start + 10])))
    reach = np.sort(np.concatenate(errors))[int(np.ceil(0.9 * 51)) - 1]
    low, high = model.predict_interval(time)
    np.testing.assert_allclose(high - low, 2 * reach, rtol=1e-6)


# Errors


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: KernelRidge().fit(X, y).predict_interval(NEW, level=1.0), "between 0 and 1"),
        (lambda: KernelRidge().fit(X, y).predict_interval(NEW, level=0.99), "at least 99 rows"),
        (lambda: KernelRidge().fit(X, y).predict_interval(NEW, method="bootstrap"), "jackknife"),
        (lambda: KernelRidge(n_landmarks=9).fit(X, y).predict_interval(NEW), "calibrate="),
        (lambda: KernelRidge().fit(X, y).predict_interval(NEW, calibrate=(NEW, y)), "inconsistent"),
        (lambda: KernelRidge(tune=True).fit(X, y).predict_interval(NEW, method="jackknife+"), "tune=True"),
        (lambda: KernelRidge().fit(X, y, order=np.arange(5)), "one value for each"),
        (lambda: KernelRidge().fit(X, y, order=np.full(60, np.nan)), "missing"),
        (lambda: KernelRidge().fit(X, y, order=np.zeros(60)).predict_interval(NEW), "different values"),
    ],
)
def test_what_cannot_be_is_said(ask, words):
    with pytest.raises(InputError, match=words):
        ask()


def test_tensors_give_tensors():
    model = KernelRidge("gaussian", alpha="loo").fit(torch.tensor(X), torch.tensor(y))
    low, high = model.predict_interval(torch.tensor(NEW))
    assert isinstance(low, torch.Tensor)
    assert bool((high > low).all())


def test_with_an_intercept_intervals_move_with_the_targets():
    model, moved = (KernelRidge(Gaussian(1.0), alpha=0.3, fit_intercept=True).fit(X, y + c) for c in (0.0, 1e3))
    for method in ("residuals", "jackknife+"):
        both = np.array(moved.predict_interval(NEW[:9], method=method)) - 1e3
        np.testing.assert_allclose(both, model.predict_interval(NEW[:9], method=method), atol=1e-8)


def _no_work(a, b):
    raise AssertionError("the kernel was evaluated")


@pytest.mark.parametrize("estimator", [KernelRidge, KernelRegressor, GaussianProcessRegressor])
def test_an_order_that_does_not_fit_is_an_error_before_any_work(estimator):
    X, y = np.arange(8.0).reshape(-1, 1), np.arange(8.0)
    with pytest.raises(InputError, match="order has shape"):
        estimator(_no_work).fit(X, y, order=range(7))
