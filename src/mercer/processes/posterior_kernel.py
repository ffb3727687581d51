"""The covariance of a conditioned process is a kernel like any other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.kernels import Kernel
from mercer.kernels.algebra import Unary
from mercer.kernels.pair import DensePair, DiagonalPair, Pair
from mercer.kernels.properties import Properties


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorKernel(Unary):
    r"""The covariance of a Gaussian process given data,

    .. math:: k_D(x, z) = k(x, z) - k(x, D)\, (K + \Sigma)^{-1} k(D, z) = k(x, z) - \psi(x) \cdot \psi(z),
        \qquad \psi(x) = L^{-1} k(D, x), \quad L L^T = K + \Sigma.

    Made by a fitted `GaussianProcessRegressor` as ``posterior_kernel_``. `whitened` is the function psi. Its parameters
    are those of the fit and not tunable.

    References: Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, eq. 2.24.

    >>> from mercer import GaussianProcessRegressor
    >>> from mercer.kernels import Constant
    >>> model = GaussianProcessRegressor(Constant(1.0), mean="zero", noise=1.0, tune=False)
    >>> model.fit([[0.0]], [2.0]).posterior_kernel_([[5.0]])
    array([[0.5]])
    """

    whitened: WhitenedCross

    def of(self, pair: Pair) -> Any:
        double = pair.warped(in_double)  # the difference of two near numbers
        value = self.kernel.of(double) - double.warped(self.whitened).inner()
        return value.clamp(min=0.0) if isinstance(pair, DiagonalPair) else value

    def tunable(self) -> dict[str, Any]:
        """None: the data were given to the process with these parameters."""
        return {}

    def uncancelled(self) -> Kernel:
        """The prior: where the data leave little uncertainty, most of it is subtracted again."""
        return self.kernel.uncancelled()

    @property
    def properties(self) -> Properties:
        inner = self.kernel.properties
        return Properties(bounded=inner.bounded, smoothness=inner.smoothness)

    def __repr__(self) -> str:
        return f"{self.kernel!r} given {len(self.whitened.rows):,} observations"


def in_double(points: Points) -> Points:
    """The same points in float64."""
    return Points(points.values.to(torch.float64), points.names) if points.is_tensor else points


@dataclass(frozen=True, eq=False)
class WhitenedCross:
    """The warp psi(x) = L^-1 k(D, x), equal to another where kernel, rows and factor are."""

    kernel: Kernel
    rows: Points
    L: Tensor

    def __call__(self, points: Points) -> Points:
        device = points.values.device if points.is_tensor else "cpu"
        cross = self.kernel.on(DensePair(points, self._rows_on(device))).to(torch.float64)
        return Points(torch.linalg.solve_triangular(self.L.to(cross.device), cross.mT, upper=False).mT)

    def _rows_on(self, device: torch.device | str) -> Points:
        return Points(self.rows.values.to(device, torch.float64)) if self.rows.is_tensor else self.rows

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        values = self.rows.values
        content = values.cpu().numpy().tobytes() if isinstance(values, Tensor) else tuple(values)
        return self.kernel, content, self.L.cpu().numpy().tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WhitenedCross) and (self is other or self._key == other._key)

    def __hash__(self) -> int:
        return hash((self.kernel, len(self.rows)))
