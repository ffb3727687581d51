"""Covariances in an infinitely wide, fully connected network with random weights, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from mercer.core.errors import InputError
from mercer.formula.maths import power, sqrt, where
from mercer.kernels.activations import BOUNDED, Function, PiecewiseLinear, Smooth, checked_activation, known
from mercer.kernels.base import Kernel
from mercer.kernels.dials import TERMS
from mercer.kernels.directions import Turn, Variance, turn_between, turn_of
from mercer.kernels.hermite import Coefficient, LayerVariance
from mercer.kernels.inner import needed
from mercer.kernels.pair import Pair
from mercer.kernels.parameters import parameter
from mercer.kernels.properties import Properties

Layer = tuple[Any, Any]
"""The covariance S_l of two outputs of layer l, and F' of the layer before it; the inputs have no F'."""


@dataclass(frozen=True, eq=False, repr=False)
class Network(Kernel):
    """A kernel of a wide network of `depth` hidden layers, weights of variance w_var / width, biases of b_var."""

    depth: int = parameter(1, integer=True, tunable=False)
    activation: Any = "relu"
    w_var: float = parameter(2.0)
    b_var: float = parameter(0.1, lower_open=False)
    slope: float = parameter(0.01, lower=-1e6, tunable=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_activation(self.activation, type(self).__name__)
        if isinstance(self.slope, Tensor):
            raise InputError(f"{type(self).__name__}: slope must be a number, not a tensor.")

    def layers(self, pair: Pair) -> Iterator[Layer]:
        """Covariances of the inputs and of each layer."""
        inputs = Variance(self.w_var / pair.columns(), self.b_var)
        return layers(pair, known(self.activation, self.slope), inputs, self.w_var, self.b_var, self.depth)

    @property
    def properties(self) -> Properties:
        bias = needed(self.b_var)
        curved = isinstance(self.activation, str) and (self.activation, self.slope) != ("leaky_relu", 1.0)
        return Properties(
            stationary=False,
            universal=True if bias and curved else None,
            bounded=self._bounded(),
            contains_constants=True if bias else None,
        )

    def _bounded(self) -> bool | None:
        return None


def bounded_activation(activation: Any) -> bool | None:
    """Whether an activation is bounded; None where that is not known."""
    return BOUNDED.get(activation) if isinstance(activation, str) else None


def layers(
    pair: Pair, phi: PiecewiseLinear | Smooth | Function, inputs: Variance, w: Any, b: Any, depth: int
) -> Iterator[Layer]:
    """Covariances of the inputs and of each layer, of weights of variance w / width and biases of variance b."""
    if isinstance(phi, PiecewiseLinear):
        return _by_angles(pair, phi, inputs, w, b, depth)
    if isinstance(phi, Smooth):
        return _in_closed_form(pair, phi, inputs, w, b, depth)
    return _by_series(pair, phi, inputs, w, b, depth)


def _by_angles(pair: Pair, phi: PiecewiseLinear, inputs: Variance, w: Any, b: Any, depth: int) -> Iterator[Layer]:
    """In the versine h of the angle between the two points, which stays accurate where they nearly coincide.

    p and r are the variances of the two ends; those of the next layer are b + w A p.
    """
    c, A = phi.kink, phi.mean_square
    p, r = pair.ends(inputs)
    turn = turn_between(pair, inputs.weight, inputs.bias)
    root_p, root_r = sqrt(p), sqrt(r)
    yield root_p * root_r * turn.cosine, None
    for layer in range(depth):
        size = root_p * root_r
        slope = mean_slope(phi, turn)
        value = size * (c * turn.sine + slope * turn.cosine)
        yield w * value + b if needed(b) else w * value, slope
        if layer == depth - 1:
            return
        versine = _shortfall(phi, turn, slope)
        p, r = (b + w * A * end if needed(b) else w * A * end for end in (p, r))
        next_p, next_r = sqrt(p), sqrt(r)
        if needed(b):
            gap = (root_p - root_r) * (root_p - root_r)
            rest = b * w * A * gap / (next_p * next_r + b + w * A * size)
            versine = (w * size * versine + rest) * (power(p, -0.5) * power(r, -0.5))
        else:
            versine = versine * (1.0 / A)
        turn, root_p, root_r = turn_of(versine), next_p, next_r


def mean_slope(phi: PiecewiseLinear, turn: Turn) -> Any:
    """F', from the smaller one of t and pi - t where that is known."""
    if turn.opposite is None:
        return phi.mean_square - phi.kink * turn.angle
    bent = phi.kink * turn.angle
    return where(turn.opposite, phi.above * phi.below + bent, phi.mean_square - bent)


def _shortfall(phi: PiecewiseLinear, turn: Turn, slope: Any) -> Any:
    """A - F for variances one, by which the next angle is told, from small numbers at both ends of the angle."""
    bent = phi.kink * (turn.angle - turn.sine)
    straight = turn.versine * slope
    if turn.opposite is None:
        return bent + straight
    return bent + where(turn.opposite, 0.5 * (phi.above + phi.below) ** 2 - straight, straight)


def _in_closed_form(pair: Pair, phi: Smooth, inputs: Variance, w: Any, b: Any, depth: int) -> Iterator[Layer]:
    p, r = pair.ends(inputs)
    q = inputs.weight * pair.inner() + inputs.bias
    yield q, None
    for _ in range(depth):
        value, slope = phi.dual(q, p, r), phi.slope(q, p, r)
        q = w * value + b
        yield q, slope
        p, r = w * phi.dual(p, p, p) + b, w * phi.dual(r, r, r) + b


def _by_series(pair: Pair, phi: Function, inputs: Variance, w: Any, b: Any, depth: int) -> Iterator[Layer]:
    """By Horner's rule in the correlation; F' is the derivative of the series."""
    q = inputs.weight * pair.inner() + inputs.bias
    yield q, None
    for layer in range(depth):
        ends = LayerVariance(phi, w, b, inputs, layer)
        over_p, over_r = pair.ends(LayerVariance(phi, w, b, inputs, layer, inverse_root=True))
        over = over_p * over_r
        rho = q * over
        value: Any = 0.0
        slope: Any = 0.0
        for k in reversed(range(TERMS)):
            left, right = pair.ends(Coefficient(ends, k))
            slope = slope * rho + value
            value = value * rho + left * right
        q = w * value + b
        yield q, slope * over
