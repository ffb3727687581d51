"""The laws of solvers, and that `check_solver` sees a solver that breaks them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch

from mercer.kernels import Gaussian, Laplace, Linear, Polynomial
from mercer.operators import Weighted, gram
from mercer.solvers import SOLVERS, Cholesky, Eigh, Solution, get_solver, ridge_solve
from mercer.testing.solvers import MatrixSystem, check_solver, true_backward_error


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_every_solver_keeps_the_laws_with_its_own_settings(name):
    check_solver(get_solver(name), n=20)


@pytest.mark.parametrize("options", [{"preconditioner": "nystrom"}, {"preconditioner": None, "max_iter": 50}])
def test_options_keep_the_laws(options):
    check_solver(get_solver("pcg", **options), n=20)


@dataclass(frozen=True)
class Tampered:
    """A Cholesky solver whose answer is changed afterwards."""

    change: object

    def solve(self, A, B, alpha):
        return self.change(Cholesky().solve(A, B, alpha))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda s: replace(s, value=s.value * (1 + 1e-6)), "which is too small: the backward error is"),
        (lambda s: replace(s, value=s.value * (1 + 1e-6), residual=5e-7), "says it converged with a backward error"),
        (lambda s: replace(s, residual=0.9), "reports a residual of 9.0e-01, which is too large"),
        (
            lambda s: replace(s, converged=False, reason="too hard"),
            "did not converge, as every solver has to: too hard",
        ),
        (lambda s: replace(s, value=s.value.float()), "which is too small"),
        (lambda s: replace(s, value=s.value * torch.nan), "not finite"),
        (lambda s: replace(s, value=s.value.reshape(-1)), "shape"),
        (lambda s: replace(s, converged=False, reason=""), "no reason"),
        (lambda s: replace(s, residual=float("nan")), "NaN"),
    ],
)
def test_check_solver_sees_a_wrong_solver(change, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_solver(Tampered(change))


def a_solution(value, converged, residual, reason="too hard"):
    return Solution("mine", converged, residual, reason=reason, value=value)


def relative_residual(A, x, B, alpha):
    x, b = x.reshape(len(B), -1), B.reshape(len(B), -1)
    return float(((b - A.matrix @ x - alpha * x).norm(dim=0) / b.norm(dim=0)).max())


@dataclass(frozen=True)
class Made:
    """A solver that is a function."""

    solve: object


def given_back(A, B, alpha):
    return a_solution(B.clone(), False, relative_residual(A, B, B, alpha))


@pytest.mark.parametrize(
    ("solve", "complaint"),
    [
        (given_back, "did not converge, as every solver has to"),
        (lambda A, B, alpha: replace(given_back(A, B, alpha), residual=0.0), "which is too small"),
        (lambda A, B, alpha: replace(given_back(A, B, alpha), residual=1e6), "which is too large"),
        (lambda A, B, alpha: a_solution(torch.zeros_like(B), False, 1.0), "did not converge, as every solver has to"),
        (lambda A, B, alpha: a_solution(B * torch.nan, False, 0.5), "for a value that is not finite"),
        (lambda A, B, alpha: a_solution(B * torch.nan, False, torch.inf), "did not converge, as every solver has to"),
    ],
)
def test_check_solver_sees_useless_and_lying_solvers(solve, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_solver(Made(solve))


def test_check_solver_sees_a_tolerance_that_is_none_and_an_object_that_is_no_solver():
    class Anything:
        tol = 0.99

        def solve(self, A, B, alpha):
            return a_solution(0.5 * B / (1 + torch.as_tensor(alpha)), True, 0.5)

    with pytest.raises(AssertionError, match="above 1e-02"):
        check_solver(Anything())
    with pytest.raises(AssertionError, match="has no solve"):
        check_solver(object())


def test_check_solver_sees_a_solver_that_takes_one_alpha_for_all():
    def careless(A, B, alpha):
        first = float(torch.as_tensor(alpha, dtype=torch.float64).reshape(-1)[0])
        return Cholesky().solve(A, B, first)

    with pytest.raises(AssertionError, match="one alpha per column"):
        check_solver(Made(careless))


@pytest.mark.parametrize("size", [0.0, 1.0])
def test_check_solver_accepts_an_honest_solver_that_gives_up_on_hard_systems(size):
    def solve(A, B, alpha):
        smallest = float(torch.as_tensor(alpha).min())
        values = torch.linalg.eigvalsh(A.matrix) + smallest
        if values[0] > 0.1 * values[-1]:
            return Cholesky().solve(A, B, alpha)
        x = size * B
        return a_solution(x, False, relative_residual(A, x, B, alpha))

    check_solver(Made(solve))


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e160, 1e300])
@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_solutions_scale_with_their_targets(name, size):
    X = torch.randn(80, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    A, B, sizes = MatrixSystem(Laplace()(X)), X.sin(), torch.tensor([size, 1.0], dtype=torch.float64)
    plain, scaled = (get_solver(name).solve(A, B * s, 2.0) for s in (torch.ones(2), sizes))
    assert plain.converged
    assert scaled.converged
    assert scaled.residual == pytest.approx(plain.residual, rel=1e-6, abs=1e-15)
    assert scaled.iterations == plain.iterations
    torch.testing.assert_close(scaled.value / sizes, plain.value, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("size", [1e-200, 1e200])
@pytest.mark.parametrize("name", ["eigenpro", "gd"])
def test_descents_without_a_ridge_scale_with_their_targets(name, size):
    X = torch.randn(80, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    A, b, solver = MatrixSystem(Laplace()(X)), X[:, 0].sin(), get_solver(name, validation=0.1, max_iter=30)
    plain, scaled = solver.solve(A, b), solver.solve(A, b * size)
    assert (scaled.converged, scaled.iterations) == (plain.converged, plain.iterations)
    torch.testing.assert_close(scaled.value / size, plain.value, rtol=1e-10, atol=1e-12)


def test_a_warm_start_is_scaled_with_its_targets():
    X = torch.randn(80, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    A, b = MatrixSystem(Laplace()(X)), 1e-200 * X[:, 0].sin()
    found = get_solver("pcg").solve(A, b, 2.0)
    assert get_solver("pcg", warm_start=found.value).solve(A, b, 2.0).iterations == 0


def test_check_solver_sees_a_solver_that_overwrites_its_input():
    class Greedy:
        def solve(self, A, B, alpha):
            solution = Cholesky().solve(A, B, alpha)
            B.zero_()
            return solution

    with pytest.raises(AssertionError, match="right-hand side it was given"):
        check_solver(Greedy())


def test_check_solver_sees_a_solver_that_accepts_indefinite_systems():
    class Careless:
        def solve(self, A, B, alpha):
            alphas = torch.as_tensor(alpha, dtype=torch.float64).expand(B.reshape(len(B), -1).shape[1])
            columns = B.reshape(len(B), -1).double().unbind(1)
            eye = torch.eye(len(B), dtype=torch.float64)
            x = [torch.linalg.solve(A.dense().double() + a * eye, b) for a, b in zip(alphas, columns, strict=True)]
            good = Cholesky().solve(MatrixSystem(torch.eye(1)), torch.ones(1), 1.0)
            value = torch.stack(x, 1).reshape(B.shape)
            return replace(good, value=value, residual=true_backward_error(A.dense(), value, B, alpha))

    with pytest.raises(AssertionError, match="not positive definite"):
        check_solver(Careless())


@pytest.mark.parametrize("solver", ["cholesky", "eigh"])
@pytest.mark.parametrize("alpha", [1e-8, 1e-2, 1e3])
def test_the_reported_residual_is_the_true_backward_error_of_a_gram_system(solver, alpha):
    X = torch.rand(120, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    w = torch.linspace(0.1, 3.0, 120, dtype=torch.float64)
    K = gram(Laplace(0.5), X)
    A = Weighted(K, w.sqrt())
    B = torch.stack([X.sum(1), X[:, 0].sin()], dim=1)
    solution = ridge_solve(A, B, alpha, solver)
    truth = true_backward_error(A.dense(), solution.value, B, alpha)
    assert solution.converged
    assert solution.residual < 1e-13
    assert truth < 1e-14 + 5 * solution.residual


def test_one_alpha_per_target_costs_one_factorisation_per_distinct_alpha(monkeypatch):
    counted = []
    prepare = Cholesky.prepare
    monkeypatch.setattr(Cholesky, "prepare", lambda self, A, a: counted.append(a) or prepare(self, A, a))
    A = MatrixSystem(torch.eye(3).double())
    B = torch.arange(12.0).reshape(3, 4)
    solution = ridge_solve(A, B, torch.tensor([1.0, 3.0, 1.0, 3.0]), "cholesky")
    assert counted == [1.0, 3.0]
    torch.testing.assert_close(solution.value, B.double() / torch.tensor([2.0, 4.0, 2.0, 4.0]))


def test_float32_systems_are_solved_in_float64():
    X = torch.rand(60, 2, generator=torch.Generator().manual_seed(0))
    K = gram(Gaussian(0.5), X)
    assert K.dtype == torch.float32
    b = X[:, 0]
    reference = torch.linalg.solve(K.dense().double() + 1e-3 * torch.eye(60).double(), b.double())
    # Eigh takes the negative eigenvalues that float32 rounding makes, about 1e-7, as zero
    for solver, tolerance in ((Cholesky(), 1e-11), (Eigh(), 1e-5)):
        solution = solver.solve(K, b, 1e-3)
        assert solution.value.dtype == torch.float64
        assert solution.converged
        torch.testing.assert_close(solution.value, reference, rtol=0, atol=tolerance * float(reference.abs().max()))


@pytest.mark.parametrize("name", ["cholesky", "eigh", "mixed_cholesky"])
@pytest.mark.parametrize("offset", [0.0, 1e2, 1e4])
def test_predictions_that_are_rounding_errors_are_reported(name, offset):
    """Features far from zero give polynomial kernels so large values that alpha is lost beside them."""
    X = torch.randn(200, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + offset
    K, y = Polynomial(2)(X), X[:, 0].sin()
    found = get_solver(name).solve(MatrixSystem(K), y, 1e-2)
    off = float((K @ found.value + 1e-2 * found.value - y).norm() / y.norm())
    assert off < 2.0
    assert found.converged == (off < 1e-2)
    assert found.converged == (offset < 1e4) or name == "mixed_cholesky"
    assert found.converged or "larger alpha" in found.reason


@pytest.mark.parametrize("name", ["cholesky", "eigh", "mixed_cholesky"])
def test_a_small_share_of_rounding_errors_is_reported_and_nothing_is_left_out_for_it(name):
    X = 2.0 * torch.randn(300, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    K, y = Linear()(X), X[:, 0].sin()
    found = get_solver(name).solve(MatrixSystem(K), y, 1e-12)
    off = float((K @ found.value + 1e-12 * found.value - y).norm() / y.norm())
    assert off > 1e-2
    assert not found.converged
    if name != "mixed_cholesky":  # whose float32 factor is too coarse for this
        assert off < 0.5
        assert "rounding errors of the Gram matrix" in found.reason


def test_unknown_solvers_and_bad_alphas_are_named():
    A, b = MatrixSystem(torch.eye(2).double()), torch.ones(2)
    with pytest.raises(ValueError, match="solver='qr' is unknown; the solvers are 'cholesky', 'eigenpro', 'eigh'"):
        ridge_solve(A, b, 1.0, "qr")
    with pytest.raises(TypeError, match="solver=3"):
        ridge_solve(A, b, 1.0, 3)
    for bad in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"alpha={bad}"):
            ridge_solve(A, b, bad, "cholesky")
    with pytest.raises(ValueError, match="one for each of 1 targets"):
        ridge_solve(A, b, torch.ones(2), "eigh")
    with pytest.raises(ValueError, match=r"shape \(3,\) but the system has 2 rows"):
        ridge_solve(A, torch.ones(3), 1.0, "eigh")
    with pytest.raises(ValueError, match="right-hand side contains NaN"):
        ridge_solve(A, torch.tensor([1.0, torch.nan]), 1.0, "cholesky")
    with pytest.raises(ValueError, match="square matrix"):
        ridge_solve(MatrixSystem(torch.ones(2, 3)), b, 1.0, "cholesky")
