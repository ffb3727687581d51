"""How many observations lie inside predicted intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from mercer.core.errors import InputError
from mercer.processes.dials import ERRORS, FEWEST_ROWS, JUDGED, LEVELS, ROUNDING, TOO_FAR


def half_width(level: Any) -> Any:
    """How many deviations a central interval of that probability reaches either way.

    >>> round(float(half_width(0.95)), 3)
    1.96
    """
    try:
        levels = np.asarray(level, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"level={level!r}: must be a number between 0 and 1.") from None
    if not ((levels > 0) & (levels < 1)).all():
        raise InputError(f"level={level!r}: must be between 0 and 1.")
    return -ndtri(0.5 * (1.0 - levels))


def left_out_width(level: float, deviates: Any) -> np.ndarray:
    r"""How many deviations an interval has to reach to hold that share of observations left out.

    With n standardised errors of predictions that did not know the observation, it is the
    :math:`\lceil (n + 1) p \rceil`-th smallest of their sizes, for each column of (n, t).

    References: Vovk, Gammerman and Shafer, *Algorithmic Learning in a Random World*, 2005; Barber, Candes, Ramdas and
    Tibshirani, *Predictive inference with the jackknife+*, 2021.

    >>> left_out_width(0.9, np.arange(-10.0, 10.0).reshape(-1, 1))
    array([9.])
    """
    half_width(level)
    sizes = np.sort(np.abs(np.asarray(deviates, dtype=np.float64)), axis=0)
    n, least = len(sizes), _fewest(level)
    if n < least:
        raise InputError(f"level={level!r}: calibrated intervals need at least {least:,} rows; there are {n:,}.")
    return np.asarray(sizes[max(1, math.ceil((n + 1) * level - ROUNDING)) - 1])


def credible_width(level: float, deviates: Any) -> np.ndarray:
    r"""`half_width`, or `left_out_width` in columns of `deviates` (n, t) that contradict the process at some level.

    The decision is the same for every level, so that intervals are nested; where n rows cannot tell a level from one,
    they reach the largest deviate and no less than those of the process.

    >>> credible_width(0.9, np.linspace(-2.0, 2.0, 1000).reshape(-1, 1)).round(2)  # none is beyond 2
    array([1.8])
    """
    own, deviates = float(half_width(level)), np.asarray(deviates, dtype=np.float64)
    wrong = contradicted(deviates).any(0)
    if not wrong.any():
        return np.full(deviates.shape[1], own)
    if len(deviates) < _fewest(level):
        return np.where(wrong, np.maximum(own, np.abs(deviates).max(0)), own)
    return np.where(wrong, left_out_width(level, deviates), own)


def contradicted(deviates: Any) -> np.ndarray:
    r"""Which of the `JUDGED` levels (rows) the standardised errors (n, t) contradict, for each column.

    They do where the share outside is not :math:`1 - p` by more than chance and by more than 40% of p or of
    :math:`1 - p`, whichever is less: 95% intervals have to hold between 93% and 97%.
    """
    deviates = np.asarray(deviates, dtype=np.float64)
    if len(deviates) < FEWEST_ROWS:
        return np.zeros((len(JUDGED), deviates.shape[1]), dtype=bool)
    found = []
    for level in JUDGED:
        chance = ERRORS * math.sqrt(level * (1.0 - level) / len(deviates))
        missed = np.abs(left_out_share(level, deviates) - level)
        found.append(missed > max(chance, TOO_FAR * min(level, 1.0 - level)))
    return np.stack(found)


def left_out_share(level: float, deviates: Any) -> np.ndarray:
    """The share inside the process's own interval of that level, for each column of standardised errors (n, t).

    >>> left_out_share(0.9, np.array([[0.0], [1.0], [1.6], [1.7]]))
    array([0.75])
    """
    inside = np.abs(deviates) <= half_width(level)
    return np.asarray(inside.mean(0)) if len(inside) else np.full(inside.shape[1], np.nan)


def _fewest(level: float) -> int:
    return math.ceil(level / (1.0 - level) - ROUNDING)


@dataclass(frozen=True, eq=False)
class IntervalCalibration:
    r"""Central intervals of normal predictions held against what was observed.

    Attributes
    ----------
    levels : array
        Probabilities that intervals promise.
    coverage : array
        Share of the observations inside.
    width : array
        Mean width of the intervals.
    score : array
        Mean interval score :math:`(u - l) + \frac{2}{1-p} (\text{distance to the interval})`; smaller is better.
    nll : float
        Mean negative log density of the observations.
    rmse : float
        Root of the mean squared error of the means.
    n : int
        Number of observations.

    References
    ----------
    Gneiting and Raftery, *Strictly proper scoring rules, prediction, and estimation*, 2007, section 6.2.

    Examples
    --------
    >>> found = IntervalCalibration.of(y=np.zeros(3), mean=np.zeros(3), std=np.ones(3), levels=(0.5,))
    >>> found.coverage, round(found.nll, 4)
    (array([1.]), 0.9189)
    """

    levels: np.ndarray
    coverage: np.ndarray
    width: np.ndarray
    score: np.ndarray
    nll: float
    rmse: float
    n: int

    @classmethod
    def of(cls, y: Any, mean: Any, std: Any, levels: Any = LEVELS) -> IntervalCalibration:
        """From observations and the means and deviations predicted for them, all of one shape."""
        y, mean, std = (np.asarray(v, dtype=np.float64).reshape(-1) for v in (y, mean, std))
        if not len(y) == len(mean) == len(std) > 0:
            raise InputError(
                f"y, mean and std have {len(y)}, {len(mean)} and {len(std)} values: they must be equally many."
            )
        bad = np.flatnonzero(~np.isfinite(y))
        if len(bad):
            raise InputError(f"y is not finite (first at position {bad[0]}); remove it first.")
        promised = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        reach = half_width(promised)[:, None] * std
        error = np.abs(y - mean)
        outside = np.maximum(error - reach, 0.0)
        floor = np.maximum(std, np.finfo(np.float64).tiny)
        nll = 0.5 * (error / floor) ** 2 + np.log(floor) + 0.5 * np.log(2 * np.pi)
        return cls(
            levels=promised,
            coverage=(error <= reach).mean(1),
            width=2.0 * reach.mean(1),
            score=(2.0 * reach + 2.0 / (1.0 - promised[:, None]) * outside).mean(1),
            nll=float(nll.mean()),
            rmse=float(np.sqrt(np.mean(error**2))),
            n=len(y),
        )

    @property
    def error(self) -> float:
        """The mean distance between what intervals promise and what they hold."""
        return float(np.abs(self.coverage - self.levels).mean())

    def plot(self, ax: Any = None) -> Any:
        """Coverage against the level that was promised."""
        from mercer.plots.gaussian_process import interval_coverage

        return interval_coverage(self.levels, self.coverage, n=self.n, ax=ax)

    def __str__(self) -> str:
        lines = [
            f"{self.n:,} observations: RMSE {self.rmse:.4g}, negative log density {self.nll:.4g}",
            "level  covered",
        ]
        lines += [f"{p:5.0%}  {c:7.1%}" for p, c in zip(self.levels, self.coverage, strict=True)]
        return "\n".join(lines)

    __repr__ = __str__
