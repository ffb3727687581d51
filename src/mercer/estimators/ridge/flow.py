"""A ridge regression by gradient flow at other times than the one at which it stopped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.data.given import Numbers
from mercer.estimators.ridge.fit import RidgeFit
from mercer.estimators.ridge.full import system_of
from mercer.functions.sums import KernelSum
from mercer.solvers.flow import Flowing, checked_times


def with_flow(fit: RidgeFit) -> RidgeFit:
    """The fit with its system decomposed, found again where a file did not hold it."""
    if fit.stop is None:
        raise InputError(f"predict(t=...) needs solver='flow', but the model was fitted by solver={fit.plan.solver!r}.")
    if fit.flowing is not None:
        return fit
    assert fit.sample is not None
    system = system_of(fit.plan, fit.sample)
    return replace(fit, flowing=Flowing.of(system.operator, system.rhs, fit.seen.total_weight, fit.stop.power))


def values_at(fit: RidgeFit, rows: Points, t: Numbers) -> Tensor:
    """The predictions at the rows for a time, (m,) or (m, k), or for several, (times, m) or (times, m, k)."""
    times = checked_times(t)
    sample, flowing = fit.sample, fit.flowing
    assert sample is not None
    assert flowing is not None
    system = system_of(fit.plan, sample)
    found = [flowing.at(each) for each in times]
    function = KernelSum(fit.plan.kernel, sample.rows, system.coefficients(torch.cat(found, dim=1)))
    constant = torch.cat([system.constant(each) for each in found])
    values = function.values(rows, fit.plan.place, accurate=fit.plan.settings.dtype == "auto")
    values = values + constant.to(values)
    values = values.reshape(len(rows), len(times), -1).transpose(0, 1)
    values = values[:, :, 0] if fit.seen.one_target else values
    return values if np.ndim(t) else values[0]
