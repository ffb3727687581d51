"""Prediction intervals of a regression with any loss from what it gets wrong at rows left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.data.sample import Sample
from mercer.estimators.by_loss.fit import LossFit
from mercer.estimators.by_loss.plan import plan_loss
from mercer.estimators.by_loss.probabilities import left_out_of
from mercer.estimators.by_loss.solving import solve_loss
from mercer.estimators.by_loss.tuned import tuned
from mercer.estimators.common.refits import FORECASTS, OTHER_FOLDS, forecast
from mercer.selection.left_out import LeftOutPredictions, checked_level, widened

HOW = {"loo": "approximate leave-one-out", "folds": OTHER_FOLDS}


def with_left_out_predictions(fit: LossFit) -> LossFit:
    """The fit with predictions for its rows by fits that have not seen them."""
    return fit if fit.left_out is not None else replace(fit, left_out=left_out_predictions(fit))


def left_out_predictions(fit: LossFit) -> LeftOutPredictions:
    """Predictions for the rows of a fit by fits that have not seen them."""
    if fit.left_out is not None:
        return fit.left_out
    sample = fit.sample
    if sample is None:
        raise InputError(
            "The model (solver='nystrom') does not store its training rows: pass rows that it was not fitted to, "
            "predict_interval(X, calibrate=(X_new, y_new))."
        )
    if fit.order is not None:
        places, values = forecast(_refit(fit), sample, fit.order)
        weights = None if sample.weights is None else sample.weights[places]
        return LeftOutPredictions.of(values, sample.targets[places], weights, FORECASTS)
    out, data = left_out_of(fit, sample), sample.positive()[0]
    values = torch.cat([part.fitted for part in out], dim=1)
    values = values.sort(dim=1).values if fit.plan.settings.in_columns else values
    return LeftOutPredictions.of(values, data.targets, data.weights, HOW[out[0].how])


def _refit(fit: LossFit) -> Callable[[Sample], Callable[[Points], Tensor]]:
    """The whole fit again to other rows."""
    settings, classes = fit.plan.settings, fit.plan.classes

    def predictions(sample: Sample) -> Callable[[Points], Tensor]:
        plan, tuning = tuned(plan_loss(settings, sample, classes), sample)
        return solve_loss(plan, sample, tuning).predictions

    return predictions


def held_out(fit: LossFit, rows: Points, targets: Tensor) -> LeftOutPredictions:
    """Predictions for rows that the fit has not seen; targets are (m,)."""
    if targets.shape != (len(rows),):
        raise InputError(f"calibrate: y has shape {tuple(targets.shape)}, expected ({len(rows)},).")
    values = fit.predictions(rows).reshape(len(rows), -1)
    return LeftOutPredictions.of(values, targets.unsqueeze(1), None, "rows held out")


def interval(fit: LossFit, rows: Points, level: float) -> tuple[Tensor, Tensor]:
    """Both ends, (m,) each."""
    assert fit.left_out is not None
    low, high = columns_for(fit.plan.settings.quantiles, checked_level(level))
    reach = fit.left_out.errors(low, high).reach(level)
    values = fit.predictions(rows).reshape(len(rows), -1)
    return widened(values[:, low], values[:, high], reach.to(values))


def columns_for(quantiles: Sequence[float] | None, level: float) -> tuple[int, int]:
    """The columns of the lower and the upper end: those of the quantiles nearest to what the level asks for.

    >>> columns_for((0.05, 0.25, 0.5, 0.75, 0.95), 0.5), columns_for((0.5,), 0.9), columns_for(None, 0.9)
    ((1, 3), (0, 0), (0, 0))
    """
    levels = torch.tensor([0.5] if quantiles is None else list(quantiles), dtype=torch.float64)
    low, high = (int((levels - end).abs().argmin()) for end in (0.5 * (1 - level), 0.5 * (1 + level)))
    return low, high
