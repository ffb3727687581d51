"""The laws of a solver: run `check_solver` on one of your own."""

from __future__ import annotations

import numbers
from dataclasses import dataclass

import torch
from torch import Tensor

from mercer.core.errors import NotPositiveDefiniteError
from mercer.core.results import Solution
from mercer.solvers.system import Solver

ALPHAS = (1e-10, 1e-6, 1e-2, 1.0, 1e4)
CONDITIONS = (1e0, 1e4, 1e8, 1e12)
EASY = 10.0  # condition number up to which a solver has to converge
TOLERANCE, LARGEST_TOLERANCE = 1e-9, 1e-2
ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class MatrixSystem:
    """A system given by its matrix: the smallest thing a solver accepts.

    >>> MatrixSystem(torch.eye(3)).shape
    (3, 3)
    """

    matrix: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape[0], self.matrix.shape[1]

    def dense(self) -> Tensor:
        return self.matrix.clone()

    def diag(self) -> Tensor:
        return self.matrix.diagonal().clone()

    def rows(self, index: Tensor) -> Tensor:
        return self.matrix[index]

    def matmul(self, V: Tensor) -> Tensor:
        return self.matrix.to(V.dtype) @ V


def check_solver(solver: Solver, n: int = 40, seed: int = 0) -> None:
    r"""Assert the laws every solver of (A + alpha I) X = B keeps; `solver` has ``solve(A, B, alpha) -> Solution``.

    On systems of condition 1 to 1e12, with duplicated rows, for alpha from 1e-10 to 1e4, with one and with several
    right-hand sides:

    - the value has the shape of B, and neither A nor B is changed;
    - where the condition number of A + alpha I is at most 10, the solver converges;
    - where it says that it converged, the backward error is at most its own `tol` (1e-9 if it has none, and never more
      than a hundredth), and the value is as close to the reference as the condition number allows;
    - where it did not converge, which is allowed on hard systems, it gives a reason;
    - the residual reported is the true one, converged or not: within a factor 10 between

      .. math:: \frac{\|b - M x\|}{\|M\| \|x\| + \|b\|} \quad \text{and} \quad \frac{\|b - M x\|}{\|b\|}, \qquad
                M = A + \alpha I,

      the largest over right-hand sides, or infinite for a value that is not finite;
    - one alpha per right-hand side gives what separate solves give;
    - an indefinite system raises `NotPositiveDefiniteError` or is reported as not converged.

    >>> from mercer.solvers import PCG, Cholesky
    >>> check_solver(Cholesky())
    >>> check_solver(PCG())
    """
    assert callable(getattr(solver, "solve", None)), f"{solver!r} has no solve(A, B, alpha)"
    generator = torch.Generator().manual_seed(seed)
    for condition in CONDITIONS:
        A = _random_spd(n, condition, generator)
        for alpha in ALPHAS:
            _check_accuracy(solver, A, torch.randn(n, 3, generator=generator, dtype=torch.float64), alpha)
        _check_accuracy(solver, _with_duplicates(A), torch.randn(n + 5, generator=generator, dtype=torch.float64), 1e-3)
    _check_separate_alphas(solver, _random_spd(n, 1e4, generator), generator)
    _check_indefinite(solver, n, generator)


def true_backward_error(A: Tensor, x: Tensor, b: Tensor, alpha: float | Tensor) -> float:
    """The backward error of (A + alpha I) x = b in float64, the largest over columns."""
    return _true_errors(A, x, b, alpha)[0]


def _true_errors(A: Tensor, x: Tensor, b: Tensor, alpha: float | Tensor) -> tuple[float, float, float]:
    """The backward error, the relative residual and how much of that is rounding, the largest over columns."""
    n = len(A)
    A, x, b = A.double(), x.double().reshape(n, -1), b.double().reshape(n, -1)
    shift = torch.as_tensor(alpha, dtype=torch.float64)
    residual = (b - A @ x - shift * x).norm(dim=0)
    whole = (torch.linalg.matrix_norm(A, 2) + shift) * x.norm(dim=0) + b.norm(dim=0)
    size = b.norm(dim=0).clamp(min=torch.finfo(torch.float64).tiny)
    whole = whole.clamp(min=torch.finfo(torch.float64).tiny)
    return float((residual / whole).max()), float((residual / size).max()), ROUNDING * float((whole / size).max())


