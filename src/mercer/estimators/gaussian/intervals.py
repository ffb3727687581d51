"""How wide the intervals of a fitted process are."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.core.errors import InputError
from mercer.estimators.gaussian.fit import ProcessFit
from mercer.processes import ExactPosterior
from mercer.processes.calibration import credible_width, half_width, left_out_width

AUTO = "auto"


def interval_width(fit: ProcessFit, level: float, latent: bool, calibrated: Any) -> Any:
    """How many deviations an interval reaches either way: a number, or one for each target."""
    if not (isinstance(calibrated, bool | np.bool_) or calibrated == AUTO):
        raise InputError(f'predict_interval(calibrated={calibrated!r}): give True, False or "auto".')
    if np.ndim(level):
        raise InputError(f"predict_interval(level={level!r}): must be one number between 0 and 1.")
    own = float(half_width(level))
    if not calibrated or (calibrated == AUTO and (latent or not isinstance(fit.posterior, ExactPosterior))):
        return own
    if latent:
        raise InputError("predict_interval(latent=True, calibrated=True): the function itself was never observed.")
    posterior = fit.exact("predict_interval(calibrated=True)")
    width = credible_width if calibrated == AUTO else left_out_width
    reach = width(level, posterior.left_out_deviates())
    return float(reach[0]) if fit.seen.one_target else reach
