"""The dual solver: objectives of LIBSVM and of a quadratic program, and the laws of the optimum."""

import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import LinearConstraint, minimize
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.svm import SVC, SVR

from mercer.core.errors import InputError
from mercer.kernels import Gaussian
from mercer.losses import EpsilonInsensitive, Hinge, Quantile, Squared
from mercer.solvers.dual import Dual, Smoothed, balanced
from mercer.solvers.full_span import FullSpan
from mercer.solvers.objective import Objective
from mercer.testing.solvers import MatrixSystem


def scaled(load):
    X, y = load(return_X_y=True)
    return (X - X.mean(0)) / X.std(0), y


def span_of(X, width):
    return FullSpan.of(None, matrix=Gaussian(width)(torch.from_numpy(X)))


def hinge_objective(model, X, y, C):
    f = model.decision_function(X)
    c = model.dual_coef_[0] @ (f[model.support_] - model.intercept_)
    return C * np.maximum(0, 1 - y * f).sum() + 0.5 * c


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_the_hinge_objective_is_that_of_libsvm(load, C):
    X, y = scaled(load)
    y = np.where(y == 1, 1.0, -1.0)
    width = X.shape[1] ** 0.5
    problem = Objective(Hinge(), torch.from_numpy(y).unsqueeze(1), 1 / (2 * C), None, True)
    found = Dual(tol=1e-7).solve(span_of(X, width), problem)
    theirs = SVC(C=C, gamma=1 / (2 * width**2), tol=1e-6).fit(X, y)
    assert found.converged
    assert found.objective * C == pytest.approx(hinge_objective(theirs, X, y, C), rel=1e-5)


@pytest.mark.parametrize("epsilon", [0.0, 10.0])
def test_the_support_vector_regression_objective_is_that_of_libsvm(epsilon):
    X, y = scaled(load_diabetes)
    C, width = 5.0, 3.0
    problem = Objective(EpsilonInsensitive(epsilon), torch.from_numpy(y).unsqueeze(1), 1 / (2 * C), None, True)
    found = Dual(tol=1e-7).solve(span_of(X, width), problem)
    theirs = SVR(C=C, gamma=1 / (2 * width**2), epsilon=epsilon, tol=1e-6).fit(X, y)
    f = theirs.predict(X)
    norm = theirs.dual_coef_[0] @ (f[theirs.support_] - theirs.intercept_)
    least = C * np.maximum(0, np.abs(y - f) - epsilon).sum() + 0.5 * norm
    assert found.converged
    assert found.objective * C == pytest.approx(least, rel=1e-5)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("level", [0.1, 0.5])
