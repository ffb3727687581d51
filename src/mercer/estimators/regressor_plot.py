"""The picture of a fitted KernelRegressor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.plots import fit_1d, predicted_against_actual
from mercer.plots.canvas import BLUE

if TYPE_CHECKING:
    from mercer.estimators.kernel_regressor import KernelRegressor


def regressor_plot(model: KernelRegressor, X: Any = None, y: Any = None, ax: Any = None) -> Any:
    """The functions themselves for one feature, else predicted against actual values (the middle quantile)."""
    if (X is None) != (y is None):
        raise InputError("plot(X, y): give both, or neither for the training rows.")
    if X is None:
        if model._data is None:
            raise InputError("plot() of a model that keeps no training rows needs data: give it X and y.")
        X, y = model._data.rows.values, model._data.targets[:, 0]
    shown = np.asarray(y, dtype=np.float64).reshape(-1)
    if getattr(model, "n_features_in_", None) != 1:
        values = _columns(model, np.asarray(X, dtype=np.float64))
        return predicted_against_actual(shown, values[:, values.shape[1] // 2], title="Predictions", ax=ax)
    places = np.asarray(X, dtype=np.float64).reshape(-1)
    margin = 0.05 * (places.max() - places.min()) or 1.0
    grid = np.linspace(places.min() - margin, places.max() + margin, 400).reshape(-1, 1)
    values = _columns(model, grid)
    middle = values.shape[1] // 2
    names = getattr(model, "feature_names_in_", None)
    levels = model.quantiles_
    label = "fit" if levels is None else f"quantile {levels[middle]:g}"
    feature = "x" if names is None else names[0]
    ax = fit_1d(places, shown, grid, values[:, middle], label=label, feature=feature, ax=ax)
    for k in range(values.shape[1]):
        if k != middle:
            ax.plot(grid[:, 0], values[:, k], color=BLUE, linewidth=1, linestyle=(0, (4, 3)))
    return ax


def _columns(model: KernelRegressor, X: np.ndarray) -> np.ndarray:
    values = model._sorted(Points(torch.from_numpy(X))).cpu().numpy()
    return values.reshape(len(X), -1)
