"""What a solver gives back: the value, and an account of how it was found."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class SolverReport:
    """How a linear system was solved.

    Attributes
    ----------
    solver : name of the method, such as "cholesky".
    converged : whether the answer meets the solver's tolerance.
    residual : for direct solvers the backward error ``|r| / (|A||x| + |b|)``, for iterative ones ``|r| / |b|``; the
        largest over right-hand sides.
    iterations : steps of an iterative solver, 0 for a direct one.
    seconds : wall-clock time.
    jitter : relative amount added to the diagonal to make a factorisation succeed, 0 when none was needed.
    reason : why this solver was chosen and what to worry about.
    """

    solver: str
    converged: bool
    residual: float
    iterations: int = 0
    seconds: float = 0.0
    jitter: float = 0.0
    reason: str = ""

    def __str__(self) -> str:
        state = "converged" if self.converged else "NOT CONVERGED"
        steps = f", {self.iterations} iterations" if self.iterations else ""
        jitter = f", jitter {self.jitter:.0e}" if self.jitter else ""
        line = f"{self.solver}: {state}, residual {self.residual:.1e}{steps}{jitter}, {self.seconds:.2f} s"
        return f"{line} ({self.reason})" if self.reason else line


@dataclass(frozen=True, eq=False)
class Solution(SolverReport):
    """A `SolverReport` together with the value that was found.

    >>> import torch
    >>> solution = Solution("cholesky", converged=True, residual=1e-16, value=torch.ones(2))
    >>> print(solution)
    cholesky: converged, residual 1.0e-16, 0.00 s
    """

    value: Tensor = field(kw_only=True)

    def report(self, **changes: Any) -> SolverReport:
        """The account without the value, with some fields changed."""
        kept = {f.name: getattr(self, f.name) for f in fields(SolverReport)}
        return SolverReport(**(kept | changes))