def _check_accuracy(solver: Solver, A: Tensor, B: Tensor, alpha: float) -> None:
    kept, given = A.clone(), B.clone()
    condition = _condition(A, alpha)
    where = f"{solver} with alpha={alpha:g} on a system of condition {condition:.0e}"
    solution = solver.solve(MatrixSystem(A), B, alpha)
    assert torch.equal(A, kept), f"{where} changed the matrix it was given"
    assert torch.equal(B, given), f"{where} changed the right-hand side it was given"
    assert solution.value.shape == B.shape, f"{where} gave shape {tuple(solution.value.shape)} for {tuple(B.shape)}"
    _check_honest(solution, A, B, alpha, where)
    if not solution.converged:
        assert condition > EASY, f"{where} did not converge, as every solver has to: {solution.reason}"
        return
    error, most = true_backward_error(A, solution.value, B, alpha), _tolerance(solver)
    assert error <= most + ROUNDING, f"{where} says it converged with a backward error of {error:.1e}, above {most:.0e}"
    reference = torch.linalg.solve(A + alpha * torch.eye(len(A), dtype=A.dtype), B)
    distance = float((solution.value - reference).norm() / reference.norm())
    allowed = 10 * (solution.residual + ROUNDING) * condition * len(A)
    assert distance <= allowed, f"{where} is {distance:.1e} away from the reference"


def _check_separate_alphas(solver: Solver, A: Tensor, generator: torch.Generator) -> None:
    B = torch.randn(len(A), 4, generator=generator, dtype=torch.float64)
    alphas = torch.tensor([0.5, 2.0, 0.5, 50.0], dtype=torch.float64)
    where = f"{solver} with one alpha per column"
    together = solver.solve(MatrixSystem(A), B, alphas)
    assert together.value.shape == B.shape, f"{where} gave shape {tuple(together.value.shape)} for {tuple(B.shape)}"
    _check_honest(together, A, B, alphas, where)
    assert together.converged, f"{where} did not converge on an easy system: {together.reason}"
    for j, alpha in enumerate(alphas.tolist()):
        apart = solver.solve(MatrixSystem(A), B[:, j], alpha)
        assert apart.converged, f"{solver} with alpha={alpha:g} did not converge on an easy system: {apart.reason}"
        difference = float((together.value[:, j] - apart.value).norm() / apart.value.norm())
        allowed = 10 * _condition(A, alpha) * _tolerance(solver)
        assert difference <= allowed, f"{where} differs from separate solves by {difference:.1e}"


def _check_indefinite(solver: Solver, n: int, generator: torch.Generator) -> None:
    Q = torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64)).Q
    values = torch.linspace(-1.0, 1.0, n, dtype=torch.float64)
    A = (Q * values) @ Q.T
    A, b = (A + A.T) / 2, torch.ones(n, dtype=torch.float64)
    try:
        solution = solver.solve(MatrixSystem(A), b, 1e-3)
    except NotPositiveDefiniteError:
        return
    assert not solution.converged, f"{solver} says it converged on a system that is not positive definite"
    _check_honest(solution, A, b, 1e-3, f"{solver} on an indefinite system")


def _check_honest(solution: Solution, A: Tensor, B: Tensor, alpha: float | Tensor, where: str) -> None:
    finite, residual = bool(torch.isfinite(solution.value).all()), solution.residual
    assert finite or not solution.converged, f"{where} says it converged but its value is not finite"
    assert residual == residual, f"{where} reports a residual that is NaN"
    assert solution.converged or solution.reason, f"{where} did not converge and gives no reason"
    if not finite:
        assert residual == float("inf"), f"{where} reports a residual of {residual:.1e} for a value that is not finite"
        return
    backward, relative, rounding = _true_errors(A, solution.value, B, alpha)
    truth = f"the backward error is {backward:.1e} and the relative residual {relative:.1e}"
    assert backward <= 10 * residual + ROUNDING, (
        f"{where} reports a residual of {residual:.1e}, which is too small: {truth}"
    )
    assert residual <= 10 * (relative + rounding), (
        f"{where} reports a residual of {residual:.1e}, which is too large: {truth}"
    )


def _tolerance(solver: Solver) -> float:
    """The backward error a solver may leave where it says that it converged."""
    tol = getattr(solver, "tol", None)
    return min(float(tol), LARGEST_TOLERANCE) if isinstance(tol, numbers.Real) else TOLERANCE


def _random_spd(n: int, condition: float, generator: torch.Generator) -> Tensor:
    Q = torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64)).Q
    values = torch.logspace(0, -torch.log10(torch.tensor(condition)).item(), n, dtype=torch.float64)
    A = (Q * values) @ Q.T
    result: Tensor = (A + A.T) / 2
    return result


def _with_duplicates(A: Tensor) -> Tensor:
    """The Gram matrix of the same rows with the first five repeated."""
    index = torch.cat([torch.arange(len(A)), torch.arange(5)])
    return A[index][:, index]


def _condition(A: Tensor, alpha: float) -> float:
    return float(torch.linalg.cond(A + alpha * torch.eye(len(A), dtype=A.dtype)))
