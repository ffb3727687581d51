"""Angles between the directions of points, from their versines h = 1 - cos t, which neither cancel nor leave [0, 2]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.formula.maths import angle, less, minimum, versine_sine, where
from mercer.kernels.pair import Pair, vectors

PI = 3.141592653589793


@dataclass(frozen=True)
class Variance:
    """The function b + w |x|^2 of rows."""

    weight: Any
    bias: Any

    def __call__(self, rows: Tensor) -> Tensor:
        result: Tensor = self.weight * rows.square().sum(1) + self.bias
        return result


@dataclass(frozen=True)
class Direction:
    """The warp from x to the direction of (sqrt(w) x, sqrt(b)); the zero vector stays where it is."""

    weight: Any
    bias: Any

    def __call__(self, points: Points) -> Points:
        x = vectors(points)
        weight, bias = (torch.as_tensor(v, dtype=x.dtype, device=x.device).sqrt() for v in (self.weight, self.bias))
        rows = torch.cat([x * weight, bias.expand(len(x), 1)], 1)
        square = rows.square().sum(1, keepdim=True)
        zero = square == 0
        return Points((rows * square.masked_fill(zero, 1.0).rsqrt()).masked_fill(zero, 0.0))


@dataclass(frozen=True)
class Turn:
    """The angle t of two directions: cos t, sin t and pi - t; versine and angle are those of the smaller, t or pi - t.

    `opposite` is one where the smaller is pi - t; None where it is always t.
    """

    versine: Any
    angle: Any
    cosine: Any
    sine: Any
    rest: Any
    opposite: Any = None


def turn_between(pair: Pair, weight: Any, bias: Any) -> Turn:
    """The angle of (sqrt(w) x, sqrt(b)) and (sqrt(w) z, sqrt(b)); nearly opposite ones are told from their sum."""
    directions = pair.warped(Direction(weight, bias))
    near, far = 0.5 * directions.squared_distance(exact=True), 0.5 * directions.squared_sum()
    opposite, h = less(far, near), minimum(minimum(far, near), 2.0)
    t = angle(h)
    return Turn(h, t, where(opposite, h - 1.0, 1.0 - h), versine_sine(h), where(opposite, t, PI - t), opposite)


def turn_of(versine: Any) -> Turn:
    """The angle of a versine."""
    h = minimum(versine, 2.0)
    t = angle(h)
    return Turn(h, t, 1.0 - h, versine_sine(h), PI - t)
