"""The periodic kernel: a Gaussian on the circle around which each column is wound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points, Warp
from mercer.core.errors import InputError
from mercer.formula.maths import exp
from mercer.kernels.base import FoundScale, Kernel
from mercer.kernels.pair import Pair, as_scale, vectors
from mercer.kernels.parameters import MEDIAN, length_scale, parameter
from mercer.kernels.properties import ANALYTIC, Properties
from mercer.kernels.registry import register
from mercer.kernels.spectral import Draws, SpectralMeasure, scaled


@register(
    names={"periodic": {}},
    examples=[{"length_scale": 0.8, "period": 2.5}, {"length_scale": (1.0, 0.7), "period": (2.0, 3.0)}],
)
class Periodic(Kernel):
    r"""The periodic kernel

    .. math:: k(x, z) = \prod_j \exp\left(-\frac{2}{\ell_j^2} \sin^2\frac{\pi (x_j - z_j)}{p_j}\right),

    a Gaussian of :math:`(\cos 2\pi x_j / p_j, \sin 2\pi x_j / p_j)`. Both parameters are a number or one per column.
    Equal to scikit-learn's ``ExpSineSquared`` for one column; that form is not positive semi-definite for more.

    References: MacKay, *Introduction to Gaussian Processes*, 1998.

    >>> Periodic(length_scale=1.0, period=2.0)([[0.0], [1.0], [2.0]]).round(4)
    array([[1.    , 0.1353, 1.    ],
           [0.1353, 1.    , 0.1353],
           [1.    , 0.1353, 1.    ]])
    """

    length_scale: Any = length_scale()
    period: Any = parameter(1.0, vector=True)

    def of(self, pair: Pair) -> Any:
        scale = _for_both_coordinates(self.length_scale, pair.columns())
        return exp(-0.5 * pair.warped(Circle(self.period)).squared_distance(scale))

    def spectral_measure(self, n_columns: int) -> SpectralMeasure:
        """Frequencies are multiples of 2 pi / period: the Fourier series of exp(cos t) has Bessel coefficients."""
        scale = as_scale(self.length_scale, torch.empty(0, n_columns, dtype=torch.float64))

        def frequencies(draws: Draws) -> Tensor:
            return (2.0 * math.pi) * draws.winding(scale**-2.0, n_columns)

        return scaled(n_columns, self.period, frequencies, "period")

    def resolved(self, found: FoundScale, warps: tuple[Warp, ...] = ()) -> Kernel:
        """One length scale from distances on the circle, where columns have no units: "auto" is "median"."""
        return super().resolved(lambda _, *rest: found(MEDIAN, *rest), (*warps, Circle(self.period)))

    @property
    def properties(self) -> Properties:
        return Properties(
            stationary=True,
            characteristic=False,
            universal=False,
            bounded=True,
            smoothness=ANALYTIC,
            contains_constants=True,
            controls_convergence=False,
            is_normalised=True,
        )


@dataclass(frozen=True)
class Circle:
    """The warp x -> (cos 2 pi x/p, sin 2 pi x/p) of every column; the angle is exact also far from zero."""

    period: Any

    def __call__(self, points: Points) -> Points:
        x = vectors(points)
        exact = x.to(torch.float64)
        period = as_scale(self.period, exact, "period")
        angle = (2.0 * math.pi) * (torch.remainder(exact, period) / period)
        return Points(torch.cat([angle.cos(), angle.sin()], dim=1).to(x.dtype))


def _for_both_coordinates(scale: Any, n_columns: int) -> Any:
    """One length scale per column, repeated for the cosines and the sines."""
    is_vector = isinstance(scale, tuple) or (isinstance(scale, Tensor) and scale.ndim == 1)
    if not is_vector:
        return scale
    if len(scale) != n_columns:
        raise InputError(f"length_scale has {len(scale)} entries but X has {n_columns} columns.")
    return torch.cat([scale, scale]) if isinstance(scale, Tensor) else (*scale, *scale)
