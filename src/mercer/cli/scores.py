"""How well predictions fit, and what to conclude, in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CLEAR = 2.0
"""A difference of mean squared errors counts from this many of its standard deviations."""


@dataclass(frozen=True)
class Score:
    """R2 and the root mean squared error of predictions, rows counted with their weights."""

    r2: float
    rmse: float


def score(actual: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None = None) -> Score:
    """Compare predictions with the truth; R2 is NaN where the truth does not vary.

    >>> score(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.0]))
    Score(r2=0.5, rmse=0.5773502691896257)
    """
    error = np.average((actual - predicted) ** 2, weights=weights)
    spread = np.average((actual - np.average(actual, weights=weights)) ** 2, weights=weights)
    return Score(float(1 - error / spread) if spread > 0 else float("nan"), float(np.sqrt(error)))


def verdict(
    actual: np.ndarray, kernel: np.ndarray, ridge: np.ndarray, mean: float, weights: np.ndarray | None = None
) -> str:
    """Which model to prefer, in words."""
    constant = np.full_like(actual, mean)
    over_mean, over_ridge = (_gain(actual, other, kernel, weights) for other in (constant, ridge))
    ours, theirs = score(actual, kernel, weights).rmse, score(actual, ridge, weights).rmse
    change = f"{abs(1 - ours / theirs):.0%}" if theirs > 0 else "much"
    if over_ridge < -CLEAR:
        return f"Ridge regression wins: the error of kernel ridge is {change} larger. A linear model does better here."
    if over_mean < CLEAR:
        return (
            "Kernel ridge is not clearly better than the mean of the training target: "
            "these features say little about it, or there are too few rows."
        )
    if over_ridge > CLEAR:
        return (
            f"Kernel ridge wins: its error is {change} below that of ridge regression, so the relation is not linear."
        )
    leader = "kernel ridge" if ours < theirs else "ridge regression"
    return (
        f"No clear winner: {leader} has the smaller error, but by less than {len(actual)} test rows can tell. "
        "A linear model does about as well here."
    )


def _gain(actual: np.ndarray, other: np.ndarray, ours: np.ndarray, weights: np.ndarray | None) -> float:
    """The mean drop in squared error from `other` to `ours`, in standard deviations of that mean."""
    drop = (actual - other) ** 2 - (actual - ours) ** 2
    mean = np.average(drop, weights=weights)
    share = np.full(len(drop), 1 / len(drop)) if weights is None else weights / weights.sum()
    deviation = np.sqrt(np.sum((share * (drop - mean)) ** 2))
    if deviation == 0:
        return float(np.sign(mean)) * np.inf if mean else 0.0
    return float(mean / deviation)
