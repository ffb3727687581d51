r"""Activations of wide layers as functions of covariances: F = E phi(u) phi(v) and F' = E phi'(u) phi'(v),

for normal u, v with variances p, r and covariance q. Piecewise linear ones are written in angles, see `networks`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mercer.core.errors import InputError, InputTypeError
from mercer.formula.maths import asin, exp

PI = math.pi


@dataclass(frozen=True)
class PiecewiseLinear:
    """phi(u) = a u for u > 0 and b u for u < 0."""

    above: float
    below: float

    @property
    def mean_square(self) -> float:
        """A = (a^2 + b^2) / 2: the variance after the layer, for variance one before it."""
        return 0.5 * (self.above**2 + self.below**2)

    @property
    def kink(self) -> float:
        return (self.above - self.below) ** 2 / (2.0 * PI)


@dataclass(frozen=True)
class Smooth:
    """F and F' as formulas of q, p, r."""

    dual: Callable[[Any, Any, Any], Any]
    slope: Callable[[Any, Any, Any], Any]


def _erf_dual(q: Any, p: Any, r: Any) -> Any:
    return (2.0 / PI) * asin(2.0 * q * ((1.0 + 2.0 * p) ** -0.5 * (1.0 + 2.0 * r) ** -0.5))


def _erf_slope(q: Any, p: Any, r: Any) -> Any:
    return (4.0 / PI) * ((1.0 + 2.0 * p) * (1.0 + 2.0 * r) - 4.0 * (q * q)) ** -0.5


def _sin_dual(q: Any, p: Any, r: Any) -> Any:
    half = exp(-0.5 * p) * exp(-0.5 * r)
    return 0.5 * half * (exp(q) - exp(-1.0 * q))


def _sin_slope(q: Any, p: Any, r: Any) -> Any:
    return 0.5 * (exp(q - 0.5 * p - 0.5 * r) + exp(-1.0 * q - 0.5 * p - 0.5 * r))


def _gelu_parts(q: Any, p: Any, r: Any) -> tuple[Any, Any, Any]:
    """1 / P, 1 / D and asin(q / sqrt P), for P = (1 + p)(1 + r) and D^2 = P - q^2."""
    product = (1.0 + p) * (1.0 + r)
    return product**-1.0, (product - q * q) ** -0.5, asin(q * product**-0.5)


def _gelu_dual(q: Any, p: Any, r: Any) -> Any:
    over_product, over_root, turn = _gelu_parts(q, p, r)
    root = over_root**-1.0
    return 0.25 * q + ((q * q * over_root + p * r * root) * over_product + q * turn) * (0.5 / PI)


def _gelu_slope(q: Any, p: Any, r: Any) -> Any:
    over_product, over_root, turn = _gelu_parts(q, p, r)
    inner = over_root * over_root + (1.0 - p * r) * over_product + 1.0
    return 0.25 + (turn + q * over_root * inner) * (0.5 / PI)


RELU = PiecewiseLinear(1.0, 0.0)

CLOSED: dict[str, PiecewiseLinear | Smooth] = {
    "relu": RELU,
    "abs": PiecewiseLinear(1.0, -1.0),
    "erf": Smooth(_erf_dual, _erf_slope),
    "gelu": Smooth(_gelu_dual, _gelu_slope),
    "sin": Smooth(_sin_dual, _sin_slope),
}
"""Activations whose F and F' are known in closed form; leaky_relu has a slope of its own."""

Function = Callable[[Tensor], Tensor]

FUNCTIONS: dict[str, Function] = {
    "relu": torch.relu,
    "leaky_relu": torch.nn.functional.leaky_relu,
    "abs": torch.abs,
    "erf": torch.erf,
    "gelu": torch.nn.functional.gelu,
    "sin": torch.sin,
    "cos": torch.cos,
    "sigmoid": torch.sigmoid,
    "silu": torch.nn.functional.silu,
    "softplus": torch.nn.functional.softplus,
    "tanh": torch.tanh,
}
"""Activations by name. Those without a closed form are expanded in Hermite polynomials."""

BOUNDED = {"relu": False, "leaky_relu": False, "abs": False, "gelu": False, "erf": True, "sin": True}
"""Whether the covariances of an activation are bounded; those of a series are refused far out."""


def checked_activation(activation: Any, owner: str) -> Any:
    """A name of an activation, or a smooth function of a tensor."""
    if isinstance(activation, str):
        if activation not in FUNCTIONS:
            raise InputError(f"{owner}(activation={activation!r}): give one of {', '.join(FUNCTIONS)}, or a function.")
        return activation
    if isinstance(activation, type) or not callable(activation):
        raise InputTypeError(f"{owner}(activation={activation!r}): give a name or a smooth function of a tensor.")
    return activation


def known(activation: Any, slope: float) -> PiecewiseLinear | Smooth | Function:
    """What is known of an activation: its closed form, or the function itself."""
    if activation == "leaky_relu":
        return PiecewiseLinear(1.0, slope)
    if isinstance(activation, str):
        return CLOSED.get(activation) or FUNCTIONS[activation]
    function: Function = activation
    return function
