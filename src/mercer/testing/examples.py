"""The kernels that laws run over: the examples that every class registered, compositions, and what holds functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.kernels import (
    Callable,
    FeatureMap,
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Periodic,
    Precomputed,
    RationalQuadratic,
    Spectrum,
    Subspace,
    WhiteNoise,
)
from mercer.kernels.registry import EXAMPLES as REGISTERED


def tapered(X: Tensor) -> Tensor:
    """A function that is large near the origin."""
    return 1.0 / (1.0 + X.square().sum(1))


def monomials(X: Tensor) -> Tensor:
    """Three features: the first column, its square, and the sum of all columns."""
    return torch.stack([X[:, 0], X[:, 0] ** 2, X.sum(1)], dim=1)


def numpy_waves(X: Tensor) -> np.ndarray:
    """Features computed in numpy."""
    return np.asarray(np.cos(np.asarray(X)))


def shared_sign(x: np.ndarray, z: np.ndarray) -> float:
    """How many coordinates of two rows have the same sign."""
    return float(((x > 0) == (z > 0)).sum())


def product_matrix(X: Any, Z: Any) -> np.ndarray:
    """Inner products of all rows of two tables."""
    return np.asarray(X @ Z.T)


METRIC = ((2.0, 0.5, 0.0), (0.5, 1.0, 0.0), (0.0, 0.0, 0.0))

LEAVES = tuple(kernel for kernels in REGISTERED.values() for kernel in kernels)
"""What every class gave as examples of itself."""

VECTOR_KERNELS: tuple[Kernel, ...] = (
    *(kernel for kernel in LEAVES if kernel.domain in ("vectors", "any")),
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
    *(kernel for kernel in LEAVES if kernel.domain in ("objects", "matrix")),
    Callable(shared_sign),
    Callable(product_matrix, vectorised=True),
    Callable(shared_sign) * Gaussian() + 0.5,
    2.0 * Spectrum(1) + Spectrum(2) ** 2 * Spectrum(3) + WhiteNoise(0.2),
    (2.0 * Precomputed() + 1.0) * Precomputed() ** 2 + WhiteNoise(0.5),
)
"""Kernels of objects and of ready matrices."""

EXAMPLES: tuple[Kernel, ...] = VECTOR_KERNELS + FUNCTION_KERNELS + OBJECT_KERNELS
