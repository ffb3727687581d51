"""The picture of a fitted KernelClassifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.plots.classification import decision_regions, reliability

if TYPE_CHECKING:
    from mercer.estimators.kernel_classifier import KernelClassifier

SIDE = 150


def classifier_plot(model: KernelClassifier, X: Any = None, y: Any = None, ax: Any = None) -> Any:
    """Regions of the classes for two features, else observed shares against predicted probabilities."""
    if (X is None) != (y is None):
        raise InputError("plot(X, y): give both, or neither for the training rows.")
    if X is None:
        data = model._data
        if data is None:
            raise InputError("plot() of a model that keeps no training rows needs data: give it X and y.")
        if getattr(model, "n_features_in_", None) != 2:
            raise InputError("plot() needs held-out rows X, y to show how reliable the probabilities are.")
        X, y = data.rows.values, model.classes_[data.targets[:, 0].long().numpy()]
    if getattr(model, "n_features_in_", None) != 2:
        return reliability(np.asarray(y), np.asarray(model.predict_proba(X)), model.classes_, ax=ax)
    shown = np.asarray(X, dtype=np.float64)
    low, high = shown.min(0), shown.max(0)
    margin = np.where(high > low, 0.08 * (high - low), 1.0)
    sides = [np.linspace(low[j] - margin[j], high[j] + margin[j], SIDE) for j in range(2)]
    grid = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    decisions = model._columns(Points(torch.from_numpy(grid))).cpu().numpy()
    names = getattr(model, "feature_names_in_", ("first feature", "second feature"))
    return decision_regions(
        shown, np.asarray(y), sides[0], sides[1], decisions.reshape(SIDE, SIDE, -1), model.classes_, names=names, ax=ax
    )
