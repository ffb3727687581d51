"""A minimum that says converged predicts what is right, however large kernel values, weights and alphas are."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

from mercer import KernelClassifier, KernelRegressor, KernelRidge
from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.kernels import Gaussian, Linear, Matern, Polynomial
from mercer.losses import Multinomial, get_loss
from mercer.solvers.few_span import FewSpan
from mercer.solvers.full_span import FullSpan
from mercer.solvers.minimise import excess_of, minimise
from mercer.solvers.newton import Newton
from mercer.solvers.objective import Objective
from mercer.solvers.row_blocks import RowBlocks

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = np.sin(X[:, 0])
ONE_ROW = np.eye(40)[0]
OFFSETS = [0.0, 1e5, 1e6, 1e8, 1e12]
SMOOTH = ["squared", "logistic", "squared_hinge", "huber"]


def fitted(model, *data):
    """The fit, or None where it is refused in words of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return model.fit(*data)
        except InputError:
            return None


@pytest.mark.parametrize("offset", OFFSETS)
def test_the_row_with_weight_is_predicted_as_ridge_does(offset):
    found = KernelRegressor(Linear(1.0), fit_intercept=False, alpha=1.0).fit(X + offset, Y, ONE_ROW)
    right = KernelRidge(Linear(1.0), fit_intercept=False, alpha=1.0).fit(X + offset, Y, ONE_ROW)
    assert found.solver_report_.converged
    assert found.predict(X[:1] + offset)[0] == pytest.approx(right.predict(X[:1] + offset)[0], abs=1e-9)


@pytest.mark.parametrize("alpha", [1e-18, 1e-15, 1e-12, 1e-8])
@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern(2.5, 1.0), Linear(1.0)])
def test_squared_loss_converges_only_where_it_is_ridge(kernel, alpha):
    labels = np.where(Y > 0, 1.0, -1.0)
    found = fitted(KernelClassifier(kernel, loss="squared", alpha=alpha, fit_intercept=False), X, Y > 0)
    if found is not None and found.solver_report_.converged:
        values, vectors = np.linalg.eigh(np.asarray(kernel(X)))
        kept = values > 1e-13 * values[-1]
        right = vectors[:, kept] @ ((values / (values + alpha))[kept] * (vectors[:, kept].T @ labels))
        assert np.abs(found.decision_function(X) - right).max() <= 1e-2


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("solver", ["auto", "nystrom"])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge"])
def test_a_shift_of_the_data_changes_no_objective_that_has_converged(loss, solver, offset):
    """In high precision: with f = <v, x - offset> + b the shifted problem is one over the plane of v, with a norm."""
    found = fitted(KernelClassifier(Linear(1.0), loss=loss, solver=solver, alpha=1.0), X + offset, Y > 0)
    if offset == 0.0:
        assert found.solver_report_.converged
    if found is None or not found.solver_report_.converged:
        return
    labels = np.where(Y > 0, 1.0, -1.0)
    values = found.decision_function(X + offset)
    line = np.linalg.lstsq(np.c_[X, np.ones(40)], values, rcond=None)[0]
    value = {"logistic": lambda m: np.logaddexp(0, -m), "hinge": lambda m: np.maximum(0, 1 - m)}
    value["squared_hinge"] = lambda m: value["hinge"](m) ** 2
    objective = value[loss](labels * values).sum() + line[:2] @ line[:2]  # its offset may be in v or in b
    assert found.objective_ == pytest.approx(objective, rel=3e-2)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", [*SMOOTH, "hinge", "quantile"])
