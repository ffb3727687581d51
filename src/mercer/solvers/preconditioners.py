"""Preconditioners: a low-rank copy of A that makes conjugate gradients on A + alpha I converge in few steps."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from mercer.core.blocks import new_matrix
from mercer.core.errors import NotPositiveDefiniteError
from mercer.core.seeding import generator_from
from mercer.solvers.decompose import eigvalsh
from mercer.solvers.dials import CORE_NUMBERS, NOISE, SKETCH_BLOCK, SOLVED_NUMBERS, STEEP
from mercer.solvers.factor import factorise, try_cholesky
from mercer.solvers.pivoted_cholesky import pivoted_cholesky
from mercer.solvers.products import Products
from mercer.solvers.symmetric import add_gram
from mercer.solvers.system import System

EPS = torch.finfo(torch.float64).eps


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

    .. math:: P = F F^T + D, \qquad D = \operatorname{diag}(\alpha + \tau_i), \qquad
              P^{-1} = D^{-1} - D^{-1} F (I + F^T D^{-1} F)^{-1} F^T D^{-1},

    in float64, with one matrix F of shape (n, r) and a small one for each alpha last asked for. `tail`, tau, one number
    or one for each row, stands for what the copy leaves out of A, also where alpha is far below that.

    References: Woodbury, *Inverting modified matrices*, 1950.

    >>> P = LowRank(torch.tensor([[3.0], [4.0]]).double())
    >>> P.inverse(torch.tensor([[3.0], [4.0]]).double(), 5.0).round(decimals=6)
    tensor([[0.1000],
            [0.1333]], dtype=torch.float64)
    """

    F: Tensor
    tail: Tensor | float = 0.0
    note: str = ""
    _shifted: dict[float, Shifted] = field(default_factory=dict, repr=False)

    @cached_property
    def trace(self) -> float:
        """That of F F^T."""
        return float(torch.linalg.vector_norm(self.F)) ** 2

    def shifted(self, alpha: float) -> Shifted:
        """What P^-1 needs for that alpha; where rounding makes the factor fail, that of a larger D."""
        if alpha not in self._shifted:
            rest = torch.full((len(self.F), 1), alpha, dtype=self.F.dtype, device=self.F.device)
            rest += torch.as_tensor(self.tail).to(rest).reshape(-1, 1)
            rest.clamp_(min=EPS * self.trace or 1.0)
            while (found := Shifted.of(self.F, rest)) is None:
                rest *= 10
            self._shifted[alpha] = found
        return self._shifted[alpha]

    def log_determinant(self, alpha: float) -> float:
        """log det P."""
        shifted, r = self.shifted(alpha), self.F.shape[1]
        return float(shifted.rest.log().sum() + 2 * shifted.L.diagonal().log().sum()) - r * math.log(shifted.scale)

    def root(self, V: Tensor, alpha: float) -> Tensor:
        """[F, D^(1/2)] V for V of shape (r + n, k): of covariance P where V is standard normal."""
        r = self.F.shape[1]
        return torch.addmm(self.shifted(alpha).rest.sqrt() * V[r:], self.F, V[:r])

    def inverse(self, R: Tensor, alpha: float) -> Tensor:
        """P^-1 R."""
        return self._apply(R, alpha) / self.shifted(alpha).scale

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
        """P^-1 R times the scale of D."""
        shifted = self.shifted(alpha)
        Z = self._outside(R, shifted)
        if shifted.steep:  # a step of refinement, since the difference has lost most digits
            missed = R - (shifted.rest * Z + self.F @ (self.F.mT @ Z)) / shifted.scale
            Z += self._outside(missed, shifted)
        return Z

    def _outside(self, R: Tensor, shifted: Shifted) -> Tensor:
        scaled = R * (shifted.scale / shifted.rest)
        inside = self.F @ torch.cholesky_solve(self.F.mT @ scaled, shifted.L)
        return scaled.addcmul_(inside, shifted.scale / shifted.rest, value=-1.0)


