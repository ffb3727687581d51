"""How many rows would reach an error."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.plots.canvas import ORANGE, legend
from mercer.theory.arguments import POSITIVE, check
from mercer.theory.dials import DRAWN, FARTHEST, NEEDED_STEPS
from mercer.theory.forecaster import Forecaster
from mercer.theory.learning_curve import LearningCurve, curve_of


@dataclass(frozen=True)
class SamplesNeeded:
    """Rows that reach an error, or why that is not known.

    Attributes
    ----------
    target : float
        The error asked for.
    rows : int or None
        How many rows, None where the forecast cannot be believed.
    reason : str
        Why not, or a word on the answer.
    guess : int or None
        What the forecast says, believed or not; None where no number of rows is enough.
    curve : LearningCurve
        The forecast that says so.
    """

    target: float
    rows: int | None
    reason: str
    guess: int | None
    curve: LearningCurve = field(repr=False, compare=False)

    def plot(self, ax: Any = None) -> Any:
        """Draw the forecast of the error with the target, and the rows that reach it. Returns axes."""
        ax = self.curve.plot(ax)
        ax.axhline(self.target, color=ORANGE, linewidth=1.2, label="target")
        if self.guess is not None:
            doubt = "" if self.rows is not None else ", not to rely on"
            ax.axvline(self.guess, color=ORANGE, linewidth=1, linestyle=":", label=f"{self.guess:,} rows{doubt}")
        legend(ax, loc="best")
        return ax


def samples_needed(made: Forecaster, target: float, *, measure: str = "RMSE") -> SamplesNeeded:
    """The fewest rows whose forecast is an error of at most `target`, in the units of the measure.

    >>> import numpy as np
    >>> from mercer.theory.forecaster import forecasters
    >>> x = np.random.default_rng(0).uniform(-3, 3, (200, 1))
    >>> y = np.sin(2 * x[:, 0]) + 0.3 * np.random.default_rng(1).standard_normal(200)
    >>> (made,) = forecasters(np.exp(-abs(x - x.T)), [y])
    >>> samples_needed(made, 0.1).rows is None
    True
    """
    POSITIVE.check("target", target, False)
    check(measure=measure)
    root, curve = measure == "RMSE", curve_of(made, DRAWN, measure=measure)
    wanted = target * target if root else target
    if wanted >= made.now:
        return SamplesNeeded(target, made.n, "the rows at hand are enough", made.n, curve)
    if wanted <= made.noise:
        floor = made.noise**0.5 if root else made.noise
        why = f"no number of rows: forecasts tend to {floor:.4g}, the noise as far as these rows say"
        return SamplesNeeded(target, None, why, None, curve)
    factors = np.geomspace(1, FARTHEST, NEEDED_STEPS)
    enough = [f for f in factors if made.at(float(f))[0] <= wanted]
    if not enough:
        why = f"more than {FARTHEST} times the rows at hand, which is too far to foresee"
        return SamplesNeeded(target, None, why, None, curve)
    rows, why = math.ceil(enough[0] * made.n), made.at(float(enough[0]))[2]
    return SamplesNeeded(target, None if why else rows, why or "by the forecast of the learning curve", rows, curve)
