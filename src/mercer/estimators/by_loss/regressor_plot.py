"""The picture of a fitted KernelRegressor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.data.given import Axes
from mercer.estimators.by_loss.fit import LossFit
from mercer.estimators.common.pictures import function_plot
from mercer.plots import fit_1d, predicted_against_actual
from mercer.plots.canvas import BLUE
from mercer.plots.places import line_over


def regressor_plot(
    fit: LossFit, given: tuple[Any, Any, Any] | None, *, features: Sequence[str] | None, ax: Axes | None = None
) -> Any:
    """The functions themselves for one or two `features`, else predicted against actual values (the middle quantile).

    `given` are rows, targets and predictions, by default those of the training rows.
    """
    X, y, predicted = _training_rows(fit) if given is None else given
    actual = np.asarray(y, dtype=np.float64).reshape(-1)
    if features is None:
        values = np.asarray(predicted).reshape(len(actual), -1)
        return predicted_against_actual(actual, _middle(values), title="Predictions", ax=ax)
    levels = fit.plan.settings.quantiles

    def at(places: np.ndarray) -> np.ndarray:
        return fit.predictions(Points(torch.from_numpy(places))).cpu().numpy().reshape(len(places), -1)

    if len(features) == 2:
        return function_plot(lambda places: _middle(at(places)), X, actual, features, ax)
    places = np.asarray(X, dtype=np.float64).reshape(-1)
    grid = line_over(places).reshape(-1, 1)
    values = at(grid)
    middle = values.shape[1] // 2
    label = "fit" if levels is None else f"quantile {levels[middle]:g}"
    ax = fit_1d(places, actual, grid, values[:, middle], label=label, feature=features[0], ax=ax)
    for k in range(values.shape[1]):
        if k != middle:
            ax.plot(grid[:, 0], values[:, k], color=BLUE, linewidth=1, linestyle=(0, (4, 3)))
    return ax


def _middle(values: np.ndarray) -> np.ndarray:
    return values[:, values.shape[1] // 2]


def _training_rows(fit: LossFit) -> tuple[Any, Any, Any]:
    if fit.sample is None:
        raise InputError("The model does not store its training rows: pass X and y to plot().")
    rows = fit.sample.rows
    return rows.values, fit.sample.targets[:, 0], fit.predictions(rows).cpu()