@pytest.mark.parametrize("alpha", [1e-6, 1.0])
def test_the_bound_is_above_what_a_disturbed_minimum_loses(name, alpha, intercept):
    target = torch.from_numpy(np.sign(Y) if "hinge" in name or name == "logistic" else Y).unsqueeze(1)
    weights = torch.from_numpy(np.logspace(-3, 3, 40))
    problem = Objective(get_loss(name), target, alpha, weights, intercept)
    K = Gaussian(1.0)(torch.from_numpy(X))
    span = FullSpan.of(None, matrix=K)
    found = minimise(span, problem, tol=1e-10)
    assert found.error_bound < 1e-3
    if not get_loss(name).smooth:
        return
    for size in (1e-6, 1e-4):
        noise = size * torch.from_numpy(np.random.default_rng(1).normal(size=(40, 1))) * found.value.abs()
        moved = minimise(span, problem, tol=1e-10)
        c = found.value + noise - intercept * noise.mean()
        plain = K @ c
        lost = problem.loss_sum(plain + moved.intercept) + alpha * float((c * plain).sum()) - found.objective
        bound = float(span.excess(problem, c, plain + moved.intercept).sum())
        assert lost <= 1.2 * bound + 1e-12 * found.objective


def test_what_landmarks_leave_out_as_rounding_is_told():
    model = fitted(KernelClassifier(Linear(1.0), solver="nystrom", alpha=1.0), X + 1e8, Y > 0)
    assert not model.solver_report_.converged
    assert model.solver_report_.error_bound > 1e-3
    assert "predictions may be off" in model.solver_report_.reason


def test_heavy_weights_do_not_hide_the_rest():
    scales = np.logspace(-8, 8, 4)
    Z = RNG.normal(size=(30, 4)) * scales
    y = Z @ (1.0 / scales)
    w = np.logspace(0, 12, 30)
    found = fitted(KernelRegressor(Polynomial(2), max_iter=3, alpha=1.0), Z, y, w)
    if found is not None and found.solver_report_.converged:
        ridge = fitted(KernelRidge(Polynomial(2), alpha=1.0), Z, y, w)
        size = np.sqrt(np.average((y - np.average(y, weights=w)) ** 2, weights=w))
        gap = np.sqrt(np.average((found.predict(Z) - ridge.predict(Z)) ** 2, weights=w))
        assert gap <= 3e-3 * size


def test_landmarks_reach_the_bound_of_all_rows():
    K = Gaussian(1.0)(torch.from_numpy(X))
    target = torch.from_numpy(Y).unsqueeze(1)
    problem = Objective(get_loss("huber"), target, 1e-3, None, True)

    points = Points(torch.from_numpy(X))
    span = FewSpan.of(RowBlocks(Gaussian(1.0), points, points, target, size=16), K)
    found = minimise(span, problem)
    assert found.converged
    assert float(excess_of(span, problem, found).sum()) < 1e-8


@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_what_several_classes_lose_on_landmarks_is_at_most_what_is_estimated(seed, alpha):
    rng = np.random.default_rng(seed)
    rows = Points(torch.from_numpy(rng.normal(size=(300, 2))))
    scores = np.sin(2 * rows.values[:, 0]) + rows.values[:, 1] + [0.05, 0.5, 2.0][seed] * rng.normal(size=300)
    codes = torch.from_numpy(np.digitize(scores, [-1.0, -0.5, 0.7, 2.0])).double()  # one class has few rows
    weights = torch.from_numpy(rng.choice([0.01, 1.0, 30.0], size=300)) if seed else None
    problem = Objective(Multinomial(), codes, alpha, weights, True, 5)
    landmarks = Points(rows.values[:30])
    blocks = RowBlocks(Gaussian(1.0), rows, landmarks, codes.unsqueeze(1), weights=weights, size=100)
    span = FewSpan.of(blocks, Gaussian(1.0)(landmarks.values))
    least = Newton(tol=1e-14).solve(span, problem)
    near = span.descended(problem, None)
    for c, b in [(near.value, near.intercept), *((share * least.value, least.intercept) for share in (0.9, 0.999))]:
        f = span.values(c) + b
        lost = problem.loss_sum(f) + alpha * float(c.square().sum()) - least.objective
        span.rough = None
        estimate = float(span.excess(problem, c, f).sum())
        assert lost <= estimate
        assert lost > 1e-3 * least.objective or estimate <= 0.1 * least.objective
