"""The picture of a fitted KernelRidge."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.estimators.ridge.fit import RidgeFit
from mercer.estimators.ridge.left_out import with_left_out
from mercer.plots import fit_1d, predicted_against_actual


def ridge_plot(fit: RidgeFit, given: tuple[Any, Any, Any] | None, *, feature: str | None, ax: Any = None) -> Any:
    """The function itself for one `feature` and one target, else predicted against actual values.

    `given` are rows, targets and predictions; by default leave-one-out predictions of the training rows.
    """
    if not fit.seen.one_target:
        raise InputError(f"plot() draws one target, but the model has {fit.seen.n_targets}.")
    if given is not None:
        X, y, predicted = given
        if feature is not None:
            return _curve(fit, X, y, feature, ax)
        return predicted_against_actual(np.asarray(y), np.asarray(predicted), title="Predictions", ax=ax)
    if fit.sample is None:
        raise InputError("plot() of a model that keeps no training rows needs data: give it X and y.")
    if feature is not None:
        return _curve(fit, fit.sample.rows.values, fit.sample.targets, feature, ax)
    if fit.plan.traits.stops_early:
        raise InputError("With solver='gd' or 'eigenpro', pass X and y to plot().")
    actual, loo = np.asarray(fit.sample.targets), np.asarray(with_left_out(fit).loo)
    return predicted_against_actual(actual, loo, title="Leave-one-out predictions", ax=ax)


def _curve(fit: RidgeFit, X: Any, y: Any, feature: str, ax: Any) -> Any:
    shown = np.asarray(X, dtype=np.float64).reshape(-1)
    low, high = shown.min(), shown.max()
    margin = 0.05 * (high - low) or 1.0
    grid = np.linspace(low - margin, high + margin, 400).reshape(-1, 1)
    mean = fit.values(Points(torch.from_numpy(grid))).cpu().numpy()
    return fit_1d(shown, np.asarray(y), grid, mean, feature=feature, ax=ax)
