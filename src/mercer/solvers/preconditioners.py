"""Preconditioners: a low-rank copy of A that makes conjugate gradients on A + alpha I converge in few steps."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from mercer.core.errors import NotPositiveDefiniteError
from mercer.solvers.pivoted_cholesky import NOISE, pivoted_cholesky
from mercer.solvers.products import Products, generator_from
from mercer.solvers.system import System

EPS = torch.finfo(torch.float64).eps
STEEP = 1e10  # largest eigenvalue over sigma from which Woodbury's difference leaves too much rounding error
SKETCH_BLOCK = 128
SOLVED_NUMBERS = 2**26


class Preconditioner(Protocol):
    """A symmetric positive definite copy P of A + alpha I whose inverse is cheap."""

    @property
    def note(self) -> str:
        """What it is, in words."""

    def apply(self, R: Tensor, alpha: Tensor) -> Tensor:
        """P^-1 R up to a factor, for R of shape (n, t) and one alpha per column."""


@dataclass(frozen=True)
class Identity:
    """No preconditioning: P = I."""

    note: str = "no preconditioner"

    def apply(self, R: Tensor, alpha: Tensor) -> Tensor:
        return R.clone()


@dataclass(frozen=True, eq=False)
class LowRank:
    r"""The preconditioner of a low-rank copy F F^T of A,

    .. math:: P = F F^T + \sigma I, \qquad
              \sigma P^{-1} = I - F (F^T F + \sigma I)^{-1} F^T, \qquad \sigma = \alpha + \tau,

    in float64, with one matrix F of shape (n, r) and a small one for each alpha last asked for. The size `tail`
    of the eigenvalues that the copy leaves out, tau, keeps them and the others together when alpha is far below both.

    References: Woodbury, *Inverting modified matrices*, 1950.

    >>> P = LowRank(torch.tensor([[3.0], [4.0]]).double())
    >>> P.apply(torch.tensor([[3.0], [4.0]]).double(), torch.tensor([5.0]).double()).round(decimals=6)
    tensor([[0.5000],
            [0.6667]], dtype=torch.float64)
    """

    F: Tensor
    tail: float = 0.0
    note: str = ""
    _shifted: dict[float, tuple[float, Tensor]] = field(default_factory=dict, repr=False)

    @cached_property
    def core(self) -> Tensor:
        """F^T F."""
        return self.F.mT @ self.F

    @cached_property
    def largest(self) -> float:
        """A bound of the largest eigenvalue of F F^T."""
        return float(self.core.abs().sum(0).max()) if len(self.core) else 0.0

    def shifted(self, alpha: float) -> tuple[float, Tensor]:
        """Sigma, and the Cholesky factor of F^T F + sigma I; where rounding makes it fail, with a larger sigma."""
        if alpha not in self._shifted:
            sigma = max(alpha + self.tail, EPS * self.largest) or 1.0
            while True:
                matrix = self.core.clone()
                matrix.diagonal().add_(sigma)
                L, failed = torch.linalg.cholesky_ex(matrix)
                if not int(failed):
                    break
                sigma *= 10
            self._shifted[alpha] = sigma, L
        return self._shifted[alpha]

    def log_determinant(self, alpha: float) -> float:
        """log det P."""
        sigma, L = self.shifted(alpha)
        n, r = self.F.shape
        return (n - r) * math.log(sigma) + 2 * float(L.diagonal().log().sum())

    def root(self, V: Tensor, alpha: float) -> Tensor:
        """[F, sqrt(sigma) I] V for V of shape (r + n, k): of covariance P where V is standard normal."""
        sigma, _ = self.shifted(alpha)
        r = self.F.shape[1]
        return torch.addmm(V[r:], self.F, V[:r], beta=sigma**0.5)

    def inverse(self, R: Tensor, alpha: float) -> Tensor:
        """P^-1 R."""
        return self._apply(R, alpha) / self.shifted(alpha)[0]

    def apply(self, R: Tensor, alpha: Tensor) -> Tensor:
        distinct, group = alpha.unique(return_inverse=True)
        for unused in self._shifted.keys() - set(distinct.tolist()):
            del self._shifted[unused]
        if len(distinct) == 1:
            return self._apply(R, float(distinct))
        out = torch.empty_like(R)
        for g, one in enumerate(distinct.tolist()):
            out[:, group == g] = self._apply(R[:, group == g], one)
        return out

    def _apply(self, R: Tensor, alpha: float) -> Tensor:
        sigma, L = self.shifted(alpha)
        Z = self._outside(R, L)
        if self.largest > STEEP * sigma:  # a step of refinement, since the difference has lost most digits
            Z += self._outside(R - Z - self.F @ (self.F.mT @ Z) / sigma, L)
        return Z

    def _outside(self, R: Tensor, L: Tensor) -> Tensor:
        return torch.addmm(R, self.F, torch.cholesky_solve(self.F.mT @ R, L), alpha=-1.0)


def pivoted_preconditioner(A: System, rank: int, seed: int | torch.Generator = 0, enough: float = 0.0) -> LowRank:
    """P = F F^T + (alpha + tail) I from a randomly pivoted Cholesky factor of A, which needs `rank` rows of it.

    References: Díaz, Epperly, Frangella, Tropp and Webber, *Robust, randomized preconditioning for kernel ridge
    regression*, 2023.

    >>> from mercer.testing.solvers import MatrixSystem
    >>> pivoted_preconditioner(MatrixSystem(torch.eye(6)), rank=3).note
    'randomly pivoted Cholesky preconditioner of rank 3'
    """
    factor = pivoted_cholesky(A, rank, seed=seed, enough=enough)
    note = f"randomly pivoted Cholesky preconditioner of rank {factor.rank}"
    return LowRank(factor.F, float(factor.left.mean()), note)


def preconditioner_at(A: System, pivots: Tensor) -> LowRank:
    """The preconditioner of the given pivots: smooth in what A depends on, and without the search for them.

    >>> from mercer.testing.solvers import MatrixSystem
    >>> preconditioner_at(MatrixSystem(torch.eye(6)), torch.tensor([0, 4])).tail
    0.66...
    """
    products = Products.of(A)
    columns = torch.empty(len(pivots), products.n, dtype=torch.float64, device=products.device)
    for some, part in zip(pivots.split(SKETCH_BLOCK), columns.split(SKETCH_BLOCK), strict=True):
        part.copy_(products.rows(some))
    L = _factor(columns[:, pivots], NOISE * products.precision)
    for part in columns.split(max(1, SOLVED_NUMBERS // len(pivots)), dim=1):
        part.copy_(torch.linalg.solve_triangular(L, part, upper=False))
    left = (products.diag - sum_of_squares(columns)).clamp(min=0.0)
    note = f"pivoted Cholesky preconditioner of rank {len(pivots)}"
    return LowRank(columns.mT, float(left.mean()), note)


def sum_of_squares(columns: Tensor) -> Tensor:
    """For each column of a wide matrix, without a copy of it."""
    return torch.linalg.vector_norm(columns, dim=0).square_()


def _factor(corner: Tensor, jitter: float) -> Tensor:
    """The Cholesky factor of a corner of a Gram matrix; the jitter is relative to each row's own diagonal."""
    while jitter < 1:
        L, failed = torch.linalg.cholesky_ex(corner + torch.diag(jitter * corner.diagonal()))
        if not int(failed):
            return L
        jitter *= 10
    raise NotPositiveDefiniteError(
        "Rows of the Gram matrix are not positive semi-definite: the kernel is not, or its values are not finite. "
        "Test it with mercer.testing.check_kernel."
    )


