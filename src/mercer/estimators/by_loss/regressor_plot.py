"""The picture of a fitted KernelRegressor."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.estimators.by_loss.fit import LossFit
from mercer.plots import fit_1d, predicted_against_actual
from mercer.plots.canvas import BLUE


def regressor_plot(fit: LossFit, given: tuple[Any, Any, Any] | None, *, feature: str | None, ax: Any = None) -> Any:
    """The functions themselves for one `feature`, else predicted against actual values (the middle quantile).

    `given` are rows, targets and predictions, by default those of the training rows.
    """
    X, y, predicted = _training_rows(fit) if given is None else given
    actual = np.asarray(y, dtype=np.float64).reshape(-1)
    if feature is None:
        values = np.asarray(predicted).reshape(len(actual), -1)
        return predicted_against_actual(actual, values[:, values.shape[1] // 2], title="Predictions", ax=ax)
    places = np.asarray(X, dtype=np.float64).reshape(-1)
    margin = 0.05 * (places.max() - places.min()) or 1.0
    grid = np.linspace(places.min() - margin, places.max() + margin, 400).reshape(-1, 1)
    values = fit.predictions(Points(torch.from_numpy(grid))).cpu().numpy().reshape(len(grid), -1)
    middle, levels = values.shape[1] // 2, fit.plan.settings.quantiles
    label = "fit" if levels is None else f"quantile {levels[middle]:g}"
    ax = fit_1d(places, actual, grid, values[:, middle], label=label, feature=feature, ax=ax)
    for k in range(values.shape[1]):
        if k != middle:
            ax.plot(grid[:, 0], values[:, k], color=BLUE, linewidth=1, linestyle=(0, (4, 3)))
    return ax


def _training_rows(fit: LossFit) -> tuple[Any, Any, Any]:
    if fit.sample is None:
        raise InputError("plot() of a model that keeps no training rows needs data: give it X and y.")
    rows = fit.sample.rows
    return rows.values, fit.sample.targets[:, 0], fit.predictions(rows).cpu()
