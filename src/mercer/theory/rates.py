"""Rates of learning in the worst case, and the curse of dimensionality that they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.core.errors import InputError
from mercer.core.rules import Rule, is_number, one_of
from mercer.plots.canvas import numbers
from mercer.plots.risk import risk_curve
from mercer.theory.arguments import check

SOME_ERROR = Rule(is_number, lambda value: 0 < value <= 1, "a number above 0 and at most 1")
STATEMENTS = {
    "lipschitz": "error of the best rule without noise, Lipschitz functions: n^(-1/d)",
    "notes": "squared error in the worst case as lecture notes state it: n^(-s/(s+d))",
    "stone": "squared error with noise, functions with s derivatives: n^(-2s/(2s+d))",
}


@dataclass(frozen=True)
class Rate:
    """An error that falls like n to the power -exponent, up to a constant.

    Attributes
    ----------
    exponent : float
        How fast.
    statement : str
        Which error, of which functions.
    dimension : float
        The number of directions that matter.
    """

    exponent: float
    statement: str
    dimension: float

    def __call__(self, n: Any) -> Any:
        """The error at n rows, in units of that at one row."""
        return numbers(n, "n") ** -self.exponent

    def rows_for(self, error: float) -> float:
        """Rows at which the error has fallen to a share of that at one row; infinity where no float holds it."""
        SOME_ERROR.check("error", error, False)
        power = -math.log(error) / self.exponent
        return math.exp(power) if power < 709 else math.inf

    def plot(self, ax: Any = None) -> Any:
        """Draw the error against the number of rows; returns matplotlib axes."""
        n = np.geomspace(1, 1e9, 50)
        return risk_curve(n, {f"n^-{self.exponent:.3g}": self(n)}, error_name="error", title=self.statement, ax=ax)


class RowsByDimension(dict[float, float]):
    """Rows needed for each dimension; prints as a table."""

    def plot(self, ax: Any = None) -> Any:
        """Draw the rows against the dimension; returns matplotlib axes."""
        shown = {d: rows for d, rows in self.items() if np.isfinite(rows)}
        along = np.array(list(shown), dtype=float)
        lines = {"rows needed": np.array(list(shown.values()))}
        return risk_curve(along, lines, along_name="dimension", error_name="rows", ax=ax)

    def __repr__(self) -> str:
        return "\n".join([f"{'dimension':>9}  {'rows':>12}", *(f"{d:>9}  {rows:>12.3g}" for d, rows in self.items())])


def minimax_rate(smoothness: float, dimension: float, kind: str = "stone") -> Rate:
    r"""The rate at which no method can beat the worst case, for functions with s derivatives of d variables.

    ============  ===========================  ==================================================
    kind          rate                         of what
    ============  ===========================  ==================================================
    "stone"       :math:`n^{-2s/(2s+d)}`       squared error, with noise
    "notes"       :math:`n^{-s/(s+d)}`         squared error, as lecture notes on kernels state it
    "lipschitz"   :math:`n^{-1/d}`             error (not squared), without noise, s = 1
    ============  ===========================  ==================================================

    A target that depends on p directions alone has p in place of d for a method that finds these directions.

    References: Stone, *Optimal global rates of convergence for nonparametric regression*, 1982; Bach, *Breaking the
    curse of dimensionality with convex neural networks*, 2017.

    >>> minimax_rate(2, 4).exponent, f"{minimax_rate(1, 10, 'lipschitz').rows_for(0.1):.3g}"
    (0.5, '1e+10')
    """
    check(smoothness=smoothness, dimension=dimension)
    one_of(*STATEMENTS).check("kind", kind, False)
    s, d = float(smoothness), float(dimension)
    if kind == "stone":
        return Rate(2 * s / (2 * s + d), STATEMENTS["stone"], d)
    if kind == "notes":
        return Rate(s / (s + d), STATEMENTS["notes"], d)
    if s != 1:
        raise InputError(f"minimax_rate(smoothness={smoothness!r}, kind='lipschitz'): Lipschitz functions have s = 1.")
    return Rate(1 / d, STATEMENTS["lipschitz"], d)


def curse_of_dimensionality(
    dimensions: Any = (1, 2, 5, 10, 30, 100), error: float = 0.1, *, smoothness: float = 1.0, kind: str = "stone"
) -> RowsByDimension:
    """Rows needed, for each dimension, until the worst-case error is a share of that of one row.

    Parameters are those of `minimax_rate`.

    >>> curse_of_dimensionality([1, 2, 10])
    dimension          rows
            1          31.6
            2           100
           10         1e+06
    """
    asked = np.atleast_1d(dimensions).tolist() if np.size(numbers(dimensions, "dimensions")) else []
    rows = {d: minimax_rate(smoothness, d, kind).rows_for(error) for d in asked}
    return RowsByDimension(rows)