def nystrom_preconditioner(A: System, rank: int, seed: int | torch.Generator = 0) -> LowRank:
    r"""P = F F^T + (alpha + tail) I from the Nyström approximation of a random sketch,

    .. math:: A \approx (A \Omega)(\Omega^T A \Omega)^{-1}(A \Omega)^T,

    with `rank` random orthonormal columns in Omega: products with A instead of its rows, and the better copy of A when
    a few rows do not tell about the others.

    References: Frangella, Tropp and Udell, *Randomized Nyström preconditioning*, 2021, algorithms 2.1 and 5.1.

    >>> from mercer.testing.solvers import MatrixSystem
    >>> torch.linalg.eigvalsh(nystrom_preconditioner(MatrixSystem(torch.eye(6)), rank=3).core).round(decimals=6)
    tensor([1., 1., 1.], dtype=torch.float64)
    """
    products, generator = Products.of(A), generator_from(seed)
    rank = min(rank, products.n)
    sketch = torch.randn(products.n, rank, generator=generator, dtype=torch.float64).to(products.device)
    sketch = torch.linalg.qr(sketch).Q
    image = torch.cat([products.matmul(part) for part in sketch.split(SKETCH_BLOCK, dim=1)], dim=1)
    scale = float(torch.linalg.matrix_norm(image))
    shift = products.precision * scale
    while shift < 1e-2 * scale:
        shifted = image + shift * sketch
        core = sketch.T @ shifted
        factor, info = torch.linalg.cholesky_ex((core + core.T) / 2)
        if int(info) == 0:
            F = torch.linalg.solve_triangular(factor.T, shifted, upper=True, left=False)
            copy = LowRank(F, note=f"Nyström preconditioner of rank {rank}")
            smallest = float(torch.linalg.eigvalsh(copy.core)[0]) - shift
            return LowRank(F, max(smallest, 0.0), copy.note)
        shift *= 10
    if scale == 0:
        return LowRank(image, note="Nyström preconditioner of rank 0")
    raise NotPositiveDefiniteError(
        "A sketch of the Gram matrix is not positive semi-definite: the kernel is not, or its values are not finite. "
        "Test it with mercer.testing.check_kernel."
    )
