"""How far the inner products of features are from the kernel they stand for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.features.dials import STRIP_NUMBERS


class FeatureMapping(Protocol):
    """What every feature map offers: rows in, one row of `n_features` numbers for each out."""

    @property
    def n_features(self) -> int: ...

    def __call__(self, points: Points) -> Tensor: ...


@dataclass(frozen=True)
class ApproximationError:
    r"""Errors :math:`e_{ij} = \varphi(x_i) \cdot \varphi(z_j) - k(x_i, z_j)` over all pairs of rows.

    Attributes
    ----------
    max : float
        The largest absolute value.
    rms : float
        The root of the mean square.
    relative : float
        The root of the mean square, divided by that of the kernel's values.
    pairs : int
        The number of pairs.

    Examples
    --------
    >>> ApproximationError(max=0.12, rms=0.031, relative=0.05, pairs=10_000)
    ApproximationError(max 0.12, RMS 0.031, 5.0% of the kernel's; 10,000 pairs of rows)
    """

    max: float
    rms: float
    relative: float
    pairs: int

    def __repr__(self) -> str:
        share = f"{self.relative:.1%} of the kernel's" if self.relative >= 1e-3 else f"relative {self.relative:.1e}"
        return f"ApproximationError(max {self.max:.3g}, RMS {self.rms:.3g}, {share}; {self.pairs:,} pairs of rows)"


def approximation_error(
    features: Callable[[Points], Tensor], kernel: Callable[[Tensor, Tensor], Tensor], x: Points, z: Points
) -> ApproximationError:
    """The error of a feature map on all pairs of rows of two samples, some rows of the matrix at a time.

    >>> from mercer.features import TaylorMap
    >>> from mercer.kernels import Gaussian
    >>> X = Points(torch.linspace(-1, 1, 20).double().unsqueeze(1))
    >>> approximation_error(TaylorMap.of(torch.ones(1), degree=10), Gaussian(), X, X).max < 1e-7
    True
    """
    right = features(z).to(torch.float64)
    step = max(1, STRIP_NUMBERS // max(1, len(z)))
    largest, squares, energy = 0.0, 0.0, 0.0
    for start in range(0, len(x), step):
        part = x.take(slice(start, start + step))
        exact = torch.as_tensor(kernel(part.values, z.values)).to(right)
        error = features(part).to(right) @ right.T - exact
        largest = max(largest, float(error.abs().max()))
        squares += float(error.square().sum())
        energy += float(exact.square().sum())
    pairs = len(x) * len(z)
    relative = (squares / energy) ** 0.5 if energy > 0 else float(squares > 0)
    return ApproximationError(largest, (squares / pairs) ** 0.5, relative, pairs)
