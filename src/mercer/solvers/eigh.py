"""Eigendecomposition: the solver for alpha = 0, for paths of alpha and for one alpha per target."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from torch import Tensor

from mercer.core.errors import InputError, NotPositiveDefiniteError
from mercer.core.results import Solution
from mercer.operators.centred import Lift
from mercer.solvers.backward_error import BackwardError, told
from mercer.solvers.decompose import eigh_in_place
from mercer.solvers.dials import EIGH_ROUNDING, EIGH_TOLERANCE, INCONSISTENT, ROW_BLOCK, UNSOLVED
from mercer.solvers.registry import register
from mercer.solvers.scaling import column_norms
from mercer.solvers.system import System, check_alpha, dense_float64, near_one, right_hand_sides
from mercer.solvers.traits import Traits


@register("eigh")
@dataclass(frozen=True)
class Eigh:
    r"""Solve (A + alpha I) X = B for any alpha >= 0 from one eigendecomposition

    .. math:: A = Q \Lambda Q^T, \qquad X = Q (\Lambda + \alpha I)^{-1} Q^T B.

    At alpha = 0 the inverse is the pseudo-inverse: eigenvalues up to `rank_tol` times the largest count as zero
    (default: n times the precision of the matrix), so a singular consistent system gets its solution of least norm
    and an inconsistent one least squares. An alpha > 0 that rounding hides beside A counts as zero, which is reported
    where it matters. About 12 times the work of a Cholesky factorisation, and three n x n matrices while it runs.

    References: Golub and Van Loan, *Matrix Computations*, 2013, sections 5.5 and 8.3.

    >>> from mercer.testing.solvers import MatrixSystem
    >>> spectrum = Eigh().prepare(MatrixSystem(torch.ones(2, 2)))
    >>> spectrum.rank, spectrum.solve(torch.tensor([4.0, 4.0]), alpha=0.0).value.round(decimals=6)
    (1, tensor([2., 2.], dtype=torch.float64))
    """

    traits: ClassVar[Traits] = Traits(matrices=3.5, spectral=True)

    rank_tol: float | None = None

    def __post_init__(self) -> None:
        if self.rank_tol is not None and not 0 <= self.rank_tol < 1:
            raise InputError(f"Eigh(rank_tol={self.rank_tol}): must be None or a number >= 0 and < 1.")

    def prepare(self, A: System) -> Spectrum:
        """Decompose A once, to solve for many right-hand sides and many alphas."""
        started = time.perf_counter()
        matrix, precision = dense_float64(A)
        error = BackwardError.of(matrix)
        values, vectors = eigh_in_place(matrix, "The Gram matrix")
        smallest, largest = float(values[0]), float(values[-1].clamp(min=0.0))
        if smallest < -(precision**0.5) * largest or (largest == 0 and smallest < 0):
            raise NotPositiveDefiniteError(
                f"The Gram matrix of {len(values)} rows has the eigenvalue {smallest:.3g} "
                f"(the largest is {largest:.3g}): the kernel is not positive semi-definite. "
                "Test it with mercer.testing.check_kernel."
            )
        relative = len(values) * precision if self.rank_tol is None else self.rank_tol
        cutoff = max(relative * largest, -smallest)
        seconds = time.perf_counter() - started
        lift = getattr(A, "lift", None)
        return Spectrum(values.clamp(min=0.0), vectors, cutoff, error, seconds, precision, lift)

    def solve(self, A: System, B: Tensor, alpha: float | Tensor) -> Solution:
        """Solve for B (n,) or (n, t) with one alpha or one per column."""
        return self.prepare(A).solve(B, alpha)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues `values` (ascending) and eigenvectors `vectors` (columns) of A; `cutoff` decides the rank.

    `precision` is the relative rounding error of the entries of A. A `lift` of a centred A is no part of what matters.
    """

    values: Tensor
    vectors: Tensor
    cutoff: float
    error: BackwardError
    seconds: float = 0.0
    precision: float = torch.finfo(torch.float64).eps
    lift: Lift | None = None

    @cached_property
    def largest(self) -> float:
        """The largest eigenvalue, without that of a lifted direction; 0 where there is none."""
        values = self.values
        if self.lift is not None:
            lifted = (self.vectors.T @ self.lift.u.to(self.vectors)).abs().argmax()
            values = values[torch.arange(len(values), device=values.device) != lifted]
        return float(values.max()) if len(values) else 0.0

    @cached_property
    def rank(self) -> int:
        """The number of eigenvalues above the cutoff."""
        return int((self.values > self.cutoff).sum())

    @property
    def null_vectors(self) -> Tensor:
        """An orthonormal basis of the null space."""
        return self.vectors[:, : len(self.values) - self.rank]

    def solve(self, B: Tensor, alpha: float | Tensor) -> Solution:
        """X of (A + alpha I) X = B for B of shape (n,) or (n, t); alpha is one number or one per column."""
        return self.inverse(alpha, B.shape[1] if B.ndim == 2 else 1).solve(B)

    def inverse(self, alpha: float | Tensor, n_targets: int | None = None) -> Inverse:
        """(A + alpha I)^-1 for a number, or for several: one for each target or for each place of a path."""
        return Inverse(self, check_alpha(alpha, n_targets).to(self.values.device))

    def null_diag(self) -> Tensor:
        """The diagonal of the projector P onto the null space of A."""
        return self.null_vectors.square().sum(1)

    def null_part(self, B: Tensor) -> Tensor:
        """P B, the part of B outside the range of A."""
        return self.null_vectors @ (self.null_vectors.T @ B)


