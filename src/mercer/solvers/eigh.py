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
        started = time.perf_counter()
        n = len(self.values)
        rhs, scale = near_one(right_hand_sides(B, n).to(self.vectors.device))
        alphas = check_alpha(alpha, rhs.shape[1]).expand(rhs.shape[1]).to(rhs.device)
        distinct = self.distinct(alphas)
        value = self.inverse_times(rhs, distinct)
        cut = distinct == 0
        missed = torch.where(cut, self.null_part(rhs), 0.0) if bool(cut.any()) else torch.zeros_like(rhs)
        relative = self.error.both(value, rhs - torch.where(alphas == 0, missed, 0.0), alphas)[1]
        off = float(torch.where(alphas == 0, 0.0, relative).max())
        residual = float(self.error(value, rhs - missed, alphas).max())
        allowed = max(EIGH_TOLERANCE, EIGH_ROUNDING * self.precision)
        words = ["" if residual <= EIGH_TOLERANCE else self._worry(value, allowed), told(off)]
        if bool(cut.any()):
            words.append(self._rank_decision(rhs, missed))
        return Solution(
            solver="eigh",
            converged=residual <= allowed and off <= UNSOLVED,
            residual=residual,
            seconds=self.seconds + time.perf_counter() - started,
            reason="; ".join(filter(None, words)),
            value=(value * scale).reshape(B.shape),
            missed=relative,
        )

    def distinct(self, alphas: Tensor) -> Tensor:
        """The alphas, with those that rounding errors of float64 hide beside A counted as zero."""
        return torch.where(alphas < torch.finfo(torch.float64).eps * self.values[-1], 0.0, alphas)

    def inverse_times(self, B: Tensor, alpha: float | Tensor) -> Tensor:
        """(A + alpha I)^-1 B for B of shape (n, t), by the formula."""
        return self.vectors @ (self.inverse_values(alpha) * (self.vectors.T @ B))

    def inverse_values(self, alpha: float | Tensor) -> Tensor:
        """1 / (lambda_j + alpha_k) as (n, k), with the pseudo-inverse where alpha is zero."""
        alphas = check_alpha(alpha).reshape(1, -1).to(self.values.device)
        values = self.values.unsqueeze(1)
        inverse = 1.0 / (values + alphas)
        return torch.where((alphas > 0) | (values > self.cutoff), inverse, 0.0)

    def inverse_diag(self, alpha: float | Tensor) -> Tensor:
        """The diagonal of (A + alpha I)^-1, without a lifted direction: (n,) for a number, (n, k) for k alphas."""
        inverse = self.inverse_values(alpha)
        blocks = [block.square() @ inverse for block in self.vectors.split(ROW_BLOCK)]
        diagonal = torch.cat(blocks)
        diagonal = diagonal if isinstance(alpha, Tensor) and alpha.ndim else diagonal[:, 0]
        return diagonal if self.lift is None else diagonal - self.lift.share(alpha)

    def null_diag(self) -> Tensor:
        """The diagonal of the projector P onto the null space of A."""
        return self.null_vectors.square().sum(1)

    def null_part(self, B: Tensor) -> Tensor:
        """P B, the part of B outside the range of A."""
        return self.null_vectors @ (self.null_vectors.T @ B)

    def _worry(self, value: Tensor, allowed: float) -> str:
        if not bool(torch.isfinite(value).all()):
            return "the solution is not finite: use a larger alpha"
        if allowed > EIGH_TOLERANCE:
            return f"the entries of the Gram matrix are rounded to {self.precision:.0e}, which float64 would not do"
        return f"the backward error is above {allowed:.0e}: use a larger alpha"

    def _rank_decision(self, rhs: Tensor, missed: Tensor) -> str:
        n = len(self.values)
        decision = f"rank {self.rank} of {n}: eigenvalues up to {self.cutoff:.1e} count as zero"
        share = float((column_norms(missed) / column_norms(rhs).clamp(min=torch.finfo(rhs.dtype).tiny)).max())
        if self.rank == n:
            return f"full rank {n}"
        if share > INCONSISTENT:
            return f"{decision}; the targets cannot all be interpolated, the answer is least squares"
        return decision
