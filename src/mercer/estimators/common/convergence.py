"""The one place that warns about convergence; the warning points at the user's line."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import FrameType

from sklearn.exceptions import ConvergenceWarning

from mercer.core.results import SolverReport

OURS = str(Path(__file__).parents[2])


def warn_if_not_converged(what: str, report: SolverReport) -> None:
    """A ConvergenceWarning with the solver's account, unless it converged."""
    if not report.converged:
        warnings.warn(f"{what}: {report}", ConvergenceWarning, stacklevel=_users_level())


def _users_level() -> int:
    """How many calls up the first line outside of mercer and scikit-learn is."""
    frame: FrameType | None = sys._getframe(2)
    level = 2
    while frame is not None and _is_library(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    return level if frame is not None else 2


def _is_library(file: str) -> bool:
    return file.startswith(OURS) or "sklearn" in Path(file).parts
