"""The picture of a fitted KernelRidge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.core.errors import InputError
from mercer.plots import fit_1d, predicted_against_actual

if TYPE_CHECKING:
    from mercer.estimators.kernel_ridge import KernelRidge


def ridge_plot(model: KernelRidge, X: Any = None, y: Any = None, ax: Any = None) -> Any:
    """The function itself for one feature and one target, else predicted against actual values."""
    if (X is None) != (y is None):
        raise InputError("plot(X, y): give both, or neither for the training rows.")
    data = model._data
    if not data.one_target:
        raise InputError(f"plot() draws one target, but the model has {data.targets.shape[1]}.")
    if data.rows.is_tensor and data.rows.values.shape[1] == 1:
        return _curve(model, X, y, ax)
    if X is None:
        actual, predicted, title = data.targets, model._loo_columns(), "Leave-one-out predictions"
    else:
        actual, predicted, title = y, model.predict(X), "Predictions"
    return predicted_against_actual(np.asarray(actual), np.asarray(predicted), title=title, ax=ax)


def _curve(model: KernelRidge, X: Any, y: Any, ax: Any) -> Any:
    data = model._data
    rows, targets = (data.rows.values, data.targets) if X is None else (X, y)
    shown = np.asarray(rows, dtype=np.float64).reshape(-1)
    low, high = shown.min(), shown.max()
    margin = 0.05 * (high - low) or 1.0
    grid = np.linspace(low - margin, high + margin, 400).reshape(-1, 1)
    mean = model.function_(grid)
    names = data.rows.names
    return fit_1d(shown, np.asarray(targets), grid, mean, feature=names[0] if names else "x", ax=ax)
