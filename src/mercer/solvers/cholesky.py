"""Cholesky: the solver for one alpha > 0."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mercer.core.errors import InputError, NotPositiveDefiniteError
from mercer.core.results import Solution
from mercer.solvers.backward_error import BackwardError, told
from mercer.solvers.system import System, check_alpha, dense_float64, right_hand_sides

TOLERANCE = 1e-10
JITTERED_TOLERANCE = 1e-6  # of |r| / |b|, where jitter could hide that there is no solution
GOOD_ENOUGH = 1e-13  # a backward error above this is worth a step of refinement
MAX_REFINEMENTS = 2
LARGEST_EXPLAINED = 3000  # rows up to which a failure is explained by the smallest eigenvalue
INVERSE_BLOCK = {"cpu": 512, "cuda": 4096}
PANEL = 4096


@dataclass(frozen=True)
class Cholesky:
    r"""Solve (A + alpha I) X = B by the factorisation

    .. math:: A + \alpha I = L L^T, \qquad X = L^{-T} L^{-1} B.

    Where rounding makes the factorisation fail, `jitter` times its own diagonal entry is added to each row: from
    `initial_jitter` up to `max_jitter` in steps of ten. It is reported, and refined away from the solution as far
    as the system allows. Costs n^3 / 3 multiplications and one n x n matrix.

    References: Golub and Van Loan, *Matrix Computations*, 2013, section 4.2; Higham, *Accuracy and Stability of
    Numerical Algorithms*, 2002, chapter 10.

    >>> from mercer.testing.solvers import MatrixSystem
    >>> A = MatrixSystem(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    >>> Cholesky().prepare(A, alpha=1.0).solve(torch.tensor([4.0, 4.0])).value.round(decimals=6)
    tensor([1., 1.], dtype=torch.float64)
    """

    initial_jitter: float = 1e-10
    max_jitter: float = 1e-4

    def __post_init__(self) -> None:
        if not 0 < self.initial_jitter <= self.max_jitter < 1:
            raise InputError(
                f"Cholesky(initial_jitter={self.initial_jitter}, max_jitter={self.max_jitter}): "
                "need 0 < initial_jitter <= max_jitter < 1."
            )

    def prepare(self, A: System, alpha: float) -> CholeskyFactor:
        """Factorise A + alpha I once, to solve for many right-hand sides."""
        started = time.perf_counter()
        alpha = float(check_alpha(alpha))
        jitter = 0.0
        while True:
            matrix, _ = dense_float64(A)
            matrix.diagonal().add_(alpha)
            error = BackwardError.of(matrix)
            matrix.diagonal().mul_(1.0 + jitter)
            if factorise_in_place(matrix):
                return CholeskyFactor(A, alpha, matrix.mT, jitter, error, time.perf_counter() - started)
            jitter = 10 * jitter if jitter else self.initial_jitter
            if jitter > self.max_jitter * 1.001:
                raise not_positive_definite(A, alpha, self.max_jitter)

    def solve(self, A: System, B: Tensor, alpha: float | Tensor) -> Solution:
        """Solve for B (n,) or (n, t) with one alpha or one per column; each distinct alpha is factorised once."""
        rhs = right_hand_sides(B, A.shape[0])
        alphas = check_alpha(alpha, rhs.shape[1]).expand(rhs.shape[1])
        distinct, group = alphas.unique(return_inverse=True)
        parts = [self.prepare(A, float(a)).solve(rhs[:, group == g]) for g, a in enumerate(distinct)]
        order = group.argsort(stable=True).argsort()
        value = torch.cat([part.value for part in parts], dim=1)[:, order]
        missed = [part.missed for part in parts if part.missed is not None]
        worst = max(parts, key=lambda part: (not part.converged, part.residual))
        return replace(
            worst,
            value=value.reshape(B.shape),
            iterations=max(part.iterations for part in parts),
            seconds=sum(part.seconds for part in parts),
            jitter=max(part.jitter for part in parts),
            missed=torch.cat(missed)[order.to(missed[0].device)],
        )


@dataclass(frozen=True, eq=False)
class CholeskyFactor:
    """L with L L^T = A + alpha I (and the jitter, where one was needed); prepared once, solves many times."""

    system: System
    alpha: float
    L: Tensor
    jitter: float
    error: BackwardError
    seconds: float = 0.0

    def solve(self, B: Tensor) -> Solution:
        """X of (A + alpha I) X = B for B of shape (n,) or (n, t), refined where that lowers the backward error."""
        started = time.perf_counter()
        rhs = right_hand_sides(B, len(self.L)).to(self.L.device)
        value = self._apply_inverse(rhs)
        residual = float(self.error(value, rhs).max())
        steps = 0
        while GOOD_ENOUGH < residual < torch.inf and steps < MAX_REFINEMENTS:
            refined = value + self._apply_inverse(rhs - self.alpha * value - self._matmul(value))
            smaller = float(self.error(refined, rhs).max())
            if not smaller < 0.5 * residual:
                break
            value, residual, steps = refined, smaller, steps + 1
        missed = self.error.relative_residual(value, rhs)
        worry = self._worry(residual, value, float(missed.max()))
        return Solution(
            solver="cholesky",
            converged=not worry,
            residual=residual,
            iterations=steps,
            seconds=self.seconds + time.perf_counter() - started,
            jitter=self.jitter,
            reason=worry or ("the Gram matrix is singular to rounding, so jitter was added" if self.jitter else ""),
            value=value.reshape(B.shape),
            missed=missed,
        )

    def inverse_diag(self) -> Tensor:
        """The diagonal of (A + alpha I)^-1."""
        return inverse_diagonal(self.L)

    def _apply_inverse(self, rhs: Tensor) -> Tensor:
        half = torch.linalg.solve_triangular(self.L, rhs, upper=False)
        return torch.linalg.solve_triangular(self.L.mT, half, upper=True)

    def _matmul(self, value: Tensor) -> Tensor:
        return self.system.matmul(value).to(torch.float64)

    def _worry(self, residual: float, value: Tensor, missed: float) -> str:
        """Why the solution is not to be trusted; empty when it is."""
        if not bool(torch.isfinite(value).all()):
            return "the solution is not finite: the system is too close to singular, use a larger alpha"
        if residual > TOLERANCE:
            return "the system is close to singular: use a larger alpha or solver='eigh'"
        if self.jitter and missed > JITTERED_TOLERANCE:
            return "the system is singular and only jitter made it solvable: use a larger alpha or solver='eigh'"
        return told(missed)


def inverse_diagonal(L: Tensor) -> Tensor:
    """The diagonal of (L L^T)^-1: column sums of squares of L^-1, a block of columns at a time.

    >>> inverse_diagonal(torch.tensor([[2.0, 0.0], [2.0, 1.0]]))
    tensor([1.2500, 1.0000])
    """
    n, size = len(L), INVERSE_BLOCK[L.device.type]
    diagonal = L.new_empty(n)
    for start in range(0, n, size):
        stop = min(start + size, n)
        unit = L.new_zeros(n - start, stop - start)
        unit.fill_diagonal_(1.0)
        block = torch.linalg.solve_triangular(L[start:, start:], unit, upper=False)
        diagonal[start:stop] = block.square_().sum(0)
    return diagonal


def factorise_in_place(matrix: Tensor) -> bool:
    """Overwrite a symmetric row-major matrix by L^T; False where it is not positive definite."""
    columns = matrix.mT  # LAPACK's order: no copy is made
    if columns.is_cuda:
        return factorise_by_panels(columns)
    info = torch.empty((), dtype=torch.int32)
    torch.linalg.cholesky_ex(columns, out=(columns, info))
    return int(info) == 0 and bool(torch.isfinite(columns.diagonal()).all())


def factorise_by_panels(A: Tensor, size: int = PANEL) -> bool:
    """Overwrite A by L, some columns at a time: on a GPU torch would need a second matrix."""
    n = len(A)
    for start in range(0, n, size):
        stop = min(start + size, n)
        corner, info = torch.linalg.cholesky_ex(A[start:stop, start:stop])
        if int(info) or not bool(torch.isfinite(corner.diagonal()).all()):
            return False
        A[start:stop, start:stop] = corner
        A[start:stop, stop:] = 0.0
        panel = torch.linalg.solve_triangular(corner.mT, A[stop:, start:stop], upper=True, left=False)
        A[stop:, start:stop] = panel
        for first in range(stop, n, size):
            below = panel[first - stop :]
            A[first:, first : first + size].addmm_(below, below[:size].mT, alpha=-1.0)
    return True


def not_positive_definite(A: System, alpha: float, jitter: float) -> NotPositiveDefiniteError:
    """The error for a factorisation that failed with the largest jitter."""
    n = A.shape[0]
    matrix, _ = dense_float64(A)
    if not bool(torch.isfinite(matrix).all()):
        return NotPositiveDefiniteError("The Gram matrix contains NaN or infinity: check the kernel and its inputs.")
    found = f"A of {n} rows plus alpha={alpha:g} is not positive definite, even with a jitter of {jitter:g}"
    if n <= LARGEST_EXPLAINED:
        found += f"; the smallest eigenvalue of A is {float(torch.linalg.eigvalsh(matrix)[0]):.3g}"
    return NotPositiveDefiniteError(
        f"{found}. The kernel may not be positive semi-definite (test it with mercer.testing.check_kernel); "
        "otherwise use a larger alpha, or solver='eigh' for a singular matrix."
    )
