"""Cholesky: the solver for one alpha > 0."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.core.results import Solution
from mercer.operators.centred import Lift
from mercer.solvers.backward_error import BackwardError, told
from mercer.solvers.dials import (
    CHOLESKY_GOOD_ENOUGH,
    CHOLESKY_REFINEMENTS,
    CHOLESKY_TOLERANCE,
    JITTERED_TOLERANCE,
    LARGEST_JITTER,
)
from mercer.solvers.factor import Factor, factorise
from mercer.solvers.registry import register
from mercer.solvers.system import System, check_alpha, dense_float64, right_hand_sides
from mercer.solvers.traits import Traits


@register("cholesky")
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

    traits: ClassVar[Traits] = Traits(matrices=1.5)

    initial_jitter: float = 1e-10
    max_jitter: float = LARGEST_JITTER

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
        errors: list[BackwardError] = []

        def shifted() -> Tensor:
            matrix, _ = dense_float64(A)
            matrix.diagonal().add_(alpha)
            errors[:] = [BackwardError.of(matrix)]
            return matrix

        factor = factorise(
            shifted,
            first=self.initial_jitter,
            largest=self.max_jitter,
            what=f"A of {A.shape[0]} rows plus alpha={alpha:g}",
            advice="use a larger alpha, or solver='eigh' for a singular matrix",
        )
        return CholeskyFactor(A, alpha, factor, errors[0], time.perf_counter() - started)

    def solve(self, A: System, B: Tensor, alpha: float | Tensor) -> Solution:
        """Solve for B (n,) or (n, t) with one alpha or one per column; each distinct alpha is factorised once."""
        if not isinstance(alpha, Tensor) or alpha.ndim == 0:
            return self.prepare(A, float(alpha)).solve(B)
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
    """The factor of A + alpha I (and the jitter, where one was needed); prepared once, solves many times."""

    system: System
    alpha: float
    factor: Factor
    error: BackwardError
    seconds: float = 0.0

    @property
    def L(self) -> Tensor:
        """The lower triangular matrix."""
        return self.factor.L

    @property
    def jitter(self) -> float:
        """The share of its diagonal that each row was given on top."""
        return self.factor.jitter

    @property
    def lift(self) -> Lift | None:
        """The direction that a centred A is lifted in."""
        return getattr(self.system, "lift", None)

    def solve(self, B: Tensor) -> Solution:
        """X of (A + alpha I) X = B for B of shape (n,) or (n, t), refined where that lowers the backward error."""
        started = time.perf_counter()
        rhs = right_hand_sides(B, len(self.L)).to(self.L.device)
        value = self.factor.solve(rhs)
        residual, missed = self._judged(value, rhs)
        steps = 0
        while CHOLESKY_GOOD_ENOUGH < residual < torch.inf and steps < CHOLESKY_REFINEMENTS:
            refined = value + self.factor.solve(rhs - self.alpha * value - self._matmul(value))
            smaller, left = self._judged(refined, rhs)
            if not smaller < 0.5 * residual:
                break
            value, residual, missed, steps = refined, smaller, left, steps + 1
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
        """The diagonal of (A + alpha I)^-1, without the direction that a centred A is lifted in."""
        diagonal = self.factor.inverse_diagonal()
        return diagonal if self.lift is None else diagonal - self.lift.share(self.alpha)

    def _judged(self, value: Tensor, rhs: Tensor) -> tuple[float, Tensor]:
        """The largest backward error, and the residuals beside the right-hand sides."""
        backward, relative = self.error.both(value, rhs)
        return float(backward.max()), relative

    def _matmul(self, value: Tensor) -> Tensor:
        return self.system.matmul(value).to(torch.float64)

    def _worry(self, residual: float, value: Tensor, missed: float) -> str:
        """Why the solution is not to be trusted; empty when it is."""
        if not bool(torch.isfinite(value).all()):
            return "the solution is not finite: the system is too close to singular, use a larger alpha"
        if residual > CHOLESKY_TOLERANCE:
            return "the system is close to singular: use a larger alpha or solver='eigh'"
        if self.jitter and missed > JITTERED_TOLERANCE:
            return "the system is singular and only jitter made it solvable: use a larger alpha or solver='eigh'"
        return told(missed)
