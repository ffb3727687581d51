"""The spread of columns: their units, whatever these are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.dials import BISECTIONS, MOST_GAPS, NORMAL_GAP, ROUNDING, SAME

Array = NDArray[np.float64]


def column_spreads(values: Array, weights: Array, some: Array, some_weights: Array) -> Array:
    r"""The spread of each column: its deviation, but at most three times its typical gap,

    .. math:: s_j = \min(\operatorname{sd}_j, 3 g_j), \qquad
        g_j = \operatorname{median}_{x_{ij} \ne x_{kj}} |x_{ij} - x_{kj}| \cdot \sqrt{P(x_{ij} \ne x_{kj})}.

    It follows the units of a column and ignores shifts, holds for binary columns and for those in which most values are
    equal, and a few outliers, however far, do not make the rest look constant. Gaps are those of `some` of the rows.
    Zero for a constant column.

    >>> column_spreads(np.array([[0.0], [0.0], [1.0], [1.0]]), np.ones(4), np.array([[0.0], [1.0]]), np.ones(2))
    array([0.5])
    """
    units = np.array([_unit(column) for column in values.T])
    moving = units > 0
    spreads = np.zeros(values.shape[1])
    share = weights / weights.max()
    share = share / share.sum()
    for j in np.flatnonzero(moving):
        column = (values[:, j] - values[0, j]) / units[j]
        column = column - share @ column
        deviation = math.sqrt(share @ column**2)
        spreads[j] = units[j] * _cut(deviation, Gaps.of((some[:, j] - values[0, j]) / units[j], some_weights))
    return spreads


def robust_spread(values: Array, weights: Array) -> float:
    """The deviation of a normal sample whose typical gap is that of the values; a quarter of outliers hardly move it.

    Zero for a constant. It follows units, ignores shifts, and holds where many values are equal.

    >>> round(robust_spread(np.array([1.0, 2.0, 3.0, 4.0, 1000.0]), np.ones(5)), 2)
    2.34
    """
    unit = _unit(values)
    if not unit > 0:
        return 0.0
    gaps = Gaps.of((values - values[0]) / unit, weights)
    return unit * gaps.typical / NORMAL_GAP if gaps.differ > 0 else 0.0


def _cut(deviation: float, gaps: Gaps) -> float:
    """The deviation, or `MOST_GAPS` typical gaps where these are less; only then the gap is searched."""
    if gaps.differ == 0 or gaps.share_within(deviation / (MOST_GAPS * gaps.root)) < 0.5:
        return deviation
    return min(deviation, MOST_GAPS * gaps.typical)


@dataclass(frozen=True, eq=False)
class Gaps:
    """The gaps between the values of a column; a pair has weight w_i w_j, so that integer weights equal repetitions.

    `differ` is the weight of pairs i < j of different values, `equal` that of the other ones.

    >>> gaps = Gaps.of(np.array([0.0, 1.0]), np.array([3.0, 3.0]))
    >>> gaps.differ, round(gaps.typical, 4)
    (0.25, 0.7071)
    """

    values: Array
    weights: Array
    below: Array
    equal: float
    differ: float

    @classmethod
    def of(cls, values: Array, weights: Array) -> Gaps:
        """The gaps of a column in any order."""
        order = np.argsort(values, kind="stable")
        x, w = values[order], weights[order] / weights.sum()
        below = np.concatenate([[0.0], np.cumsum(w)])
        equal = _pairs_within(x, w, below, SAME * (x[-1] - x[0]))
        differ = 0.5 * float(1.0 - (w * w).sum()) - equal
        return cls(x, w, below, equal, differ if differ > ROUNDING else 0.0)

    @property
    def root(self) -> float:
        """The root of the share of pairs, in either order, that differ."""
        return math.sqrt(2.0 * self.differ)

    @property
    def typical(self) -> float:
        """The median of the gaps between different values, times the root of the share of pairs that differ."""
        low = self._reached(0.5 * (1 - ROUNDING))
        high = low if self.share_within(low) > 0.5 * (1 + ROUNDING) else self._reached(0.5 * (1 + ROUNDING))
        return 0.5 * (low + high) * self.root

    def share_within(self, gap: float) -> float:
        """The share of the gaps between different values that are no larger."""
        return (_pairs_within(self.values, self.weights, self.below, gap) - self.equal) / self.differ

    def _reached(self, share: float) -> float:
        """The smallest gap within which there is this share of the gaps, up to rounding."""
        reach = self.values[-1] - self.values[0]
        low, high = SAME * reach, reach * (1 + SAME)
        for _ in range(BISECTIONS):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self.share_within(middle) >= share else (middle, high)
        return float(high)


def _pairs_within(x: Array, w: Array, below: Array, gap: float) -> float:
    """The weight of pairs i < j of ascending values no further apart than `gap`."""
    last = np.searchsorted(x, x + gap, side="right")
    return float(w @ (below[last] - below[1:]))


def _unit(column: Array) -> float:
    """The power of two below the range of a column, in which squares are numbers; zero for a constant column."""
    low, high = float(column.min()), float(column.max())
    size = high / 2 - low / 2
    if not size > SAME * max(abs(low), abs(high)):
        return 0.0
    return math.ldexp(0.5, math.frexp(size)[1])
