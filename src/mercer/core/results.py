"""What a solver gives back: the value, and an account of how it was found."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from torch import Tensor

TELLING = 1e-5
"""The least bound of an error that a report mentions."""


@dataclass(frozen=True)
class SolverReport:
    """How a linear system was solved.

    Attributes
    ----------
    solver : str or solver object
        Name of the method, such as "cholesky".
    converged : bool
        Whether the answer meets the solver's tolerance.
    residual : float
        For direct solvers the backward error ``|r| / (|A||x| + |b|)``, for iterative ones ``|r| / |b|``; the largest
        over right-hand sides.
    iterations : int
        Steps of an iterative solver, 0 for a direct one.
    seconds : float
        wall-clock time.
    jitter : float
        Relative amount added to the diagonal to make a factorisation succeed, 0 when none was needed.
    reason : str
        Why this solver was chosen and what to worry about.
    error_bound : float or None
        The most that predictions at the training rows can differ from those of the exact solution: the root of the mean
        square, as a share of the standard deviation of the targets. For other losses, the root of how far the objective
        is above the least, as a share of that of the best constant. None where no bound is known.
    """

    solver: str
    converged: bool
    residual: float
    iterations: int = 0
    seconds: float = 0.0
    jitter: float = 0.0
    reason: str = ""
    error_bound: float | None = None

    def __str__(self) -> str:
        state = "converged" if self.converged else "NOT CONVERGED"
        steps = f", {self.iterations} iterations" if self.iterations else ""
        jitter = f", jitter {self.jitter:.0e}" if self.jitter else ""
        bound = "" if self.error_bound is None or self.error_bound < TELLING else f", error < {self.error_bound:.0e}"
        line = f"{self.solver}: {state}, residual {self.residual:.1e}{bound}{steps}{jitter}, {self.seconds:.2f} s"
        return f"{line} ({self.reason})" if self.reason else line


@dataclass(frozen=True, eq=False)
class Solution(SolverReport):
    """A `SolverReport` together with the value that was found.

    `missed` are the norms of the residuals beside those of the right-hand sides, where a solver knows them; `intercept`
    is what is added to each function, (t,), where a solver finds one.

    >>> import torch
    >>> solution = Solution("cholesky", converged=True, residual=1e-16, value=torch.ones(2))
    >>> print(solution)
    cholesky: converged, residual 1.0e-16, 0.00 s
    """

    value: Tensor = field(kw_only=True)
    missed: Tensor | None = field(default=None, kw_only=True)
    intercept: Tensor | None = field(default=None, kw_only=True)

    def report(self, **changes: Any) -> SolverReport:
        """The account without the value, with some fields changed."""
        kept = {f.name: getattr(self, f.name) for f in fields(SolverReport)}
        return SolverReport(**(kept | changes))
