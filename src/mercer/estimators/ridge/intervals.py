"""Prediction intervals of a ridge regression from what it gets wrong at rows left out."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError, MemoryBudgetError
from mercer.core.rules import one_of
from mercer.data.sample import Sample
from mercer.estimators.common.refits import FORECASTS, OTHER_FOLDS, Refit, cross_fitted, forecast
from mercer.estimators.dials import ENTRIES
from mercer.estimators.ridge.alpha import planned
from mercer.estimators.ridge.few import solve_few
from mercer.estimators.ridge.fit import RidgeFit
from mercer.estimators.ridge.full import solve_full
from mercer.estimators.ridge.left_out import label_weights, with_left_out
from mercer.selection.left_out import LeftOutErrors, LeftOutPredictions, checked_level

METHODS = ("residuals", "jackknife+")


def with_left_out_predictions(fit: RidgeFit) -> RidgeFit:
    """The fit with predictions for its rows by fits that have not seen them."""
    return fit if fit.left_out is not None else replace(fit, left_out=_found(fit))


def _found(fit: RidgeFit) -> LeftOutPredictions:
    sample = fit.sample
    if sample is None:
        raise InputError(
            f"The model (solver={fit.report.solver!r}) does not store its training rows: pass rows that it was not "
            "fitted to, predict_interval(X, calibrate=(X_new, y_new))."
        )
    if fit.order is not None:
        places, values = forecast(_refit(fit), sample, fit.order)
        weights = None if sample.weights is None else sample.weights[places]
        return LeftOutPredictions.of(values, sample.targets[places], weights, FORECASTS)
    if fit.tuning is None and not fit.plan.traits.stops_early:
        with contextlib.suppress(MemoryBudgetError):  # then fits to other folds, which need no factor
            out = with_left_out(fit).loo
            assert out is not None
            return LeftOutPredictions.of(out, sample.targets, sample.weights, "leave-one-out")
    values = cross_fitted(_refit(fit), sample)
    return LeftOutPredictions.of(values, sample.targets, sample.weights, OTHER_FOLDS)


def _refit(fit: RidgeFit) -> Refit:
    """The whole fit again, tuning and alpha included, to other rows."""
    settings = fit.plan.settings

    def refit(sample: Sample) -> RidgeFit:
        plan, tuning = planned(settings, sample)
        solve = solve_full if plan.traits.sums_of == "rows" else solve_few
        return solve(plan, sample, tuning)

    return lambda sample: refit(sample).values


def held_out(fit: RidgeFit, rows: Points, targets: Tensor) -> LeftOutPredictions:
    """Predictions for rows that the fit has not seen; targets are (m,) or (m, t)."""
    values = fit.values(rows)
    if targets.shape != values.shape:
        raise InputError(f"calibrate: y has shape {tuple(targets.shape)}, expected {tuple(values.shape)}.")
    size = len(values), -1
    return LeftOutPredictions.of(values.reshape(size), targets.reshape(size), None, "rows held out")


def interval(fit: RidgeFit, rows: Points, level: float, method: str) -> tuple[Tensor, Tensor]:
    """Both ends, (m,) or (m, t) each."""
    one_of(*METHODS).check("method", method, False)
    if method == "jackknife+":
        return _jackknife_plus(fit, rows, checked_level(level))
    assert fit.left_out is not None
    values = fit.values(rows)
    reach = fit.left_out.errors().reach(level).to(values)
    reach = reach[0] if fit.seen.one_target else reach
    return values - reach, values + reach


def _jackknife_plus(fit: RidgeFit, rows: Points, level: float) -> tuple[Tensor, Tensor]:
    r"""Quantiles of :math:`f_{-i}(x) \pm |e_i|`, with :math:`f_{-i}(x) = f(x) - w_i(x)\, e_i / \max(v_i, 1)`.

    Here w are label weights, e leave-one-out errors and v sample weights.
    """
    sample = fit.all_rows("jackknife+")
    if fit.order is not None or fit.tuning is not None:
        raise InputError(
            "method='jackknife+' leaves out single rows, which is misleading after tune=True or with order=; use "
            "method='residuals'."
        )
    out = with_left_out(fit).loo
    assert out is not None
    errors = sample.targets - out.cpu()
    v = torch.ones(len(sample), dtype=torch.float64) if sample.weights is None else sample.weights
    counted = v > 0
    low, high = [], []
    size = max(1, ENTRIES // (len(sample) * errors.shape[1]))
    for start in range(0, len(rows), size):
        part = rows.take(slice(start, start + size))
        weights = label_weights(fit, part)[0].cpu()
        weights = weights.unsqueeze(2) if weights.ndim == 2 else weights
        centre = fit.values(part).cpu().to(torch.float64).reshape(len(part), 1, -1)
        centre = (centre - weights * (errors / v.clamp(min=1.0).unsqueeze(1)))[:, counted]
        far = errors[counted].abs()
        high.append(_upper(centre + far, v[counted], level))
        low.append(-_upper(far - centre, v[counted], level))
    ends = torch.cat(low), torch.cat(high)
    return (ends[0][:, 0], ends[1][:, 0]) if fit.seen.one_target else ends


def _upper(values: Tensor, weights: Tensor, level: float) -> Tensor:
    """The quantile over rows of values (m, n, t), (m, t)."""
    return LeftOutErrors(values.transpose(0, 1), weights).reach(level)
