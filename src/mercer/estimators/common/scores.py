"""Scores of predictions on any device: scikit-learn's metrics read what numpy can read."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from mercer.core.errors import InputError
from mercer.data.given import Rows, Targets, Weights
from mercer.data.rows import DaskRows, RowSource, is_dask
from mercer.estimators.dials import HUGE


class ScoreMixin:
    """`score` as scikit-learn has it, also for tensors on a GPU; comes before scikit-learn's mixins."""

    predict: Any

    def score(self, X: Rows, y: Targets | None = None, sample_weight: Weights = None) -> float:
        """R^2 of the predictions at X, or for classes the share that is right; a `RowSource` has its own targets."""
        check_is_fitted(self)
        X, y, sample_weight = with_targets(X, y, sample_weight)
        true, found, weight = on_host(y), on_host(self.predict(X)), on_host(sample_weight)
        if is_classifier(self):
            return float(accuracy_score(true, found, sample_weight=weight))
        true, found = np.asarray(true), np.asarray(found)
        size = np.abs(found).max(initial=0.0)
        unit = 2.0 ** np.frexp(size)[1] if size > HUGE else 1.0  # R^2 knows no unit
        return float(r2_score(true if unit == 1.0 else true / unit, found / unit, sample_weight=weight))


def with_targets(X: Rows, y: Targets | None, sample_weight: Weights) -> tuple[Rows, Any, Any]:
    """Rows with their targets and weights; those of a source are read, those of a Dask collection become one."""
    if is_dask(X):
        X, y, sample_weight = DaskRows(X, y, sample_weight), None, None
    if y is not None:
        return X, y, sample_weight
    if not isinstance(X, RowSource) or X.n_targets == 0:
        raise InputError("score needs targets: score(X, y), or a source of rows that has them.")
    found = [X.targets_of(part) for part in X.parts()]
    targets = torch.cat([chunk.targets for chunk in found if chunk.targets is not None]).numpy()
    targets = targets[:, 0] if X.one_target else targets
    if X.labels is not None:
        targets = X.labels[targets.astype(int)]
    weights = [chunk.weights for chunk in found if chunk.weights is not None]
    return X, targets, torch.cat(weights).numpy() if weights else sample_weight


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
