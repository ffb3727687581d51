"""Scores of predictions on any device: scikit-learn's metrics read what numpy can read."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score
from torch import Tensor

from mercer.data.given import Rows, Targets, Weights

HUGE = 1e100
"""Numbers above it have sums of squares that are none."""


class ScoreMixin:
    """`score` as scikit-learn has it, also for tensors on a GPU; comes before scikit-learn's mixins."""

    predict: Any

    def score(self, X: Rows, y: Targets, sample_weight: Weights = None) -> float:
        """R^2 of the predictions at X, or for classes the share that is right."""
        true, found, weight = on_host(y), on_host(self.predict(X)), on_host(sample_weight)
        if is_classifier(self):
            return float(accuracy_score(true, found, sample_weight=weight))
        true, found = np.asarray(true), np.asarray(found)
        size = np.abs(found).max(initial=0.0)
        unit = 2.0 ** np.frexp(size)[1] if size > HUGE else 1.0  # R^2 knows no unit
        return float(r2_score(true if unit == 1.0 else true / unit, found / unit, sample_weight=weight))


def on_host(values: Any) -> Any:
    """A tensor as a numpy array, anything else as it is."""
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else values


def quantile_score(levels: tuple[float, ...], y: np.ndarray, predicted: np.ndarray, weights: np.ndarray) -> float:
    """1 minus the loss of predictions (n, t) relative to that of the constant quantiles of y (n,)."""
    target, at = y.reshape(-1, 1), np.asarray(levels)

    def loss(values: np.ndarray) -> float:
        below = target - values
        return float((weights @ np.where(below > 0, at * below, (at - 1) * below)).sum())

    order = y.argsort()
    reached = weights[order].cumsum()
    constant = y[order[np.searchsorted(reached, at * reached[-1])]]
    return 1.0 - loss(predicted) / max(loss(np.tile(constant, (len(y), 1))), 1e-300)
