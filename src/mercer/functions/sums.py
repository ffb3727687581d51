"""Fitted functions: sums of kernels at points or of features, evaluated in tiles."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.functions.dials import ROUNDED
from mercer.functions.fourier import FeatureRows, FourierFeatures
from mercer.kernels import Kernel
from mercer.kernels.explicit import ExplicitFeatures
from mercer.kernels.pair import DiagonalPair
from mercer.operators.placement import Placement


@dataclass(frozen=True, eq=False)
class KernelSum:
    """f = sum_j c_j k(z_j, .), with coefficients of shape (m, t) for t functions at once.

    >>> from mercer.kernels import Linear
    >>> place = Placement(torch.device("cpu"), torch.float64)
    >>> rows = Points(torch.tensor([[1.0], [2.0]]).double())
    >>> KernelSum(Linear(), rows, torch.ones(2, 1).double()).values(rows, place)
    tensor([[3.],
            [6.]], dtype=torch.float64)
    """

    kernel: Kernel
    centres: Points
    coef: Tensor

    def values(self, rows: Points, place: Placement, *, accurate: bool = False) -> Tensor:
        """f at the rows, (n, t); `accurate` takes float64 where large coefficients magnify the rounding of float32."""
        if place.few(self.kernel, rows, self.centres):
            matrix = place.matrix(self.kernel, rows, self.centres)
            return matrix @ self.coef.to(matrix)
        operator = place.gram(self.kernel, rows, self.centres)
        values: Tensor = operator.matmul(self.coef.to(operator.device))
        if accurate and operator.dtype == torch.float32 and self._rounded(rows, values):
            return self.values(rows, replace(place, dtype=torch.float64))
        return values

    def _rounded(self, rows: Points, values: Tensor) -> bool:
        """Whether rounding can be seen in values that were found in float32."""
        if self.kernel.domain == "matrix":
            return False
        here, there = (self.kernel.on(DiagonalPair(p)).abs().max() for p in (rows, self.centres))
        peak = float(here.cpu() * there.cpu()) ** 0.5
        rounding = torch.finfo(torch.float32).eps * peak * self.coef.norm(dim=0).to(values.device)
        return not bool((rounding <= ROUNDED * values.square().mean(0).sqrt()).all())


@dataclass(frozen=True, eq=False)
class FeatureSum:
    """f = sum_j c_j phi_j for features phi, with coefficients of shape (p, t)."""

    features: FourierFeatures | ExplicitFeatures
    coef: Tensor

    def values(self, rows: Points, place: Placement, *, accurate: bool = False) -> Tensor:
        """f at the rows, (n, t), in float64."""
        return FeatureRows(self.features, rows, place.device).matmul(self.coef)
