"""The covariance of Brownian motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from mercer.core.errors import InputError
from mercer.formula.maths import minimum
from mercer.kernels.base import Kernel
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
            value = value * minimum(*pair.ends(Time(i)))
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


@dataclass(frozen=True)
class Time:
    """The function that reads one column and rejects negative entries."""

    index: int

    def __call__(self, rows: Tensor) -> Tensor:
        column = rows[:, self.index]
        negative = (column < 0).nonzero()
        if len(negative):
            row = int(negative[0])
            raise InputError(
                f"Brownian is defined for inputs >= 0, but row {row}, column {self.index} is {column[row].item():g}."
            )
        return column
