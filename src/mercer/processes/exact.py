"""The covariance of the data as a dense Cholesky factor in float64."""

from __future__ import annotations

from torch import Tensor

from mercer.kernels import Kernel
from mercer.operators.placement import Placement
from mercer.processes.observations import Observations
from mercer.solvers.factor import Factor, factorise


def covariance_factor(kernel: Kernel, noise: float, data: Observations, place: Placement) -> Factor:
    """The factor of K + noise for the data."""
    return factorise(lambda: covariance(kernel, noise, data, place))


def covariance(kernel: Kernel, noise: float, data: Observations, place: Placement) -> Tensor:
    """K + noise, a new float64 matrix."""
    return with_noise(place.matrix(kernel, data.X), noise, data)


def with_noise(K: Tensor, noise: float, data: Observations) -> Tensor:
    """K with the noise added to its diagonal, in place."""
    K.diagonal().add_(noise if data.noise is None else data.row_noise(noise).to(K.device))
    return K