def test_the_quantile_objective_is_that_of_a_quadratic_program(level, intercept):
    generator = np.random.default_rng(0)
    X = generator.uniform(-2, 2, size=(40, 1))
    y = np.sin(X[:, 0]) + generator.normal(scale=0.3, size=40)
    K = Gaussian(0.7)(torch.from_numpy(X)).numpy()
    alpha = 0.05
    low, high = -(1 - level) / (2 * alpha), level / (2 * alpha)
    sums = [LinearConstraint(np.ones((1, 40)), 0, 0)] if intercept else []
    program = minimize(
        lambda c: (0.5 * c @ K @ c - y @ c, K @ c - y),
        np.zeros(40),
        jac=True,
        bounds=[(low, high)] * 40,
        constraints=[{"type": "eq", "fun": lambda c: c.sum(), "jac": lambda c: np.ones(40)}] if sums else [],
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    problem = Objective(Quantile(level), torch.from_numpy(y).unsqueeze(1), alpha, None, intercept)
    found = Dual(tol=1e-9).solve(FullSpan.of(None, matrix=torch.from_numpy(K)), problem)
    assert found.converged
    assert found.objective == pytest.approx(-2 * alpha * program.fun, rel=1e-6)


def test_the_dual_variables_obey_the_conditions_of_the_optimum():
    X, y = scaled(load_breast_cancer)
    signs = torch.from_numpy(np.where(y == 1, 1.0, -1.0)).unsqueeze(1)
    found = Dual(tol=1e-10).solve(span_of(X, 5.0), Objective(Hinge(), signs, 0.05, None, True))
    c, margin = signs * found.value, signs * found.fitted
    assert float(c.min()) >= 0
    assert float(c.max()) <= 10 + 1e-12
    assert abs(float(found.value.sum())) < 1e-9
    assert bool((margin[c == 0] >= 1 - 1e-5).all())
    assert bool((margin[c >= 10 - 1e-9] <= 1 + 1e-5).all())
    free = (c > 1e-6) & (c < 10 - 1e-6)
    assert torch.allclose(margin[free], torch.ones(1).double(), atol=1e-4)


def test_the_residual_bounds_the_distance_to_the_least_objective():
    X, y = scaled(load_iris)
    signs = torch.from_numpy(np.where(y == 1, 1.0, -1.0)).unsqueeze(1)
    problem = Objective(Hinge(), signs, 0.05, None, True)
    exact = Dual(tol=1e-11).solve(span_of(X, 2.0), problem).objective
    for tol in (1e-1, 1e-2, 1e-4):
        found = Dual(tol=tol).solve(span_of(X, 2.0), problem)
        assert found.residual <= tol
        assert found.objective - exact <= found.residual * found.objective * (1 + 1e-6)


@pytest.mark.parametrize("loss", [Hinge(), Quantile(0.3), EpsilonInsensitive(0.2)])
def test_integer_weights_equal_repeated_rows(loss):
    generator = torch.Generator().manual_seed(1)
    X = torch.randn(30, 2, generator=generator).double()
    y = torch.where(X[:, :1] + 0.5 * torch.randn(30, 1, generator=generator) > 0, 1.0, -1.0).double()
    w = torch.tensor([1.0, 2.0, 0.0] * 10).double()
    index = torch.repeat_interleave(torch.arange(30), w.long())
    K = Gaussian(1.0)(X)
    one = Dual(tol=1e-11).solve(FullSpan.of(None, matrix=K), Objective(loss, y, 0.1, w))
    two = Dual(tol=1e-11).solve(FullSpan.of(None, matrix=K[index][:, index]), Objective(loss, y[index], 0.1))
    assert torch.allclose(one.fitted[index], two.fitted, atol=1e-5)
    assert one.objective == pytest.approx(two.objective, rel=1e-9)


def test_products_alone_reach_the_same_objective():
    X, y = scaled(load_iris)
    signs = torch.from_numpy(np.where(y == 1, 1.0, -1.0)).unsqueeze(1)
    K = Gaussian(2.0)(torch.from_numpy(X))
    problem = Objective(Hinge(), signs, 0.5, None, True)
    stored = Dual(tol=1e-7).solve(FullSpan.of(None, matrix=K), problem)
    lazy = Dual(tol=1e-6).solve(FullSpan.of(MatrixSystem(K), rank=40), problem)
    assert lazy.converged
    assert lazy.objective == pytest.approx(stored.objective, rel=2e-6)


def test_equal_rows_and_a_constant_kernel_have_an_answer():
    K = torch.ones(6, 6).double()
    y = torch.tensor([1.0, 1.0, 1.0, 1.0, -1.0, -1.0]).double().unsqueeze(1)
    found = Dual().solve(FullSpan.of(None, matrix=K), Objective(Hinge(), y, 0.1))
    f = torch.linspace(-2, 2, 4001).double()
    brute = (Hinge().value(y, f.unsqueeze(0).expand(6, -1)).sum(0) + 0.1 * f**2).min()
    assert found.objective == pytest.approx(float(brute), rel=1e-5)


def test_too_few_steps_are_reported_and_still_finite():
    X, y = scaled(load_iris)
    signs = torch.from_numpy(np.where(y == 1, 1.0, -1.0)).unsqueeze(1)
    found = Dual(tol=1e-9, max_iter=2).solve(span_of(X, 2.0), Objective(Hinge(), signs, 1e-6, None, True))
    assert not found.converged
    assert "stopped after max_iter=2 " in found.reason
    assert bool(torch.isfinite(found.value).all())


def test_balanced_columns_sum_to_zero_and_stay_in_the_box():
    c = torch.tensor([[3.0, 0.0], [1.0, 0.0], [-2.0, -1.0]]).double()
    even = balanced(c)
    assert float(even.sum(0).abs().max()) < 1e-15
    assert bool((even.abs() <= c.abs()).all())


def test_smooth_losses_are_sent_to_newton():
    problem = Objective(Squared(), torch.ones(2, 1).double(), 1.0)
    with pytest.raises(InputError, match="use Newton"):
        Dual().solve(FullSpan.of(None, matrix=torch.eye(2).double()), problem)
    with pytest.raises(InputError, match="tol=2"):
        Dual(tol=2)
    with pytest.raises(InputError, match="max_iter=0"):
        Dual(max_iter=0)


@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.3), Quantile(0.2)], ids=lambda loss: loss.name)
def test_between_its_corners_the_slope_of_a_smoothed_loss_is_a_line(loss):
    generator = torch.Generator().manual_seed(0)
    y, f, d = (torch.randn(20, 1, generator=generator).double() for _ in range(3))
    y = y.sign() if isinstance(loss, Hinge) else y
    smooth = Smoothed.of(Objective(loss, y, 0.3), 0.5, 0.3 * f)

    def slope(s):
        return float((smooth.gradient(y, f + s * d) * d).sum())

    corners = smooth.corners(y, f, d).sort().values.tolist()
    bends = [0.0]
    for low, high in itertools.pairwise(corners):
        assert slope((low + high) / 2) == pytest.approx((slope(low) + slope(high)) / 2, abs=1e-9)
        bends.append((slope(high) - slope(low)) / max(high - low, 1e-12))
    assert max(bends) > 1.0  # it does bend at corners


def test_a_step_along_steep_kinks_looks_at_few_places():
    generator = torch.Generator().manual_seed(0)
    X = (torch.randn(80, 3, generator=generator).double() * torch.tensor([1.0, 100.0, 1e4])).round()
    y = torch.where(torch.randn(80, 1, generator=generator) > 1.5, 1.0, -1.0).double()
    looks = []

    class Counted(Objective):
        def look(self, f):
            looks.append(1)
            return super().look(f)

    found = Dual().solve(FullSpan.of(None, matrix=X @ X.T), Counted(Hinge(), y, 1.0, None, True))
    assert found.iterations > 10
    assert len(looks) < 12 * found.iterations  # bisection takes 25 places
