"""Every Cholesky factorisation of the package, and what is done where rounding makes one fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.linalg.lapack import dpotrf, dpotrs, dpstrf, dtrtrs
from torch import Tensor

from mercer.core.errors import NotFiniteError, NotPositiveDefiniteError
from mercer.solvers.decompose import by_scipy, eigvalsh, not_finite, on_host
from mercer.solvers.dials import (
    FEW_FACTORED,
    FIRST_JITTER,
    INVERSE_BLOCK,
    LARGEST_EXPLAINED,
    LARGEST_JITTER,
    PANEL,
    SCIPY_CHOLESKY,
)


@dataclass(frozen=True, eq=False)
class Factor:
    """L with L L^T = A; `jitter` is the share of its diagonal that each row was given on top."""

    L: Tensor
    jitter: float

    def solve(self, B: Tensor) -> Tensor:
        """A^-1 B for B of shape (n, k)."""
        return solve_factored(self.L, B)

    def half_solve(self, B: Tensor) -> Tensor:
        """L^-1 B."""
        if few_rows(self.L, B):
            return torch.from_numpy(dtrtrs(self.L.numpy(), B.numpy(), lower=1)[0])
        result: Tensor = torch.linalg.solve_triangular(self.L, B, upper=False)
        return result

    def log_det(self) -> float:
        """log det A."""
        if few_rows(self.L):
            return 2.0 * float(np.log(self.L.numpy().diagonal()).sum())
        return 2.0 * float(self.L.diagonal().log().sum())

    def inverse(self) -> Tensor:
        """A^-1, a new matrix."""
        return torch.cholesky_inverse(self.L)  # scipy's would wake threads however few the rows are

    def inverse_diagonal(self) -> Tensor:
        """The diagonal of A^-1, (n,), without a second matrix."""
        return inverse_diagonal(self.L)

    def extended(self, cross: Tensor, corner: Tensor) -> Factor:
        r"""The factor of the larger matrix with the new rows [cross, corner], in k n^2 instead of n^3 steps,

        .. math:: L_{21} = (L^{-1} A_{12})^T, \qquad L_{22} L_{22}^T = A_{22} - L_{21} L_{21}^T.
        """
        n, k = len(self.L), len(corner)
        below = self.half_solve(cross.mT).mT
        L = self.L.new_zeros(n + k, n + k)
        L[:n, :n] = self.L
        L[n:, :n] = below
        part = factorise(lambda: corner - below @ below.mT, corner.diagonal())
        L[n:, n:] = part.L
        return Factor(L, max(self.jitter, part.jitter))


def factorise(
    make: Callable[[], Tensor],
    size: Tensor | None = None,
    *,
    first: float | None = None,
    largest: float = LARGEST_JITTER,
    what: str = "The covariance of the data",
    advice: str = "use a larger noise",
) -> Factor:
    """The factor of the symmetric matrix that `make` gives, each time a new one.

    Where rounding makes the factorisation fail, each row is given a jitter relative to `size`, by default its own
    diagonal entry: from `first`, 1e-10 in float64 and 1e-6 in float32, up to `largest` in steps of ten.

    >>> factorise(lambda: torch.ones(2, 2).double()).jitter
    1e-10
    """
    jitter = 0.0
    while True:
        matrix = make()
        if jitter:
            matrix.diagonal().add_(jitter * (matrix.diagonal() if size is None else size))
        if factorise_in_place(matrix):
            return Factor(matrix.mT, jitter)
        jitter = 10.0 * jitter if jitter else first or FIRST_JITTER[matrix.dtype]
        if jitter > largest * 1.001:
            raise failure(
                make().mT, f"{what} is not positive definite, even with a jitter of {largest:g}", what, advice
            )


def cholesky(matrix: Tensor, what: str, advice: str) -> Tensor:
    """L with L L^T = the matrix, of which the lower half is read, without any jitter; an error where there is none."""
    L = try_cholesky(matrix)
    if L is None:
        raise failure(matrix, f"{what} is not positive definite", what, advice)
    return L


def try_cholesky(matrix: Tensor) -> Tensor | None:
    """The same, or None."""
    L, failed = torch.linalg.cholesky_ex(matrix)
    return None if int(failed) or not bool(torch.isfinite(L.diagonal()).all()) else L


def failure(matrix: Tensor, found: str, what: str, advice: str) -> NotPositiveDefiniteError | NotFiniteError:
    """Why a matrix could not be factorised, and what to do."""
    if not bool(torch.isfinite(matrix).all()):
        return not_finite(what)
    if len(matrix) <= LARGEST_EXPLAINED:
        found += f"; its smallest eigenvalue is {float(eigvalsh(matrix.double())[0]):.3g}"
    return NotPositiveDefiniteError(
        f"{found}. The kernel may not be positive semi-definite (test it with mercer.testing.check_kernel); "
        f"otherwise {advice}."
    )


def solve_factored(L: Tensor, B: Tensor) -> Tensor:
    """(L L^T)^-1 B; `torch.cholesky_solve` would copy L.

    >>> solve_factored(torch.tensor([[2.0, 0.0], [2.0, 1.0]]), torch.tensor([[4.0], [5.0]]))
    tensor([[0.],
            [1.]])
    """
    if few_rows(L, B):
        return torch.from_numpy(dpotrs(L.numpy(), B.numpy(), lower=1)[0])
    result: Tensor = torch.linalg.solve_triangular(L.mT, torch.linalg.solve_triangular(L, B, upper=False), upper=True)
    return result


def few_rows(matrix: Tensor, B: Tensor | None = None) -> bool:
    """Whether scipy's calls take less time than torch's, since the numbers take hardly any."""
    few = len(matrix) <= FEW_FACTORED and on_host(matrix)
    return few and (B is None or (on_host(B) and B.shape[1] <= FEW_FACTORED))


def inverse_diagonal(L: Tensor) -> Tensor:
    """The diagonal of (L L^T)^-1: column sums of squares of L^-1, a block of columns at a time and without a copy of L.

    >>> inverse_diagonal(torch.tensor([[2.0, 0.0], [2.0, 1.0]]))
    tensor([1.2500, 1.0000])
    """
    n, size = len(L), INVERSE_BLOCK[L.device.type]
    parts = [slice(start, min(start + size, n)) for start in range(0, n, size)]
    diagonal = L.new_empty(n)
    for first, own in enumerate(parts):
        columns = L.new_zeros(n, own.stop - own.start)
        columns[own].fill_diagonal_(1.0)
        for rows in parts[first:]:
            above = slice(own.start, rows.start)
            rest = columns[rows].addmm_(L[rows, above], columns[above], alpha=-1.0)
            rest.copy_(torch.linalg.solve_triangular(L[rows, rows], rest, upper=False))
        diagonal[own] = columns[own.start :].square_().sum(0)
    return diagonal


def factorise_in_place(matrix: Tensor) -> bool:
    """Overwrite a symmetric row-major matrix by L^T; False where it is not positive definite."""
    columns = matrix.mT  # LAPACK's order: no copy is made
    if columns.is_cuda:
        return factorise_by_panels(columns)
    if matrix.is_contiguous() and (few_rows(matrix) or by_scipy(matrix, SCIPY_CHOLESKY)):
        array, failed = dpotrf(columns.numpy(), lower=1, overwrite_a=1, clean=0)
        matrix.triu_()  # scipy clears the other half against the order of memory, which takes ten times as long
        return failed == 0 and bool(np.isfinite(array.diagonal()).all())
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


def independent_functions(K: Tensor, least: float) -> Tensor | None:
    """E (m, r) with E^T K E = I, the inverse factor of r rows that pivoting takes and zero for the others.

    These others have less than `least` of their own diagonal entry left; None where the matrix is not finite, or not
    positive semi-definite, so that there is more left between them. On the CPU, where LAPACK has it.

    >>> independent_functions(torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 4.0]]).double(), 1e-12)
    tensor([[1.0000, 0.0000],
            [0.0000, 0.0000],
            [0.0000, 0.5000]], dtype=torch.float64)
    """
    diagonal = K.diagonal()
    if not bool(torch.isfinite(K).all() & (diagonal >= 0).all()):
        return None
    root = torch.where(diagonal > 0, diagonal, torch.inf).rsqrt().unsqueeze(1)
    unit = root * K * root.mT
    factor, places, rank, _ = dpstrf(unit.cpu().numpy(), tol=least, lower=1)
    order = torch.from_numpy(places.astype("int64") - 1).to(K.device)
    L, kept, others = torch.from_numpy(factor)[:, :rank].to(K.device), order[:rank], order[rank:]
    left = unit[others][:, others] - L[rank:] @ L[rank:].mT
    if bool((left.abs() > max(least, torch.finfo(torch.float64).eps ** 0.5)).any()):
        return None
    E = K.new_zeros(len(K), rank)
    E[kept] = torch.linalg.solve_triangular(L[:rank], torch.eye(rank).to(K), upper=False).mT
    return E.mul_(root)
