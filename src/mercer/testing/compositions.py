"""Random kernel expressions, for laws that must hold for every composition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from mercer.kernels import (
    Constant,
    ExponentialPower,
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Subspace,
)
from mercer.kernels.maths import exp, power
from mercer.kernels.pair import as_scale
from mercer.kernels.parameters import length_scale, parameter


def random_kernel(rng: np.random.Generator, n_columns: int, size: int = 3) -> Kernel:
    """A sum or product of up to `size` kernels of rows with random parameters, scalings and powers.

    >>> random_kernel(np.random.default_rng(4), 2, size=2)
    Subspace(kernel=Gaussian(length_scale=2.4), columns=(0,))
    """
    kernel = _leaf(rng, n_columns)
    for _ in range(int(rng.integers(size))):
        other = _leaf(rng, n_columns)
        kernel = kernel + other if rng.random() < 0.5 else kernel * other
    return kernel


@dataclass(frozen=True, eq=False, repr=False)
class Increments(Kernel):
    r"""A kernel in which a distance has a negative factor: :math:`|x|^p + |z|^p - |x - z|^p`, 0 < p <= 2.

    It is the covariance of fractional Brownian motion; with `exponential` this stands in an exponent.
    """

    length_scale: Any = length_scale()
    power: float = parameter(2.0, upper=2.0, tunable=False)
    exponential: bool = False

    def of(self, pair: Any) -> Any:
        left, right = pair.ends(self._norms)
        square = pair.squared_distance(self.length_scale, exact=self.power < 2.0)
        value = left + right - (square if self.power == 2.0 else power(square, self.power / 2))
        return exp(0.1 * value) if self.exponential else value

    def _norms(self, rows: Tensor) -> Tensor:
        result: Tensor = power((rows / as_scale(self.length_scale, rows)).square().sum(1), self.power / 2)
        return result


def random_differences(rng: np.random.Generator, n_columns: int) -> Kernel:
    """A random kernel with distances that have a negative factor in it.

    >>> random_differences(np.random.default_rng(3), 1)
    Increments(length_scale=0.95, power=1.4, exponential=True) + 2.28 * RationalQuadratic(length_scale=1.54, alpha=1.5)
    """
    scale = round(float(rng.uniform(0.8, 2.5)), 2)
    own = tuple(rng.uniform(0.8, 2.5, n_columns).round(2).tolist())
    kernel: Kernel = Increments(
        own if rng.random() < 0.5 else scale,
        power=(2.0, 1.0, 1.4)[int(rng.integers(3))],
        exponential=bool(rng.random() < 0.3),
    )
    other = random_kernel(rng, n_columns, size=2)
    return kernel + other if rng.random() < 0.5 else 0.5 * kernel * other


def _leaf(rng: np.random.Generator, n_columns: int) -> Kernel:
    scale = round(float(rng.uniform(0.8, 2.5)), 2)
    own = tuple(rng.uniform(0.8, 2.5, n_columns).round(2).tolist())
    leaves: tuple[Kernel, ...] = (
        Gaussian(scale),
        Gaussian(own),
        Laplace(scale),
        Laplace(own),
        Laplace(scale, metric="l1"),
        ExponentialPower(scale, power=1.5),
        Matern(1.5, scale),
        Matern(2.5, own),
        Matern(3.5, scale),
        RationalQuadratic(scale, alpha=round(scale, 1)),
        InverseMultiquadric(scale, power=0.5),
        Periodic(scale, period=3.0),
        Linear(bias=1.0),
        Polynomial(2, scale=0.5, offset=1.0),
        Constant(scale),
        Subspace(Gaussian(scale), 0),
    )
    kernel = leaves[int(rng.integers(len(leaves)))]
    chance = rng.random()
    if chance < 0.2:
        return round(float(rng.uniform(0.3, 3.0)), 2) * kernel
    return kernel**2 if chance < 0.3 else kernel
