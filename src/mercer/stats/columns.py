"""Which columns differ between two samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import ks_2samp


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
