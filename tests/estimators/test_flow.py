"""Kernel ridge regression by gradient flow: the closed form, its limits, the time at which it stops."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import mercer
from mercer import KernelRidge
from mercer.core.errors import InputError, InputTypeError
from mercer.kernels import Laplace, Linear
from mercer.neural import gradient_flow
from mercer.rows import ArrayRows
from mercer.solvers import Flow

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(60, 2))
NEW = rng.uniform(-1, 1, size=(9, 2))
y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=60)
TWO = np.stack([y, 5.0 - 2.0 * X[:, 0]], axis=1)
W = rng.integers(1, 4, size=60).astype(float)
KERNEL = Laplace(1.0)


def flowed(K, h, y, w, t, intercept):
    """The flow by small steps of the mean squared error, with the best intercept at each time."""
    share, steps = w / w.sum(), 4000
    f, new = np.zeros(len(y)), np.zeros(len(h))

    def less_mean(v):
        return v - share @ v if intercept else v

    for _ in range(steps):
        pull = 2.0 * t / steps * share * less_mean(y - f)
        f, new = f + K @ pull, new + h @ pull
    return new + (share @ (y - f) if intercept else 0.0)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weights", [None, W])
def test_the_flow_is_the_limit_of_small_steps(intercept, weights):
    model = KernelRidge(KERNEL, solver="flow", fit_intercept=intercept).fit(X, y, weights)
    w = np.ones(60) if weights is None else weights
    expected = flowed(KERNEL(X), KERNEL(NEW, X), y, w, 7.0, intercept)
    np.testing.assert_allclose(model.predict(NEW, t=7.0), expected, atol=2e-3)


def descended(K, h, y, w, t, intercept):
    """Small steps of gradient descent in the coefficients of rows that are repeated w times, t in all."""
    rows = np.repeat(np.arange(len(y)), w.astype(int))
    K, h, y = K[np.ix_(rows, rows)], h[:, rows], y[rows]
    if intercept:
        K, y_less = K - K.mean(0) - K.mean(1, keepdims=True) + K.mean(), y - y.mean()
    else:
        y_less = y
    c, step = np.zeros(len(y)), t / 20_000
    for _ in range(20_000):
        c -= step * 2.0 / len(y) * K @ (K @ c - y_less)
    c = c - c.mean() if intercept else c
    plain = KERNEL(X)[np.ix_(rows, rows)]
    return h @ c + (np.mean(y - plain @ c) if intercept else 0.0)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weights", [None, W])
def test_the_flow_in_the_coefficients_is_the_limit_of_small_steps(intercept, weights):
    solver = Flow(t=0.8, space="coefficients")
    model = KernelRidge(KERNEL, solver=solver, fit_intercept=intercept).fit(X, y, weights)
    w = np.ones(60) if weights is None else weights
    expected = descended(KERNEL(X), KERNEL(NEW, X), y, w, 0.8, intercept)
    np.testing.assert_allclose(model.predict(NEW), expected, atol=1e-3)
    assert np.abs(model.predict(NEW, t=0.3) - expected).max() > 0.03


def test_the_flow_in_the_coefficients_is_its_closed_form():
    values, U = np.linalg.eigh(KERNEL(X))
    expected = KERNEL(NEW, X) @ (U @ (-np.expm1(-2 * 3.0 * values**2 / 60) / values * (U.T @ y)))
    model = KernelRidge(KERNEL, solver=Flow(t=3.0, space="coefficients"), fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.predict(NEW), expected, atol=1e-11)
    flow = gradient_flow(KERNEL, X, y, space="coefficients")
    np.testing.assert_allclose(flow.predict(NEW, 3.0), expected, atol=1e-11)
    residual = U @ (np.exp(-2 * 3.0 * values**2 / 60) * (U.T @ y))
    np.testing.assert_allclose(flow.residual(3.0), [residual @ residual / 60], rtol=1e-10)
    assert model.equivalent_alpha_ == pytest.approx((60 / 6.0) ** 0.5)
    for space in (3, "weights"):
        with pytest.raises((InputError, InputTypeError), match="space="):
            gradient_flow(KERNEL, X, y, space=space)
        with pytest.raises((InputError, InputTypeError), match="space="):
            Flow(space=space)


@pytest.mark.parametrize("stop", ["gcv", "held_out"])
def test_the_flow_in_the_coefficients_stops_in_time_and_is_saved(stop, tmp_path):
    model = KernelRidge(KERNEL, solver=Flow(stop=stop, space="coefficients")).fit(X, y)
    grid = rng.uniform(-1, 1, size=(300, 2))
    truth = np.sin(3 * grid[:, 0]) + grid[:, 1]
    errors = np.mean((model.predict(grid, t=model.stopping_time_.times[::5].tolist()) - truth) ** 2, axis=1)
    stopped = np.mean((model.predict(grid) - truth) ** 2)
    assert stopped < 1.3 * errors.min()
    assert errors[0] > 5.0 * stopped
    ridge = KernelRidge(KERNEL, alpha=model.equivalent_alpha_).fit(X, y)
    assert np.mean((ridge.predict(grid) - model.predict(grid)) ** 2) < 0.05 * np.var(model.predict(grid))
    model.save(tmp_path / "model")
    again = mercer.load(tmp_path / "model")
    np.testing.assert_allclose(again.predict(grid, t=2.0), model.predict(grid, t=2.0), atol=1e-12)
    assert again.equivalent_alpha_ == model.equivalent_alpha_


def test_the_flow_is_its_closed_form():
    model = KernelRidge(KERNEL, solver=Flow(t=3.0), fit_intercept=False).fit(X, y)
    values, U = np.linalg.eigh(KERNEL(X))
    expected = KERNEL(NEW, X) @ (U @ (-np.expm1(-2 * 3.0 * values / 60) / values * (U.T @ y)))
    np.testing.assert_allclose(model.predict(NEW), expected, atol=1e-11)
    np.testing.assert_allclose(gradient_flow(KERNEL, X, y).predict(NEW, 3.0), expected, atol=1e-11)
    assert model.t_ == 3.0
    assert model.equivalent_alpha_ == pytest.approx(60 / 6.0)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kernel", [KERNEL, Linear()])
def test_infinite_time_is_the_ridgeless_fit(kernel, intercept):
    flow = KernelRidge(kernel, solver=Flow(t=np.inf), fit_intercept=intercept).fit(X, TWO, W)
    ridgeless = KernelRidge(kernel, alpha=0.0, solver="eigh", fit_intercept=intercept).fit(X, TWO, W)
    np.testing.assert_allclose(flow.predict(NEW), ridgeless.predict(NEW), rtol=1e-8, atol=1e-8)
    assert np.all(flow.equivalent_alpha_ == 0.0)


def test_whole_weights_are_repeated_rows():
    times = [0.1, 3.0, 50.0]
    weighted = KernelRidge(KERNEL, solver="flow").fit(X, TWO, W).predict(NEW, t=times)
    again = np.repeat(np.arange(60), W.astype(int))
    repeated = KernelRidge(KERNEL, solver="flow").fit(X[again], TWO[again]).predict(NEW, t=times)
    assert weighted.shape == (3, 9, 2)
    np.testing.assert_allclose(weighted, repeated, atol=1e-9)


@pytest.mark.parametrize("weights", [None, W])
@pytest.mark.parametrize("intercept", [True, False])
def test_the_time_by_gcv_has_the_least_error_of_the_formula(intercept, weights):
    model = KernelRidge(KERNEL, solver=Flow(stop="gcv"), fit_intercept=intercept).fit(X, y, weights)
    stop, w = model.stopping_time_, np.ones(60) if weights is None else weights
    assert stop.criterion == "gcv"
    for place in (10, 50, int(stop.errors.argmin())):
        t = float(stop.times[place])
        identity = np.eye(60)
        smoother = KernelRidge(KERNEL, solver=Flow(t=t), fit_intercept=intercept).fit(X, identity, weights)
        H = smoother.predict(X)
        N, residual = w.sum(), y - H @ y
        expected = N * (w @ residual**2) / (N - np.trace(H)) ** 2
        assert float(stop.errors[place, 0]) == pytest.approx(expected, rel=1e-8)
    assert model.t_ == float(stop.times[int(stop.errors.argmin())])


def test_held_out_rows_choose_a_time_for_each_target_and_all_rows_are_fitted():
    model = KernelRidge(KERNEL, solver="flow", random_state=0).fit(X, TWO)
    stop = model.stopping_time_
    assert (stop.criterion, stop.held_out, stop.times.shape) == ("held_out", 60, (100,))
    assert model.t_[1] > 3 * model.t_[0]  # without noise the flow goes on
    assert np.all(model.dual_coef_ != 0)
    assert "60 rows held out in parts, like a ridge of about" in str(model.report())
    noisy = KernelRidge(KERNEL, solver="flow", random_state=0).fit(X, X[:, 0] + 2.0 * rng.normal(size=60))
    grid = rng.uniform(-1, 1, size=(200, 2))
    stopped, late = (np.mean((noisy.predict(grid, t=t) - grid[:, 0]) ** 2) for t in (noisy.t_, np.inf))
    assert stopped < 0.5 * late
    few = KernelRidge(KERNEL, solver="flow").fit(X[:20], y[:20])
    assert few.stopping_time_.criterion == "gcv"


@pytest.mark.parametrize("solver", ["flow", Flow(t=4.0), Flow(t=np.inf)])
def test_a_saved_model_predicts_at_all_times(solver, tmp_path):
    model = KernelRidge(KERNEL, solver=solver).fit(X, TWO)
    model.save(tmp_path / "model")
    again = mercer.load(tmp_path / "model")
    assert np.array_equal(again.predict(NEW), model.predict(NEW))
    np.testing.assert_allclose(again.predict(NEW, t=2.0), model.predict(NEW, t=2.0), atol=1e-12)
    assert np.array_equal(again.t_, model.t_)
    assert str(again.report()) == str(model.report())
    assert clone(model).solver == solver


def test_a_precomputed_kernel_flows_too():
    model = KernelRidge("precomputed", solver="flow", random_state=0).fit(KERNEL(X), y)
    expected = KernelRidge(KERNEL, solver="flow", random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict(KERNEL(NEW, X), t=1.0), expected.predict(NEW, t=1.0), atol=1e-10)
    assert model.t_ == pytest.approx(expected.t_)


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_predictions_scale_with_targets(size):
    plain, scaled = (KernelRidge(KERNEL, solver="flow", random_state=0).fit(X, s * y) for s in (1.0, size))
    np.testing.assert_allclose(scaled.predict(NEW) / size, plain.predict(NEW), rtol=1e-10)


def test_where_it_makes_no_sense_it_says_so():
    flow = KernelRidge(KERNEL, solver="flow").fit(X, y)
    assert flow.alpha_ == 0.0
    for t, words in ((-1.0, "must be a number >= 0, a time"), ([[1.0]], "a list of times"), ([], "a list of times")):
        with pytest.raises(InputError, match=words):
            flow.predict(NEW, t=t)
    with pytest.raises(InputError, match="needs solver='flow'"):
        KernelRidge(KERNEL).fit(X, y).predict(NEW, t=1.0)
    for alpha in (1.0, "gcv", [0.0, 2.0]):
        with pytest.raises(InputError, match="has no alpha"):
            KernelRidge(KERNEL, alpha=alpha, solver="flow").fit(X, TWO)
    with pytest.raises(InputError, match="n_landmarks=5 has no meaning"):
        KernelRidge(KERNEL, solver="flow", n_landmarks=5).fit(X, y)
    with pytest.raises(InputError, match="needs all rows in memory"):
        KernelRidge(KERNEL, solver="flow").fit(ArrayRows(X, y))
    with pytest.raises(InputError, match="takes rows in memory"):
        flow.predict(ArrayRows(NEW, np.zeros(9)), t=1.0)
    with pytest.raises(InputError, match="choose one of"):
        Flow(stop="never")


def test_a_flow_that_has_not_begun_has_a_report():
    with pytest.warns(ConvergenceWarning):
        model = KernelRidge("gaussian", solver=Flow(t=0.0)).fit(X, y)
    assert "t = 0 as given" in str(model.report())
