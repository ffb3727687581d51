"""At least one kernel of every class, and compositions: the registry that laws run over."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.kernels import (
    AllSubsets,
    Brownian,
    Callable,
    Constant,
    ExponentialPower,
    FeatureMap,
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Spectrum,
    Subspace,
    WhiteNoise,
)


def tapered(X: Tensor) -> Tensor:
    """A function that is large near the origin."""
    return 1.0 / (1.0 + X.square().sum(1))


def monomials(X: Tensor) -> Tensor:
    """Three features: the first column, its square, and the sum of all columns."""
    return torch.stack([X[:, 0], X[:, 0] ** 2, X.sum(1)], dim=1)


def numpy_waves(X: Tensor) -> np.ndarray:
    """Features computed in numpy."""
    return np.cos(np.asarray(X))


def shared_sign(x: np.ndarray, z: np.ndarray) -> float:
    """How many coordinates of two rows have the same sign."""
    return float(((x > 0) == (z > 0)).sum())


def product_matrix(X: Any, Z: Any) -> np.ndarray:
    """Inner products of all rows of two tables."""
    return X @ Z.T


METRIC = ((2.0, 0.5, 0.0), (0.5, 1.0, 0.0), (0.0, 0.0, 0.0))

VECTOR_KERNELS: tuple[Kernel, ...] = (
    Gaussian(0.8),
    Gaussian((0.5, 1.0, 3.0)),
    Gaussian("median"),
    Laplace(1.5),
    Laplace((1.0, 2.0)),
    Laplace(2.0, metric="l1"),
    Laplace((0.5, 2.0), metric="l1"),
    ExponentialPower(1.2, power=0.6),
    ExponentialPower(1.2, power=2.0),
    Matern(0.5, 2.0),
    Matern(1.5),
    Matern(2.5, (1.0, 0.3)),
    Matern(0.8),
    Matern(3.3, 1.7),
    Matern(math.inf, 1.1),
    RationalQuadratic(0.9, alpha=0.4),
    InverseMultiquadric(1.3, power=0.7),
    Periodic(0.8, period=2.5),
    Periodic((1.0, 0.7), period=(2.0, 3.0)),
    Brownian(),
    Linear(),
    Linear(bias=0.5),
    Polynomial(2, scale=0.5, offset=1.0),
    Polynomial(3, offset=0.0),
    AllSubsets(),
    Constant(2.0),
    WhiteNoise(0.3),
    Subspace(Laplace("median"), (0, -1)),
    Gaussian(0.5) + Laplace(2.0),
    2.5 * Matern(1.5) * Linear(bias=1.0) ** 2,
    (Gaussian() + 1.0) * (Periodic() + WhiteNoise(0.1)),
    Subspace(Periodic(1.0, 3.0), 0) * Subspace(Gaussian((1.0, 2.0)), (1, 2)) + Subspace(Linear(), 1),
    (0.5 * (2.0 * RationalQuadratic()) ** 2) ** 2,
    Subspace(Subspace(Gaussian(), 1) + Linear(), (2, 0)),
)
"""Kernels of rows whose formula can be traced."""

FUNCTION_KERNELS: tuple[Kernel, ...] = (
    FeatureMap(monomials),
    FeatureMap(monomials, METRIC),
    FeatureMap(numpy_waves),
    tapered * Gaussian(0.7),
    tapered * (Subspace(Laplace(), 0) + FeatureMap(monomials)),
)
"""Kernels of rows that hold functions."""

OBJECT_KERNELS: tuple[Kernel, ...] = (
    Callable(shared_sign),
    Callable(product_matrix, vectorised=True),
    Callable(shared_sign) * Gaussian() + 0.5,
    Spectrum(2),
    Spectrum(3, normalised=False),
    2.0 * Spectrum(1) + Spectrum(2) ** 2 * Spectrum(3) + WhiteNoise(0.2),
    Precomputed(),
    (2.0 * Precomputed() + 1.0) * Precomputed() ** 2 + WhiteNoise(0.5),
)
"""Kernels of objects and of ready matrices."""

EXAMPLES: tuple[Kernel, ...] = VECTOR_KERNELS + FUNCTION_KERNELS + OBJECT_KERNELS
