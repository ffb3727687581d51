"""Preconditioners: a low-rank copy of A that makes conjugate gradients on A + alpha I converge in few steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from mercer.core.errors import NotPositiveDefiniteError
from mercer.solvers.pivoted_cholesky import pivoted_cholesky
from mercer.solvers.products import Products, generator_from
from mercer.solvers.system import System

STEEP = 1e10  # largest eigenvalue over sigma from which one projection leaves too much rounding error
SKETCH_BLOCK = 128


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
    r"""The preconditioner of a low-rank copy U S U^T of A,

    .. math:: P = U S U^T + \sigma I, \qquad
              \sigma P^{-1} = (I - U U^T) + U \tfrac{\sigma}{S + \sigma} U^T, \qquad \sigma = \alpha + \tau,

    with orthonormal columns U and eigenvalues S, in float64. The size `tail` of the eigenvalues that the copy leaves
    out, tau, keeps them and the others together when alpha is far below both.

    >>> P = LowRank.from_factor(torch.tensor([[3.0], [4.0]]).double())
    >>> P.apply(torch.tensor([[3.0], [4.0]]).double(), torch.tensor([5.0]).double()).round(decimals=6)
    tensor([[0.5000],
            [0.6667]], dtype=torch.float64)
    """

    U: Tensor
    S: Tensor
    tail: float
    note: str = ""

    @classmethod
    def from_factor(cls, F: Tensor, note: str = "", tail: float = 0.0, excess: float = 0.0) -> LowRank:
        """The preconditioner of F F^T, less `excess` on its range; QR first keeps the small eigenvalues accurate."""
        Q, R = torch.linalg.qr(F)
        left, singular, _ = torch.linalg.svd(R, full_matrices=False)
        S = (singular.square() - excess).clamp(min=0.0)
        rounding = torch.finfo(torch.float64).eps * (float(S.max()) if len(S) else 1.0)
        return cls(Q @ left, S, max(tail, rounding), note)

    def apply(self, R: Tensor, alpha: Tensor) -> Tensor:
        shift = alpha + self.tail
        inside = self.U.T @ R
        outside = R - self.U @ inside
        if len(self.S) and float(self.S.max()) > STEEP * float(shift.min()):
            outside -= self.U @ (self.U.T @ outside)
        return outside.addmm_(self.U, inside * (shift / (self.S.unsqueeze(1) + shift)))


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
    return LowRank.from_factor(factor.F, note, tail=float(factor.left.mean()))


def nystrom_preconditioner(A: System, rank: int, seed: int | torch.Generator = 0) -> LowRank:
    r"""P = U S U^T + (alpha + tail) I from the Nyström approximation of a random sketch,

    .. math:: A \approx (A \Omega)(\Omega^T A \Omega)^{-1}(A \Omega)^T,

    with `rank` random orthonormal columns in Omega: products with A instead of its rows, and the better copy of A when
    a few rows do not tell about the others.

    References: Frangella, Tropp and Udell, *Randomized Nyström preconditioning*, 2021, algorithms 2.1 and 5.1.

    >>> from mercer.testing.solvers import MatrixSystem
    >>> nystrom_preconditioner(MatrixSystem(torch.eye(6)), rank=3).S.round(decimals=6)
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
            copy = LowRank.from_factor(F, f"Nyström preconditioner of rank {rank}", excess=shift)
            return replace(copy, tail=max(copy.tail, float(copy.S.min())))
        shift *= 10
    if scale == 0:
        return LowRank.from_factor(image, "Nyström preconditioner of rank 0")
    raise NotPositiveDefiniteError(
        "A sketch of the Gram matrix is not positive semi-definite: the kernel is not, or its values are not finite. "
        "Test it with mercer.testing.check_kernel."
    )
