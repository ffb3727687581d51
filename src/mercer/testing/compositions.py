"""Random kernel expressions, for laws that must hold for every composition."""

from __future__ import annotations

import numpy as np

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
