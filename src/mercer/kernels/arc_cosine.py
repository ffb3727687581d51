"""The arc-cosine kernels of Cho and Saul."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from mercer.kernels.base import Kernel
from mercer.kernels.directions import PI, Turn, turn_between
from mercer.kernels.pair import Pair
from mercer.kernels.parameters import parameter
from mercer.kernels.properties import Properties
from mercer.kernels.registry import register


@register(names={"arc_cosine": {}}, examples=[{"order": 0}, {"order": 1}, {"order": 2}])
class ArcCosine(Kernel):
    r"""The arc-cosine kernel of order n = 0, 1 or 2,

    .. math:: k(x, z) = \frac{1}{\pi} \|x\|^n \|z\|^n J_n(t)
        = 2\, E\, \theta(w \cdot x)\, \theta(w \cdot z)\, (w \cdot x)^n (w \cdot z)^n,

    with t the angle of x and z, w standard normal, :math:`\theta` one for positive numbers, and

    .. math:: J_0 = \pi - t, \quad J_1 = \sin t + (\pi - t) \cos t, \quad
        J_2 = 3 \sin t \cos t + (\pi - t)(1 + 2 \cos^2 t).

    Order 1 is the kernel of a wide layer of rectified linear units. k is zero where x or z is. `NNGP` is the
    same with a bias and more layers.

    References: Cho and Saul, *Kernel methods for deep learning*, 2009.

    >>> ArcCosine(1)([[1.0, 0.0], [0.0, 2.0]]).round(4)
    array([[1.    , 0.6366],
           [0.6366, 4.    ]])
    """

    order: int = parameter(1, lower_open=False, upper=2.0, integer=True, tunable=False)

    def of(self, pair: Pair) -> Any:
        left, right = pair.ends(Size(self.order))
        return left * right * PROFILES[self.order](turn_between(pair, 1.0, 0.0)) * (1.0 / PI)

    @property
    def properties(self) -> Properties:
        return Properties(
            stationary=False, universal=False, bounded=self.order == 0, is_normalised=False if self.order else None
        )


def _step(turn: Turn) -> Any:
    return turn.rest


def _ramp(turn: Turn) -> Any:
    return turn.sine + turn.rest * turn.cosine


def _parabola(turn: Turn) -> Any:
    return 3.0 * turn.sine * turn.cosine + turn.rest * (1.0 + 2.0 * turn.cosine * turn.cosine)


PROFILES = (_step, _ramp, _parabola)
"""J of the angle, by order."""


@dataclass(frozen=True)
class Size:
    """The function |x|^n of rows, zero at zero."""

    order: int

    def __call__(self, rows: Tensor) -> Tensor:
        square = rows.square().sum(1)
        zero = square == 0
        return square.masked_fill(zero, 1.0).pow(0.5 * self.order).masked_fill(zero, 0.0)
