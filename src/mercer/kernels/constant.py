"""Kernels that do not look at where points are: a constant, and noise on each row."""

from __future__ import annotations

from typing import Any

from mercer.kernels.base import Kernel
from mercer.kernels.pair import Pair
from mercer.kernels.parameters import parameter
from mercer.kernels.properties import ANALYTIC, Properties
from mercer.kernels.registry import register
from mercer.kernels.spectral import SpectralMeasure, constant


@register(
    names={"constant": {}},
    examples=[{"constant_value": 2.0}],
)
class Constant(Kernel):
    r"""The constant kernel :math:`k(x, z) = c`; its RKHS is the constant functions.

    Adding it to another kernel gives the function an intercept.

    >>> Constant(2.0)([[0.0], [1.0]])
    array([[2., 2.],
           [2., 2.]])
    """

    constant_value: float = parameter(1.0)
    domain = "any"

    def of(self, pair: Pair) -> Any:
        return self.constant_value

    def spectral_measure(self, n_columns: int) -> SpectralMeasure:
        """The frequency is zero."""
        return constant(n_columns, self.constant_value)

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
            is_normalised=self.constant_value == 1.0,
        )


@register(
    names={"white_noise": {}},
    examples=[{"noise_level": 0.3}],
)
class WhiteNoise(Kernel):
    r"""Independent noise on each row of one sample: :math:`k(x_i, x_j) = \sigma^2 \delta_{ij}`.

    ``k(X)`` carries the noise on its diagonal; ``k(X, Z)``, two samples, has none.

    >>> WhiteNoise(0.5)([[0.0], [0.0]])
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    noise_level: float = parameter(1.0)
    domain = "any"

    def of(self, pair: Pair) -> Any:
        return self.noise_level * pair.same()

    @property
    def properties(self) -> Properties:
        return Properties(bounded=True, smoothness=0.0, contains_constants=False, is_normalised=self.noise_level == 1.0)
