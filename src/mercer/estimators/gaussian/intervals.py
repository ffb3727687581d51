"""How wide the intervals of a fitted process are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from mercer.core.errors import InputError
from mercer.estimators.common.refits import later_blocks
from mercer.estimators.gaussian.fit import ProcessFit
from mercer.processes import ExactPosterior
from mercer.processes.calibration import credible_width, half_width, left_out_width

AUTO = "auto"


def with_forecasts(fit: ProcessFit) -> ProcessFit:
    """The fit with errors of forecasts of later blocks of rows from all earlier ones, where the order is known.

    Kernel and noise are those of all rows.
    """
    if fit.order is None or fit.forecast_deviates is not None:
        return fit
    data, posterior, found = fit.posterior.data, fit.posterior, []
    if data.square:
        raise InputError("order= needs feature rows; kernel='precomputed' has none.")
    for kept, out in later_blocks(fit.order):
        rows = data.take(out)
        earlier = fit.plan.method.posterior(
            posterior.kernel, posterior.noise, data.take(kept), posterior.mean_function.mean, ""
        )
        mean, variance = earlier.mean_and_variance(rows.X)
        variance = variance + rows.row_noise(posterior.noise).to(variance)
        found.append((rows.Y.to(mean) - mean) / variance.sqrt().unsqueeze(1))
    return replace(fit, forecast_deviates=torch.cat(found).cpu().numpy())


def interval_width(fit: ProcessFit, level: float, latent: bool, calibrated: Any) -> Any:
    """How many deviations an interval reaches either way: a number, or one for each target."""
    if not (isinstance(calibrated, bool | np.bool_) or calibrated == AUTO):
        raise InputError(f'predict_interval(calibrated={calibrated!r}): give True, False or "auto".')
    if np.ndim(level):
        raise InputError(f"predict_interval(level={level!r}): must be one number between 0 and 1.")
    own = float(half_width(level))
    if fit.forecast_deviates is not None and calibrated and not latent:
        reach = left_out_width(level, fit.forecast_deviates)
        return float(reach[0]) if fit.seen.one_target else reach
    if not calibrated or (calibrated == AUTO and (latent or not isinstance(fit.posterior, ExactPosterior))):
        return own
    if latent:
        raise InputError(
            "predict_interval(latent=True, calibrated=True): values of the latent function are never observed, so "
            "its intervals cannot be calibrated."
        )
    posterior = fit.exact("predict_interval(calibrated=True)")
    width = credible_width if calibrated == AUTO else left_out_width
    reach = width(level, posterior.left_out_deviates())
    return float(reach[0]) if fit.seen.one_target else reach
