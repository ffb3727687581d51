"""Kernels of the inner product x.z, and of all products of distinct coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from mercer.kernels.base import Kernel
from mercer.kernels.pair import Pair
from mercer.kernels.parameters import parameter
from mercer.kernels.properties import ANALYTIC, Properties
from mercer.kernels.registry import register


@register(
    names={"linear": {}},
    examples=[{}, {"bias": 0.5}],
)
class Linear(Kernel):
    r"""The linear kernel :math:`k(x, z) = x \cdot z + b`, whose RKHS is the affine functions (linear at b = 0).

    >>> Linear()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """

    bias: float = parameter(0.0, lower_open=False)

    def of(self, pair: Pair) -> Any:
        return pair.inner() + self.bias if needed(self.bias) else pair.inner()

    @property
    def properties(self) -> Properties:
        return inner_properties(contains_constants=needed(self.bias))


@register(
    names={"polynomial": {}, "poly": {}},
    examples=[{"degree": 2, "scale": 0.5, "offset": 1.0}, {"degree": 3, "offset": 0.0}],
)
class Polynomial(Kernel):
    r"""The polynomial kernel

    .. math:: k(x, z) = (s\, x \cdot z + c)^m, \qquad c \ge 0.

    Not characteristic: distributions with equal moments up to m have the same embedding. scikit-learn's
    ``polynomial_kernel(gamma, coef0)`` has ``scale=gamma, offset=coef0``.

    >>> Polynomial(degree=2, scale=1.0, offset=1.0)([[1.0]], [[2.0]])
    array([[9.]])
    """

    degree: int = parameter(3, integer=True, tunable=False)
    scale: float = parameter(1.0)
    offset: float = parameter(1.0, lower_open=False)

    def of(self, pair: Pair) -> Any:
        return (self.scale * pair.inner() + self.offset) ** self.degree

    @property
    def properties(self) -> Properties:
        return inner_properties(contains_constants=needed(self.offset))


@register(
    names={"all_subsets": {}},
    examples=[{}],
)
class AllSubsets(Kernel):
    r"""The all-subsets kernel :math:`k(x, z) = \prod_i (1 + x_i z_i)`.

    Its features are the products of all sets of distinct coordinates, :math:`2^d` of them.

    References: Shawe-Taylor and Cristianini, *Kernel Methods for Pattern Analysis*, 2004, section 9.2.

    >>> AllSubsets()([[1.0, 2.0]], [[3.0, 4.0]])
    array([[36.]])
    """

    def of(self, pair: Pair) -> Any:
        value: Any = 1.0
        for i in range(pair.columns()):
            left, right = pair.ends(Coordinate(i))
            value = value * (1.0 + left * right)
        return value

    @property
    def properties(self) -> Properties:
        return inner_properties(contains_constants=True)


@dataclass(frozen=True)
class Coordinate:
    """The function that reads one column."""

    index: int

    def __call__(self, rows: Tensor) -> Tensor:
        return rows[:, self.index]


def needed(offset: Any) -> bool:
    """Whether an offset has to be added: a tensor always, a number unless it is zero."""
    return isinstance(offset, Tensor) or offset > 0


def inner_properties(contains_constants: bool) -> Properties:
    """Facts shared by the kernels with a finite number of features."""
    return Properties(
        stationary=False,
        characteristic=False,
        universal=False,
        bounded=False,
        smoothness=ANALYTIC,
        contains_constants=contains_constants,
        controls_convergence=False,
        is_normalised=False,
    )
