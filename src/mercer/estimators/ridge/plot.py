"""The picture of a fitted KernelRidge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.data.given import Axes, Rows, Targets
from mercer.estimators.common.pictures import function_plot
from mercer.estimators.ridge.fit import RidgeFit
from mercer.estimators.ridge.left_out import with_left_out
from mercer.plots import predicted_against_actual


def ridge_plot(
    fit: RidgeFit, given: tuple[Any, Any, Any] | None, *, features: Sequence[str] | None, ax: Axes | None = None
) -> Any:
    """The function itself for one or two `features` and one target, else predicted against actual values.

    `features` are their names, None for more than two. `given` are rows, targets and predictions; by default
    leave-one-out predictions of the training rows.
    """
    if not fit.seen.one_target:
        raise InputError(f"plot() draws one target, but the model has {fit.seen.n_targets}.")
    if given is not None:
        X, y, predicted = given
        if features is not None:
            return _drawn(fit, X, y, features, ax)
        return predicted_against_actual(np.asarray(y), np.asarray(predicted), title="Predictions", ax=ax)
    if fit.sample is None:
        raise InputError("The model does not store its training rows: pass X and y to plot().")
    if features is not None:
        return _drawn(fit, fit.sample.rows.values, fit.sample.targets, features, ax)
    if fit.plan.traits.stops_early:
        raise InputError("With solver='gd', 'eigenpro' or 'flow', pass X and y to plot().")
    actual, loo = np.asarray(fit.sample.targets), np.asarray(with_left_out(fit).loo)
    return predicted_against_actual(actual, loo, title="Leave-one-out predictions", ax=ax)


def _drawn(fit: RidgeFit, X: Rows, y: Targets, features: Sequence[str], ax: Axes | None) -> Any:
    def values(grid: np.ndarray) -> np.ndarray:
        return fit.values(Points(torch.from_numpy(grid))).cpu().numpy()

    return function_plot(values, X, y, features, ax)
