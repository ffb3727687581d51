"""Functions drawn from a Gaussian process as sums of features with normal weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from mercer.core.arrays import Columns, Points
from mercer.core.errors import InputError
from mercer.core.memory import require, resolve_budget
from mercer.functions.fourier import FourierFeatures
from mercer.kernels import Kernel
from mercer.kernels.algebra import FunctionScaled, Product, Scaled, Sum
from mercer.kernels.inner import Linear
from mercer.kernels.pair import row_values, vectors
from mercer.kernels.warps import FeatureMap, Features, Subspace
from mercer.processes.dials import FEWEST_WAVES, MOST_FACTORS

FeatureFunction = Callable[[Points], Tensor]


@dataclass(frozen=True, eq=False)
class PriorFunctions:
    r"""Functions :math:`g_s(x) = \varphi(x) \cdot w_s` with normal weights, whose covariance is the kernel.

    Kernels of x - z get random Fourier features, from a Sobol sequence where that goes; linear kernels, feature maps,
    scalings, sums, products with few features and kernels of some columns get features that follow their algebra.

    >>> from mercer.kernels import Gaussian
    >>> X = Points(torch.linspace(0, 1, 5).double().unsqueeze(1))
    >>> PriorFunctions.draw(Gaussian(), X, count=3, seed=0)(X).shape
    torch.Size([5, 3])
    """

    features: FeatureFunction
    weights: Tensor

    @classmethod
    def draw(cls, kernel: Kernel, X: Points, count: int, seed: int, n_features: int = 4096) -> PriorFunctions:
        """`count` functions of points like X."""
        generator = torch.Generator().manual_seed(seed)
        features = features_of(kernel.bind(X.names), X, n_features, generator)
        width = features(X.take(slice(0, 1))).shape[1]
        require(16 * width * count, resolve_budget(), f"{count:,} functions of {width:,} features")
        return cls(features, torch.randn(width, count, dtype=torch.float64, generator=generator))

    def __call__(self, X: Points) -> Tensor:
        """Values of shape (m, count); gradients flow to points that require them."""
        features = self.features(X)
        return features @ self.weights.to(features)


def features_of(kernel: Kernel, X: Points, n_features: int, generator: torch.Generator) -> FeatureFunction:
    """A map whose inner products are the kernel, exactly or in the mean."""
    if isinstance(kernel, Sum) and not _has_spectrum(kernel, X):
        left, right = (features_of(k, X, n_features, generator) for k in (kernel.k1, kernel.k2))
        return lambda points: torch.cat([left(points), right(points)], dim=1)
    if isinstance(kernel, Product) and not _has_spectrum(kernel, X):
        return _product(kernel, X, n_features, generator)
    if isinstance(kernel, Scaled):
        inner, root = features_of(kernel.kernel, X, n_features, generator), float(kernel.factor) ** 0.5
        return lambda points: root * inner(points)
    if isinstance(kernel, FunctionScaled):
        inner, function = features_of(kernel.kernel, X, n_features, generator), kernel.function
        return lambda points: row_values(function, points).to(torch.float64).unsqueeze(1) * inner(points)
    if isinstance(kernel, Linear):
        bias = float(kernel.bias)
        return lambda points: _with_column(vectors(points).to(torch.float64), bias)
    if isinstance(kernel, Subspace):
        columns = Columns(kernel.columns)
        inner = features_of(kernel.kernel, columns(X), n_features, generator)
        return lambda points: inner(columns(points))
    if isinstance(kernel, FeatureMap):
        warp = Features(kernel.phi, kernel.metric)
        return lambda points: vectors(warp(points)).to(torch.float64)
    if not _has_spectrum(kernel, X):
        raise InputError(
            f"{kernel!r} has no random features, so no function of it can be drawn that is known everywhere. Kernels "
            f"of x - z, linear kernels and sums of these have them. sample_y draws values at given points for any "
            f"kernel."
        )
    return _fourier(kernel, X, n_features, generator)


def _product(kernel: Product, X: Points, n_features: int, generator: torch.Generator) -> FeatureFunction:
    """All products of two features; random ones are fewer then, since each meets all of the other side."""
    few, many = sorted((kernel.k1, kernel.k2), key=lambda k: _has_spectrum(k, X))
    left = features_of(few, X, n_features, generator)
    width = left(X.take(slice(0, 1))).shape[1]
    if width > MOST_FACTORS:
        raise InputError(f"{few!r} has {width:,} features, too many for a product with {many!r}; use sample_y.")
    right = features_of(many, X, max(FEWEST_WAVES, n_features // width), generator)
    return lambda points: (left(points).unsqueeze(2) * right(points).unsqueeze(1)).flatten(1)


def _has_spectrum(kernel: Kernel, X: Points) -> bool:
    if not X.is_tensor:
        return False
    try:
        kernel.spectral_measure(X.values.shape[1])
    except InputError:
        return False
    return True


def _fourier(kernel: Kernel, X: Points, n_features: int, generator: torch.Generator) -> FeatureFunction:
    try:
        features = FourierFeatures.draw(kernel, X, n_features, generator, method="qmc")
    except InputError:  # more columns than a Sobol sequence has
        features = FourierFeatures.draw(kernel, X, n_features, generator)
    return lambda points: features(points, dtype=torch.float64)


def _with_column(x: Tensor, bias: float) -> Tensor:
    return torch.cat([x, torch.full_like(x[:, :1], bias**0.5)], dim=1) if bias > 0 else x
