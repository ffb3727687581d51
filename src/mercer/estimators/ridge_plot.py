"""The picture of a fitted KernelRidge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.estimators.ridge_model import DESCENTS
from mercer.plots import fit_1d, predicted_against_actual

if TYPE_CHECKING:
    from mercer.estimators.kernel_ridge import KernelRidge


def ridge_plot(model: KernelRidge, X: Any = None, y: Any = None, ax: Any = None) -> Any:
    """The function itself for one feature and one target, else predicted against actual values."""
    if (X is None) != (y is None):
        raise InputError("plot(X, y): give both, or neither for the training rows.")
    seen = model._seen
    if not seen.one_target:
        raise InputError(f"plot() draws one target, but the model has {seen.n_targets}.")
    if X is None:
        data = model._data
        if data is None:
            raise InputError("plot() of a model that keeps no training rows needs data: give it X and y.")
        X, y = data.rows.values, data.targets
        if not _on_a_line(model):
            if model.solver_report_.solver in DESCENTS:
                raise InputError("plot() of a descent, which has no leave-one-out predictions, needs data: X and y.")
            loo = model._loo_columns()
            return predicted_against_actual(np.asarray(y), np.asarray(loo), title="Leave-one-out predictions", ax=ax)
    if _on_a_line(model):
        return _curve(model, X, y, ax)
    return predicted_against_actual(np.asarray(y), np.asarray(model.predict(X)), title="Predictions", ax=ax)


def _on_a_line(model: KernelRidge) -> bool:
    return getattr(model, "n_features_in_", None) == 1


def _curve(model: KernelRidge, X: Any, y: Any, ax: Any) -> Any:
    shown = np.asarray(X, dtype=np.float64).reshape(-1)
    low, high = shown.min(), shown.max()
    margin = 0.05 * (high - low) or 1.0
    grid = np.linspace(low - margin, high + margin, 400).reshape(-1, 1)
    mean = model._values(Points(torch.from_numpy(grid))).cpu().numpy()
    names = getattr(model, "feature_names_in_", None)
    return fit_1d(shown, np.asarray(y), grid, mean, feature="x" if names is None else names[0], ax=ax)
