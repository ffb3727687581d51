"""The picture of a fitted Gaussian process classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.estimators.gaussian_process_report import feature_names, relevances
from mercer.plots.classification import reliability
from mercer.plots.gaussian_process import feature_relevance
from mercer.plots.probabilities import probability_map

if TYPE_CHECKING:
    from mercer.estimators.gaussian_process_classifier import GaussianProcessClassifier

SIDE = 80


def probabilities_plot(model: GaussianProcessClassifier, X: Any, y: Any, ax: Any) -> Any:
    """The map of probabilities for two features; else reliability at X, y where given, or the relevance of features."""
    if (X is None) != (y is None):
        raise InputError("plot(X, y): give both, or neither for the training rows.")
    data = model._posterior.data
    if data.X.is_tensor and not data.square and data.X.values.shape[1] == 2:
        if X is None:
            X, y = data.X.values.cpu().numpy(), model.classes_[data.Y[:, 0].long().cpu().numpy()]
        return _map(model, np.asarray(X, dtype=np.float64), np.asarray(y), ax)
    if X is not None:
        return reliability(np.asarray(y), np.asarray(model.predict_proba(X)), model.classes_, ax=ax)
    process: Any = model
    relevance = relevances(process)
    if relevance is None:
        raise InputError("plot() draws the relevance of features from a length scale for each: give X and y instead.")
    return feature_relevance(relevance, feature_names(process), ax=ax)


def _map(model: GaussianProcessClassifier, shown: np.ndarray, labels: np.ndarray, ax: Any) -> Any:
    low, high = shown.min(0), shown.max(0)
    margin = np.where(high > low, 0.15 * (high - low), 1.0)
    first, second = (np.linspace(low[j] - margin[j], high[j] + margin[j], SIDE) for j in range(2))
    grid = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    rows = Points(torch.from_numpy(grid), model._posterior.data.X.names)
    p = model._posterior.probabilities(rows).cpu().numpy().reshape(SIDE, SIDE, -1)
    names = getattr(model, "feature_names_in_", ("first feature", "second feature"))
    return probability_map(shown, labels, first, second, p, model.classes_, names=names, ax=ax)
