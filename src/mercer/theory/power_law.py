"""A forecast from subsets: fits to fewer rows, judged on the others, and a power law through their errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import nnls

from mercer.core.seeding import as_seed
from mercer.plots.canvas import numbers
from mercer.theory.dials import REPEATS
from mercer.theory.ridge_path import Eigen, RidgePath

HALVINGS = np.arange(6, 0, -1) / 2
"""Subsets have n 2^-h rows."""
EXPONENTS = np.linspace(0.05, 2.0, 79)


@dataclass(frozen=True, eq=False)
class PowerLaw:
    r"""The error a + c m^-b with m rows, a and c not negative.

    Attributes
    ----------
    floor, slope, exponent : float
        A, c and b.
    rows, errors : array
        The numbers of rows and mean squared errors it was fitted to.
    spreads : array
        Standard errors of the logarithms of these errors.

    Examples
    --------
    >>> law = PowerLaw.through([10, 20, 40, 80], [1 + 10 / m for m in (10, 20, 40, 80)])
    >>> round(law.floor, 3), round(law.slope, 3), round(law.exponent, 3)
    (1.0, 10.0, 1.0)
    """

    floor: float
    slope: float
    exponent: float
    rows: np.ndarray
    errors: np.ndarray
    spreads: np.ndarray

    @classmethod
    def through(cls, rows: Any, errors: Any, spreads: Any = None) -> PowerLaw:
        """The power law of least relative errors."""
        m, s = np.asarray(rows, dtype=float), np.asarray(errors, dtype=float)
        best = (np.inf, 0.0, 0.0, 0.0)
        for b in EXPONENTS:
            unit = (m / m[-1]) ** -b
            (a, c), residual = nnls(np.column_stack([1 / s, unit / s]), np.ones(len(m)))
            best = min(best, (residual, a, c * m[-1] ** b, float(b)))
        _, a, c, b = best
        return cls(float(a), float(c), b, m, s, np.zeros(len(m)) if spreads is None else np.asarray(spreads))

    def times(self, factor: float) -> PowerLaw:
        """The law of errors that are a factor larger."""
        return replace(self, floor=factor * self.floor, slope=factor * self.slope, errors=factor * self.errors)

    def error(self, rows: Any) -> Any:
        """The squared error with that many rows."""
        return self.floor + self.slope * np.asarray(rows, dtype=float) ** -self.exponent


def power_laws(
    gram: Any,
    problems: Sequence[np.ndarray],
    loos: Sequence[float],
    weights: np.ndarray,
    *,
    intercept: bool = False,
    random_state: Any = None,
) -> list[PowerLaw]:
    """The laws of ridge regression, alpha chosen anew by leave-one-out for each part of the rows.

    Each problem has targets (n, t), whose errors are summed, and an error of all rows in `loos`, the last point.
    """
    K = numbers(gram, "gram")

    def scores(some: np.ndarray, rest: np.ndarray) -> list[float]:
        inner, cross = K[np.ix_(some, some)], K[np.ix_(rest, some)]
        eigen = Eigen.of(inner, weights[some], intercept=intercept)
        found = []
        for Y in problems:
            path = RidgePath.of(eigen, Y[some])
            off = predictions(eigen, inner, cross, Y[some], path.alphas[path.best]) - Y[rest]
            found.append(float(np.average((off**2).sum(1), weights=weights[rest])))
        return found

    return laws_of(scores, len(K), loos, random_state=random_state)


def laws_of(
    scores: Callable[[np.ndarray, np.ndarray], Sequence[float]],
    n: int,
    errors: Sequence[float | None],
    *,
    random_state: Any = None,
) -> list[PowerLaw]:
    """Laws through the errors of fits to n 2^-3 to n 2^-(1/2) rows, four times each, on the rows left out.

    Parameters
    ----------
    scores : callable
        The errors, one for each problem, of fits to the rows at some places on those at others.
    n : int
        Rows.
    errors : Sequence[float or None]
        Those of fits to all rows, the last points; None where they are not known.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None
        Seed of the parts.
    """
    rng = np.random.default_rng(as_seed(random_state))
    sizes = np.rint(n * 2.0**-HALVINGS).astype(int)
    orders = [[rng.permutation(n) for _ in range(REPEATS)] for _ in sizes]
    tries = [[scores(o[:m], o[m:]) for o in tried] for m, tried in zip(sizes, orders, strict=True)]
    found = []
    for table, error in zip(np.moveaxis(np.array(tries), 2, 0), errors, strict=True):
        means, spreads = table.mean(1), np.log(table).std(1, ddof=1) / np.sqrt(REPEATS)
        if error is None:
            law = PowerLaw.through(sizes, means, spreads)
        else:
            law = PowerLaw.through(np.append(sizes, n), np.append(means, error), np.append(spreads, 0.0))
        found.append(law)
    return found


def predictions(eigen: Eigen, K: np.ndarray, cross: np.ndarray, Y: np.ndarray, alpha: float) -> np.ndarray:
    """The fit at other rows; with an infinite eigenvalue, the constant that makes weighted residuals sum to zero."""
    root = np.sqrt(eigen.weights)[:, None]
    dual = root * (eigen.vectors @ ((eigen.vectors.T @ (root * Y)) / (eigen.values + alpha)[:, None]))
    constant = np.average(Y - K @ dual, axis=0, weights=eigen.weights) if np.isinf(eigen.values[-1]) else 0.0
    return cross @ dual + constant
