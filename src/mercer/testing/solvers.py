"""The laws of a solver: run `check_solver` on one of your own."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mercer.core.errors import NotPositiveDefiniteError
from mercer.core.results import Solution
from mercer.solvers.system import Solver

ALPHAS = (1e-10, 1e-6, 1e-2, 1.0, 1e4)
CONDITIONS = (1e0, 1e4, 1e8, 1e12)


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
    """Assert the laws every solver of (A + alpha I) X = B keeps; `solver` has ``solve(A, B, alpha) -> Solution``.

    On systems of condition 1 to 1e12, with duplicated rows, for alpha from 1e-10 to 1e4, with one and with several
    right-hand sides: the shape is that of B, the answer is as good as the condition allows, the residual reported is
    the true one, one alpha per right-hand side equals separate solves, and an indefinite system raises or reports.

    >>> from mercer.solvers import Cholesky
    >>> check_solver(Cholesky())
    """
    generator = torch.Generator().manual_seed(seed)
    for condition in CONDITIONS:
        A = _random_spd(n, condition, generator)
        for alpha in ALPHAS:
            _check_accuracy(solver, A, torch.randn(n, 3, generator=generator, dtype=torch.float64), alpha)
        _check_accuracy(solver, _with_duplicates(A), torch.randn(n + 5, generator=generator, dtype=torch.float64), 1e-3)
    _check_separate_alphas(solver, _random_spd(n, 1e4, generator), generator)
    _check_indefinite(solver, n, generator)


def true_backward_error(A: Tensor, x: Tensor, b: Tensor, alpha: float) -> float:
    """The backward error of (A + alpha I) x = b in float64, the largest over columns."""
    M = A.double() + alpha * torch.eye(len(A), dtype=torch.float64)
    x, b = x.reshape(len(A), -1), b.reshape(len(A), -1)
    norm = torch.linalg.matrix_norm(M, 2)
    return float(((b - M @ x).norm(dim=0) / (norm * x.norm(dim=0) + b.norm(dim=0))).max())


def _check_accuracy(solver: Solver, A: Tensor, B: Tensor, alpha: float) -> None:
    kept, given = A.clone(), B.clone()
    solution = solver.solve(MatrixSystem(A), B, alpha)
    where = f"{solver} with alpha={alpha:g} on a system of condition {_condition(A, alpha):.0e}"
    assert torch.equal(A, kept), f"{where} changed the matrix it was given"
    assert torch.equal(B, given), f"{where} changed the right-hand side it was given"
    assert solution.value.shape == B.shape, f"{where} gave shape {tuple(solution.value.shape)} for {tuple(B.shape)}"
    _check_honest(solution, where)
    if not solution.converged:
        return
    error = true_backward_error(A, solution.value, B, alpha)
    assert error <= 1e-9, f"{where} says it converged with a backward error of {error:.1e}"
    assert error <= 10 * solution.residual + 1e-14, (
        f"{where} reports {solution.residual:.1e} for an error of {error:.1e}"
    )
    reference = torch.linalg.solve(A + alpha * torch.eye(len(A), dtype=A.dtype), B)
    distance = float((solution.value - reference).norm() / reference.norm())
    allowed = 10 * (solution.residual + 1e-14) * _condition(A, alpha) * len(A)
    assert distance <= allowed, f"{where} is {distance:.1e} away from the reference"


def _check_separate_alphas(solver: Solver, A: Tensor, generator: torch.Generator) -> None:
    B = torch.randn(len(A), 4, generator=generator, dtype=torch.float64)
    alphas = torch.tensor([1e-3, 2.0, 1e-3, 50.0], dtype=torch.float64)
    together = solver.solve(MatrixSystem(A), B, alphas).value
    apart = torch.stack([solver.solve(MatrixSystem(A), B[:, j], float(a)).value for j, a in enumerate(alphas)], dim=1)
    difference = float((together - apart).norm() / apart.norm())
    assert difference <= 1e-8, f"{solver} with one alpha per column differs from separate solves by {difference:.1e}"


def _check_indefinite(solver: Solver, n: int, generator: torch.Generator) -> None:
    Q = torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64)).Q
    values = torch.linspace(-1.0, 1.0, n, dtype=torch.float64)
    A = (Q * values) @ Q.T
    try:
        solution = solver.solve(MatrixSystem((A + A.T) / 2), torch.ones(n, dtype=torch.float64), 1e-3)
    except NotPositiveDefiniteError:
        return
    _check_honest(solution, f"{solver} on an indefinite system")
    assert not solution.converged, f"{solver} says it converged on a system that is not positive definite"


def _check_honest(solution: Solution, where: str) -> None:
    finite = bool(torch.isfinite(solution.value).all())
    assert finite or not solution.converged, f"{where} says it converged but its value is not finite"
    assert solution.residual == solution.residual, f"{where} reports a residual that is NaN"
    assert solution.converged or solution.reason, f"{where} did not converge and gives no reason"


def _random_spd(n: int, condition: float, generator: torch.Generator) -> Tensor:
    Q = torch.linalg.qr(torch.randn(n, n, generator=generator, dtype=torch.float64)).Q
    values = torch.logspace(0, -torch.log10(torch.tensor(condition)).item(), n, dtype=torch.float64)
    A = (Q * values) @ Q.T
    return (A + A.T) / 2


def _with_duplicates(A: Tensor) -> Tensor:
    """The Gram matrix of the same rows with the first five repeated."""
    index = torch.cat([torch.arange(len(A)), torch.arange(5)])
    return A[index][:, index]


def _condition(A: Tensor, alpha: float) -> float:
    return float(torch.linalg.cond(A + alpha * torch.eye(len(A), dtype=A.dtype)))