@dataclass(frozen=True, eq=False)
class Inverse:
    r""":math:`(A + \alpha I)^{-1} = Q (\Lambda + \alpha I)^{-1} Q^T` for an alpha or several (k,).

    Of the alphas `asked` for, those that rounding errors of float64 hide beside A count as zero, and for zero this is
    the pseudo-inverse.
    """

    spectrum: Spectrum
    asked: Tensor

    @cached_property
    def alpha(self) -> Tensor:
        """The alphas that count."""
        hidden = self.asked < torch.finfo(torch.float64).eps * self.spectrum.values[-1]
        return torch.where(hidden, 0.0, self.asked)

    @property
    def lift(self) -> Lift | None:
        """The direction that a centred A is lifted in."""
        return self.spectrum.lift

    @cached_property
    def cut(self) -> bool:
        """Whether there is a zero among them."""
        return bool((self.alpha == 0).any())

    @cached_property
    def values(self) -> Tensor:
        """1 / (lambda_j + alpha_k) as (n, k), zero for what the pseudo-inverse cuts off."""
        alphas, values = self.alpha.reshape(1, -1), self.spectrum.values.unsqueeze(1)
        inverse = 1.0 / (values + alphas)
        return torch.where((alphas > 0) | (values > self.spectrum.cutoff), inverse, 0.0) if self.cut else inverse

    @cached_property
    def diag(self) -> Tensor:
        """The diagonal, without a lifted direction: (n,) for a number, (n, k) for k alphas."""
        blocks = [block.square() @ self.values for block in self.spectrum.vectors.split(ROW_BLOCK)]
        diagonal = torch.cat(blocks).reshape(-1, *self.alpha.shape)
        return diagonal if self.lift is None else diagonal - self.lift.share(self.alpha)

    def times(self, B: Tensor) -> Tensor:
        """The product with B (n, t), by the formula."""
        return self.spectrum.vectors @ (self.values * (self.spectrum.vectors.T @ B))

    def solve(self, B: Tensor) -> Solution:
        """The product with B, (n,) or (n, t), and how far it solves the system."""
        started, spectrum = time.perf_counter(), self.spectrum
        rhs, scale = near_one(right_hand_sides(B, len(spectrum.values)).to(self.asked.device))
        asked, value = self.asked, self.times(rhs)
        missed = torch.where(self.alpha == 0, spectrum.null_part(rhs), 0.0) if self.cut else torch.zeros_like(rhs)
        backward, relative = spectrum.error.both(value, rhs - torch.where(asked == 0, missed, 0.0), asked)
        off = float(torch.where(asked == 0, 0.0, relative).max())
        residual = float((spectrum.error(value, rhs - missed, asked) if self.cut else backward).max())
        allowed = max(EIGH_TOLERANCE, EIGH_ROUNDING * spectrum.precision)
        words = ["" if residual <= EIGH_TOLERANCE else self._worry(value, allowed), told(off)]
        if self.cut:
            words.append(self._rank_decision(rhs, missed))
        return Solution(
            solver="eigh",
            converged=residual <= allowed and off <= UNSOLVED,
            residual=residual,
            seconds=spectrum.seconds + time.perf_counter() - started,
            reason="; ".join(filter(None, words)),
            value=(value * scale).reshape(B.shape),
            missed=relative,
        )

    def _worry(self, value: Tensor, allowed: float) -> str:
        if not bool(torch.isfinite(value).all()):
            return "the solution is not finite: use a larger alpha"
        if allowed > EIGH_TOLERANCE:
            precision = self.spectrum.precision
            return f"the entries of the Gram matrix are rounded to {precision:.0e}, which float64 would not do"
        return f"the backward error is above {allowed:.0e}: use a larger alpha"

    def _rank_decision(self, rhs: Tensor, missed: Tensor) -> str:
        n, rank = len(self.spectrum.values), self.spectrum.rank
        decision = f"rank {rank} of {n}: eigenvalues up to {self.spectrum.cutoff:.1e} count as zero"
        share = float((column_norms(missed) / column_norms(rhs).clamp(min=torch.finfo(rhs.dtype).tiny)).max())
        if rank == n:
            return f"full rank {n}"
        if share > INCONSISTENT:
            return f"{decision}; the targets cannot all be interpolated, the answer is least squares"
        return decision
