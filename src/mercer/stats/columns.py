"""Which columns differ between two samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import ks_2samp

from mercer.plots.canvas import brief


@dataclass(frozen=True)
class ColumnDifference:
    """How much one column differs by itself.

    Attributes
    ----------
    name : str
        Of the column.
    distance : float
        The Kolmogorov-Smirnov distance of its two samples.
    pvalue : float
        Corrected for the number of columns (Holm).
    shift : float
        The difference of the means, second minus first, in pooled standard deviations.
    """

    name: str
    distance: float
    pvalue: float
    shift: float


def found_columns(found: Sequence[ColumnDifference], level: float) -> tuple[list[str], str]:
    """The names of the columns that differ, and words for the one that differs most where none does.

    A difference that no column shows can lie in how columns go together, or be too small to show in one.

    >>> found_columns([ColumnDifference("bmi", 0.25, 0.0739, 0.6)], 0.05)
    ([], 'no single column differs clearly (closest: bmi, p = 0.0739)')
    """
    named = [c.name for c in found if c.pvalue <= level]
    first = f"{found[0].name}, p = {brief(found[0].pvalue)}"
    return named, "" if named else f"no single column differs clearly (closest: {first})"


def column_differences(x: np.ndarray, y: np.ndarray, names: Sequence[str]) -> tuple[ColumnDifference, ...]:
    """Each column by itself, those that differ most first.

    >>> x = np.arange(40.0).reshape(20, 2)
    >>> [c.name for c in column_differences(x, x + [0.0, 30.0], ["a", "b"]) if c.pvalue < 0.05]
    ['b']
    """
    method = "exact" if max(len(x), len(y)) <= 1000 else "asymp"
    tests = [_smirnov(a, b, method) for a, b in zip(x.T, y.T, strict=True)]
    corrected = holm(np.array([p for _, p in tests]))
    spread = np.concatenate([x, y]).std(0)
    shift = (y.mean(0) - x.mean(0)) / np.where(spread > 0, spread, 1.0)
    found = [
        ColumnDifference(name, float(d), float(p), float(s))
        for name, (d, _), p, s in zip(names, tests, corrected, shift, strict=True)
    ]
    return tuple(sorted(found, key=lambda c: (c.pvalue, -c.distance)))


def holm(pvalues: np.ndarray) -> np.ndarray:
    """Holm's correction: the chance that any of the true hypotheses is rejected stays below the level.

    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(pvalues)
    factors = np.arange(len(pvalues), 0, -1)
    rising = np.minimum(1.0, np.maximum.accumulate(pvalues[order] * factors))
    corrected = np.empty_like(rising)
    corrected[order] = rising
    return corrected


def _smirnov(a: np.ndarray, b: np.ndarray, method: str) -> tuple[float, float]:
    if np.ptp(np.concatenate([a, b])) == 0:
        return 0.0, 1.0
    found = ks_2samp(a, b, method=method)
    return float(found.statistic), float(found.pvalue)
