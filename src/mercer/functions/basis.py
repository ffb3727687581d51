"""What a fitted function is a sum of: kernels at points, or random features."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.functions.fourier import FeatureRows, FourierFeatures
from mercer.functions.sums import FeatureSum, KernelSum
from mercer.kernels import Kernel
from mercer.kernels.explicit import ExplicitFeatures
from mercer.operators.placement import Placement


class Basis(Protocol):
    """Functions b_j of which a fit searches the best sum, f = c_1 b_1 + ... + c_m b_m."""

    @property
    def note(self) -> str:
        """How they were chosen, in words."""

    @property
    def size(self) -> int:
        """Their number m."""

    def at(self, rows: Points, place: Placement) -> Any:
        """The operator of the values b_j(x_i)."""

    def penalty(self, place: Placement) -> Tensor | None:
        """The matrix of inner products of the b_j; None for the identity."""

    def digest(self) -> str:
        """Text that other functions would change."""


@dataclass(frozen=True, eq=False)
class Centres:
    """Kernels at points: b_j = k(z_j, .)."""

    kernel: Kernel
    points: Points
    note: str = ""

    @property
    def size(self) -> int:
        return len(self.points)

    def at(self, rows: Points, place: Placement) -> Any:
        return place.operator(self.kernel, rows, self.points)

    def penalty(self, place: Placement) -> Tensor:
        return torch.as_tensor(place.operator(self.kernel, self.points, dtype=torch.float64).dense()).to(place.device)

    def digest(self) -> str:
        points = self.points.values
        return _digest(repr(self.kernel), points.cpu() if isinstance(points, Tensor) else torch.empty(0))

    def sum(self, coef: Tensor) -> KernelSum:
        return KernelSum(self.kernel, self.points, coef)

    def lost(self, coef: Tensor) -> Tensor:
        return coef.new_zeros(coef.shape[1])


@dataclass(frozen=True, eq=False)
class Features:
    """Random Fourier features, or those that a kernel has: their penalty is the sum of squares."""

    features: FourierFeatures | ExplicitFeatures
    note: str = ""

    @property
    def size(self) -> int:
        return self.features.n_features

    def at(self, rows: Points, place: Placement) -> FeatureRows:
        return FeatureRows(self.features, rows, place.device)

    def penalty(self, place: Placement) -> None:
        return None

    def digest(self) -> str:
        return _digest(self.features.text, *self.features.to_arrays().values())

    def sum(self, coef: Tensor) -> FeatureSum:
        return FeatureSum(self.features.at_origin, coef)

    def lost(self, coef: Tensor) -> Tensor:
        """What sums of these functions are less than those of `sum`, everywhere: (t,)."""
        return self.features.shifted_by(coef)


def _digest(text: str, *arrays: Tensor) -> str:
    digest = hashlib.sha256(text.encode())
    for array in arrays:
        digest.update(array.contiguous().numpy().tobytes())
    return digest.hexdigest()