@dataclass(frozen=True, eq=False)
class Shifted:
    """D as a column `rest`, its mean s as `scale`, L with L L^T = F^T s D^-1 F + s I, and whether that is `steep`."""

    rest: Tensor
    scale: float
    L: Tensor
    steep: bool

    @classmethod
    def of(cls, F: Tensor, rest: Tensor) -> Shifted | None:
        """From F and D; None where rounding makes the factor fail."""
        scale, r = float(rest.mean()), F.shape[1]
        core = F.new_zeros(r, r)
        rows = max(r, CORE_NUMBERS // max(1, r))
        for part, some in zip(F.split(rows), rest.split(rows), strict=True):
            weighted = new_matrix(len(part), r, F.dtype, F.device)
            add_gram(core, torch.mul(part, (scale / some).sqrt(), out=weighted))
        steep = bool(core.abs().sum(0).amax() > STEEP * scale) if r else False
        core.diagonal().add_(scale)
        L = try_cholesky(core)
        return None if L is None else cls(rest, scale, L, steep)


def pivoted_preconditioner(A: System, rank: int, seed: int | torch.Generator = 0, enough: float = 0.0) -> LowRank:
    """P = F F^T + alpha I + tail from a randomly pivoted Cholesky factor of A, which needs `rank` rows of it.

    References: Díaz, Epperly, Frangella, Tropp and Webber, *Robust, randomized preconditioning for kernel ridge
    regression*, 2023.

    >>> from mercer.testing.solvers import MatrixSystem
    >>> pivoted_preconditioner(MatrixSystem(torch.eye(6)), rank=3).note
    'randomly pivoted Cholesky preconditioner of rank 3'
    """
    factor = pivoted_cholesky(A, rank, seed=seed, enough=enough)
    note = f"randomly pivoted Cholesky preconditioner of rank {factor.rank}"
    return LowRank(factor.F, tail_of(factor.left, Products.of(A).diag), note)


def tail_of(left: Tensor, diag: Tensor) -> Tensor:
    """What stands for A - F F^T, of which `left` is the diagonal: a third of that, two thirds of its mean.

    The mean alone takes rows of little weight for heavy ones, `left` alone forgets that what is left has large
    eigenvalues too. It is given to the rows by the roots of a_ii: rows with weights differ in these. Of what was tried
    on real data with weights equal and not, this took the fewest iterations.

    >>> tail_of(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 1.0]))
    tensor([0.6667, 1.3333])
    """
    mean = diag.mean()
    share = (diag / mean).sqrt() if float(mean) > 0 else torch.ones_like(diag)
    return (left + 2 * left.mean() * share) / 3


def preconditioner_at(A: System, pivots: Tensor) -> LowRank:
    """The preconditioner of the given pivots: smooth in what A depends on, and without the search for them.

    >>> from mercer.testing.solvers import MatrixSystem
    >>> preconditioner_at(MatrixSystem(torch.eye(6)), torch.tensor([0, 4])).tail[:2]
    tensor([0.4444, 0.7778], dtype=torch.float64)
    """
    products = Products.of(A)
    columns = torch.empty(len(pivots), products.n, dtype=torch.float64, device=products.device)
    for some, part in zip(pivots.split(SKETCH_BLOCK), columns.split(SKETCH_BLOCK), strict=True):
        part.copy_(products.rows(some))
    corner = columns[:, pivots]
    corner = corner + torch.diag(NOISE * products.precision * corner.diagonal())
    L = factorise(corner.clone, largest=0.1, what="A part of the Gram matrix", advice="use a larger alpha").L
    for part in columns.split(max(1, SOLVED_NUMBERS // len(pivots)), dim=1):
        part.copy_(torch.linalg.solve_triangular(L, part, upper=False))
    left = (products.diag - sum_of_squares(columns)).clamp(min=0.0)
    note = f"pivoted Cholesky preconditioner of rank {len(pivots)}"
    return LowRank(columns.mT, tail_of(left, products.diag), note)


def sum_of_squares(columns: Tensor) -> Tensor:
    """For each column of a wide matrix, without a copy of it."""
    result: Tensor = torch.linalg.vector_norm(columns, dim=0).square_()
    return result


def nystrom_preconditioner(A: System, rank: int, seed: int | torch.Generator = 0) -> LowRank:
    r"""P = F F^T + (alpha + tail) I from the Nyström approximation of a random sketch,

    .. math:: A \approx (A \Omega)(\Omega^T A \Omega)^{-1}(A \Omega)^T,

    with `rank` random orthonormal columns in Omega: products with A instead of its rows, and the better copy of A when
    a few rows do not tell about the others.

    References: Frangella, Tropp and Udell, *Randomized Nyström preconditioning*, 2021, algorithms 2.1 and 5.1.

    >>> from mercer.testing.solvers import MatrixSystem
    >>> torch.linalg.svdvals(nystrom_preconditioner(MatrixSystem(torch.eye(6)), rank=3).F).round(decimals=6)
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
        factor = try_cholesky((core + core.T) / 2)
        if factor is not None:
            F = torch.linalg.solve_triangular(factor.T, shifted, upper=True, left=False)
            smallest = float(eigvalsh(F.mT @ F, "A preconditioner")[0]) - shift
            return LowRank(F, max(smallest, 0.0), f"Nyström preconditioner of rank {rank}")
        shift *= 10
    if scale == 0:
        return LowRank(image, note="Nyström preconditioner of rank 0")
    raise NotPositiveDefiniteError(
        "A sketch of the Gram matrix is not positive semi-definite: the kernel is not, or its values are not finite. "
        "Test it with mercer.testing.check_kernel."
    )
