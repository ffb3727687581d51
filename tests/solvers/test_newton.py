"""Newton's method: minima against independent optimisers, on every kind of span."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.kernels import Gaussian
from mercer.losses import LOSSES, Loss, get_loss
from mercer.solvers.few_span import FewSpan
from mercer.solvers.full_span import FullSpan
from mercer.solvers.minimise import minimise
from mercer.solvers.newton import Newton
from mercer.solvers.newton_system import NewtonSystem
from mercer.solvers.objective import Objective
from mercer.solvers.pivoted_cholesky import pivoted_cholesky
from mercer.solvers.products import Products
from mercer.solvers.row_blocks import RowBlocks
from mercer.testing.solvers import MatrixSystem

SMOOTH = [name for name in LOSSES if get_loss(name).smooth]
KERNEL = Gaussian(1.0)


@pytest.fixture(scope="module")
def sample():
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(60, 2, generator=generator).double()
    noise = torch.randn(60, generator=generator).double()
    return (
        X,
        torch.where(X[:, 0] + 0.4 * noise > 0.2, 1.0, -1.0).double(),
        0.5 + torch.rand(60, generator=generator).double(),
    )


def objective(name, sample, intercept, alpha=0.2):
    X, y, w = sample
    loss = get_loss(name)
    if loss.joint:
        codes = (y > 0).double() + (X[:, 1] > 0.5)
        return Objective(loss, codes, alpha, w, intercept, 3)
    return Objective(loss, y.unsqueeze(1), alpha, w, intercept)


def spans(sample):
    X, y, _ = sample
    K = KERNEL(X)
    points = Points(X)
    return {
        "stored": FullSpan.of(None, matrix=K),
        "iterative": FullSpan.of(MatrixSystem(K), rank=20),
        "landmarks": FewSpan.of(RowBlocks(KERNEL, points, points, y.unsqueeze(1), size=25), K),
    }


def reference(problem, K):
    """The least objective that BFGS finds in the coordinates of a root of K."""
    values, vectors = torch.linalg.eigh(K)
    root = (vectors * values.clamp(min=0).sqrt())[:, values > 1e-10]
    r, t = root.shape[1], problem.outputs

    def function(z):
        u = torch.from_numpy(z[: r * t]).reshape(r, t)
        b = torch.from_numpy(z[r * t :]) if problem.intercept else torch.zeros(t).double()
        f = root @ u + b
        g = problem.gradient(f)
        slope = [(root.T @ g + 2 * problem.alpha * u).reshape(-1)] + ([g.sum(0)] if problem.intercept else [])
        return problem.loss_sum(f) + problem.alpha * float((u * u).sum()), torch.cat(slope).numpy()

    start = np.zeros(r * t + t * problem.intercept)
    return minimize(
        function, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9}
    ).fun


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", SMOOTH)
def test_every_span_reaches_the_least_objective(name, intercept, sample):
    problem = objective(name, sample, intercept)
    least = reference(problem, KERNEL(sample[0]))
    for kind, span in spans(sample).items():
        found = Newton(tol=1e-10).solve(span, problem)
        assert found.converged, kind
        assert abs(found.objective - least) < 1e-7 * least, kind


@pytest.mark.parametrize("name", SMOOTH)
def test_at_the_minimum_the_coefficients_are_the_gradient_divided_by_two_alpha(name, sample):
    problem = objective(name, sample, True)
    found = Newton(tol=1e-12).solve(spans(sample)["stored"], problem)
    assert torch.allclose(2 * problem.alpha * found.value, -problem.gradient(found.fitted), atol=1e-6)
    assert float(found.value.sum(0).abs().max()) < 1e-6


def test_the_squared_loss_is_ridge_regression(sample):
    X, y, w = sample
    K = KERNEL(X)
    found = Newton().solve(FullSpan.of(None, matrix=K), Objective(get_loss("squared"), y.unsqueeze(1), 0.3, w))
    c = torch.linalg.solve(K + 0.3 * torch.diag(1 / w), y)
    assert torch.allclose(found.value[:, 0], c, atol=1e-10)


def test_integer_weights_equal_repeated_rows(sample):
    X, y, _ = sample
    w = torch.tensor([1.0, 2.0, 3.0] * 20).double()
    index = torch.repeat_interleave(torch.arange(60), w.long())
    one = Newton(tol=1e-12).solve(
        FullSpan.of(None, matrix=KERNEL(X)), Objective(get_loss("logistic"), y.unsqueeze(1), 0.2, w, True)
    )
    two = Newton(tol=1e-12).solve(
        FullSpan.of(None, matrix=KERNEL(X[index])),
        Objective(get_loss("logistic"), y[index].unsqueeze(1), 0.2, None, True),
    )
    assert torch.allclose(one.fitted[index], two.fitted, atol=1e-8)


def test_too_few_steps_are_reported_and_still_finite(sample):
    found = Newton(tol=1e-12, max_iter=1).solve(spans(sample)["stored"], objective("logistic", sample, True, 1e-4))
    assert not found.converged
    assert "stopped after max_iter=1 " in found.reason
    assert bool(torch.isfinite(found.value).all())


def test_separable_data_and_a_tiny_alpha_stay_finite():
    X = torch.tensor([[-1.0], [-0.9], [0.9], [1.0]]).double()
    y = torch.tensor([[-1.0], [-1.0], [1.0], [1.0]]).double()
    found = Newton().solve(FullSpan.of(None, matrix=KERNEL(X)), Objective(get_loss("logistic"), y, 1e-10))
    assert bool(torch.isfinite(found.value).all())
    assert bool((found.fitted * y > 1).all())


def test_a_loss_that_is_not_convex_gives_a_local_solution_and_says_so():
    @dataclass(frozen=True)
    class Cauchy(Loss):
        convex = False

        def value(self, y, f):
            return torch.log1p((y - f) ** 2)

    X = torch.linspace(-2, 2, 50).double().unsqueeze(1)
    y = torch.sin(2 * X)
    y[::10] = 8.0
    problem = Objective(Cauchy(), y, 0.01)
    found = Newton(tol=1e-10).solve(FullSpan.of(None, matrix=KERNEL(X)), problem)
    assert found.converged
    assert "local solution" in found.reason
    residual = 2 * problem.alpha * found.value + problem.gradient(found.fitted)
    assert float(residual.abs().max()) < 1e-4
    good = torch.ones(50, dtype=torch.bool)
    good[::10] = False
    assert float((found.fitted - torch.sin(2 * X))[good].abs().max()) < 0.3


def test_a_warm_start_needs_fewer_steps(sample):
    span = spans(sample)["stored"]
    problem = objective("logistic", sample, True)
    first = minimise(span, problem)
    again = minimise(span, replace(problem, alpha=0.19), first)
    assert again.iterations < first.iterations


def test_wrong_arguments_are_refused(sample):
    with pytest.raises(InputError, match="tol=0"):
        Newton(tol=0)
    with pytest.raises(InputError, match="max_iter=0"):
        Newton(max_iter=0)
    with pytest.raises(InputError, match="alpha=0"):
        Objective(get_loss("squared"), torch.ones(2, 1), 0.0)


@pytest.mark.parametrize("name", ["logistic", "multinomial", "huber"])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_start_from_a_low_rank_copy_changes_the_way_and_not_the_minimum(name, intercept, sample):
    problem = objective(name, sample, intercept, alpha=0.01)
    with_copy, without = (FullSpan.of(MatrixSystem(KERNEL(sample[0])), rank=30) for _ in range(2))
    found, expected = minimise(with_copy, problem), Newton().solve(without, problem)
    assert found.objective == pytest.approx(expected.objective, rel=1e-7)
    assert found.iterations < expected.iterations


def test_parabolas_may_touch_the_losses_elsewhere(sample):
    problem = objective("logistic", sample, intercept=True)
    generator = torch.Generator().manual_seed(1)
    at = torch.randn(60, 1, generator=generator).double()
    for span in spans(sample).values():
        c = torch.randn(span.m, 1, generator=generator).double() * 0.1
        f = span.values(c) + 0.3
        step = span.newton(problem.at(f), c, 1e-12, at)
        end = f + step.f
        gradient = problem.gradient(at) + problem.loss.hessian(problem.targets, at) * problem.w * (end - at)
        penalty = 2 * problem.alpha * (span.values(c + step.c))
        K = KERNEL(sample[0])
        assert torch.allclose(K @ gradient + penalty, torch.zeros_like(f), atol=1e-7)
        assert abs(float(gradient.sum())) < 1e-7


def test_the_root_of_a_joint_loss_is_found_in_parts(sample, monkeypatch):
    problem = objective("multinomial", sample, intercept=False)
    f = torch.randn(60, 3, generator=torch.Generator().manual_seed(2)).double()
    H = problem.loss.hessian(problem.targets, f) * problem.weights.reshape(-1, 1, 1)
    monkeypatch.setattr("mercer.solvers.objective.BLOCKS", 7)
    root = problem.at(f).root
    assert torch.allclose(root.scale.square(), H.diagonal(dim1=1, dim2=2))
    for V in torch.eye(3).double():
        image = torch.einsum("nij,nj->ni", H, V.expand(60, 3))
        assert torch.allclose(root.apply(root.transposed(V.expand(60, 3))), image)


def test_a_newton_step_with_given_sums_solves_both_of_its_equations(sample):
    problem = objective("multinomial", sample, intercept=True)
    generator = torch.Generator().manual_seed(3)
    f, right = (torch.randn(60, 3, generator=generator).double() for _ in range(2))
    root, sums = problem.at(f).root, torch.tensor([0.4, -0.1, -0.3]).double()
    products = Products.of(MatrixSystem(KERNEL(sample[0])))
    factor = pivoted_cholesky(products.system, 20, seed=0)
    system = NewtonSystem.of(products, factor.F, factor.left, root, 0.4, right.shape)
    v, b, _ = system.solve_with_sums(right, sums, 1e-12)
    residual = system.product(v.reshape(-1, 1)).reshape(60, 3) + root.transposed(b.expand(60, 3)) - right
    assert torch.allclose(root.apply(v).sum(0), sums, atol=1e-9)
    assert float(residual.abs().max()) < 1e-8
