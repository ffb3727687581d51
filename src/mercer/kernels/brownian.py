"""The covariance of Brownian motion."""

from __future__ import annotations

from typing import Any

from mercer.formula.maths import minimum
from mercer.kernels.base import Kernel
from mercer.kernels.nonnegative import NonNegative
from mercer.kernels.pair import Pair
from mercer.kernels.properties import Properties
from mercer.kernels.registry import register


@register(
    names={"brownian": {}},
    examples=[{}],
)
class Brownian(Kernel):
    r"""The covariance of Brownian motion, of the Brownian sheet for several columns,

    .. math:: k(x, z) = \prod_j \min(x_j, z_j), \qquad x, z \ge 0.

    For one column its RKHS is the functions with f(0) = 0 and a square-integrable derivative, and
    :math:`\|f\|^2 = \int f'(t)^2 dt`.

    References: Berlinet and Thomas-Agnan, *Reproducing Kernel Hilbert Spaces in Probability and Statistics*, 2004.

    >>> Brownian()([[1.0], [2.0]])
    array([[1., 1.],
           [1., 2.]])
    """

    def of(self, pair: Pair) -> Any:
        value: Any = 1.0
        for i in range(pair.columns()):
            value = value * minimum(*pair.ends(NonNegative(i, "Brownian")))
        return value

    @property
    def properties(self) -> Properties:
        return Properties(
            stationary=False,
            universal=False,
            bounded=False,
            contains_constants=False,
            is_normalised=False,
        )
