"""The Matern family: one smoothness parameter from the Laplace kernel to the Gaussian."""

from __future__ import annotations

import math
from typing import Any

from mercer.core.errors import InputError
from mercer.formula.maths import exp, matern, sqrt
from mercer.kernels.base import Kernel
from mercer.kernels.pair import Pair
from mercer.kernels.parameters import AUTO, length_scale, parameter
from mercer.kernels.properties import Properties
from mercer.kernels.registry import register
from mercer.kernels.spectral import SpectralMeasure, gaussian_mixture
from mercer.kernels.stationary import stationary_properties

LARGEST_ORDER = 1e6
"""Up to here the Bessel form is accurate: at 1e8 its error beside the Gaussian is above that of taking the Gaussian."""


@register(
    names={
        "matern12": {"nu": 0.5, "length_scale": AUTO},
        "matern32": {"nu": 1.5, "length_scale": AUTO},
        "matern52": {"nu": 2.5, "length_scale": AUTO},
    },
    examples=[
        {"nu": 0.5, "length_scale": 2.0},
        {"nu": 1.5},
        {"nu": 2.5, "length_scale": (1.0, 0.3)},
        {"nu": 0.8},
        {"nu": 3.3, "length_scale": 1.7},
        {"nu": math.inf, "length_scale": 1.1},
    ],
)
class Matern(Kernel):
    r"""The Matérn kernel of smoothness :math:`\nu`, with :math:`u = \sqrt{2\nu}\,\|x - z\| / \ell`,

    .. math:: k(x, z) = \frac{2^{1-\nu}}{\Gamma(\nu)}\, u^\nu K_\nu(u).

    Closed forms: :math:`e^{-u}` at 1/2, :math:`(1 + u) e^{-u}` at 3/2, :math:`(1 + u + u^2/3) e^{-u}` at 5/2; the
    Gaussian at infinity. The RKHS on R^d is the Sobolev space of order :math:`\nu + d/2`.

    References: Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, eq. 4.14.

    >>> Matern(nu=1.5, length_scale=1.0)([[0.0], [1.0]]).round(4)
    array([[1.    , 0.4834],
           [0.4834, 1.    ]])
    """

    nu: float = parameter(1.5, infinite=True, tunable=False)
    length_scale: Any = length_scale()

    def __post_init__(self) -> None:
        super().__post_init__()
        if LARGEST_ORDER < self.nu < math.inf:
            raise InputError(
                f"Matern(nu={self.nu!r}): orders above {LARGEST_ORDER:g} lose digits; there the kernel equals the "
                f"Gaussian to six digits: use nu=math.inf."
            )

    def of(self, pair: Pair) -> Any:
        if math.isinf(self.nu):
            return exp(-0.5 * pair.squared_distance(self.length_scale))
        u = sqrt(pair.squared_distance(self.length_scale, exact=self.nu < 1.5)) * math.sqrt(2.0 * self.nu)
        if self.nu == 0.5:
            return exp(-u)
        if self.nu == 1.5:
            return (1.0 + u) * exp(-u)
        if self.nu == 2.5:
            return (1.0 + u + u * u * (1.0 / 3.0)) * exp(-u)
        return matern(u, self.nu)

    def spectral_measure(self, n_columns: int) -> SpectralMeasure:
        """Frequencies have Student's multivariate t distribution with 2 nu degrees of freedom."""
        if math.isinf(self.nu):
            return gaussian_mixture(n_columns, self.length_scale)
        return gaussian_mixture(n_columns, self.length_scale, lambda draws: self.nu / draws.gamma(self.nu))

    @classmethod
    def from_sobolev(cls, order: float, dimension: int, length_scale: Any = 1.0) -> Matern:
        """The Matern kernel whose RKHS on R^dimension is the Sobolev space of that order (> dimension / 2).

        >>> Matern.from_sobolev(2, 1)
        Matern(nu=1.5, length_scale=1.0)
        """
        if not (dimension >= 1 and math.isfinite(order) and order > dimension / 2):
            raise InputError(
                f"Matern.from_sobolev(order={order!r}, dimension={dimension!r}): functions of a Sobolev space "
                f"have point values only for an order > dimension / 2 = {dimension / 2:g}."
            )
        return cls(nu=order - dimension / 2, length_scale=length_scale)

    @property
    def properties(self) -> Properties:
        return stationary_properties(self.nu, controls_convergence=False if self.nu > 1 else None)
