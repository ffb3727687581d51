"""A Gaussian process before any data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.estimators.gaussian.noise import row_variances
from mercer.estimators.gaussian.settings import ProcessSettings
from mercer.kernels import Kernel
from mercer.kernels.pair import DensePair
from mercer.processes import as_mean
from mercer.processes.dials import NOISE_SHARE
from mercer.processes.means import FittedMean, ZeroMean
from mercer.processes.pathwise import prior_values
from mercer.processes.prior_functions import PriorFunctions
from mercer.processes.start import Scales, start_kernel


@dataclass(frozen=True, eq=False)
class Prior:
    """Kernel, noise and mean; coefficients of the mean that data would decide are zero."""

    kernel: Kernel
    noise: float
    mean: FittedMean


def prior_for(settings: ProcessSettings, rows: Points) -> Prior:
    """The prior for rows like these."""
    columns = rows.values.shape[1] if rows.is_tensor else None
    kernel, _ = start_kernel(settings.kernel, rows, Scales.unit(columns), settings.seed)
    noise = NOISE_SHARE if settings.noise is None else settings.noise
    if settings.row_noise is not None:
        noise = float(row_variances(settings.row_noise, len(rows)).mean())
    mean = ZeroMean() if isinstance(settings.mean, str) else as_mean(settings.mean, rows)
    return Prior(kernel, noise, FittedMean(mean, torch.empty(0, 1)))


def prior_for_samples(
    settings: ProcessSettings, rows: Points, *, latent: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Mean (m, 1), covariance (m, m) and its diagonal, and the scale of the targets, which is one."""
    prior = prior_for(settings, rows)
    covariance = prior.kernel.on(DensePair(rows)).to(torch.float64)
    if not latent:
        covariance.diagonal().add_(prior.noise)
    return prior.mean(rows), covariance, covariance.diagonal(), torch.ones(1)


def prior_functions(settings: ProcessSettings, n: int, seed: int) -> Callable[[Points], Tensor]:
    """Functions drawn from the prior: their values at rows, the same functions for all rows of as many columns."""
    drawn: dict[int, PriorFunctions] = {}

    def values(rows: Points) -> Tensor:
        prior = prior_for(settings, rows)
        columns = rows.values.shape[1]
        if columns not in drawn:
            drawn[columns] = PriorFunctions.draw(prior.kernel, rows, n, seed)
        return prior_values(drawn[columns], prior.mean, rows, 1).squeeze(-1)

    return values
