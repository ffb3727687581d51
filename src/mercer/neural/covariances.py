"""Covariances of the outputs of an infinitely wide network for pairs of images, and its tangent kernel.

Layers move both places of a pair together, until one pools. So pairs of places at one displacement, a sheet, never meet
those at another, and each sheet goes through the layers alone, small enough for the caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.kernels.activations import Function, PiecewiseLinear, Smooth
from mercer.kernels.dials import TERMS
from mercer.kernels.hermite import coefficients
from mercer.neural.dials import TINY
from mercer.operators.backends.costs import costs

Phi = PiecewiseLinear | Smooth | Function
End = tuple[Tensor, ...]
"""What an activation needs to know of the variances at one end of pairs, each (H, W, ...)."""


class Shift(NamedTuple):
    """How far places are apart."""

    down: int = 0
    right: int = 0


HERE = Shift()


@dataclass(frozen=True, eq=False)
class Sheet:
    """S and T at one layer, between each place of an image and the place `shift` further of another, around the edges.

    Attributes
    ----------
    parts : tuple of tensors
        The covariance S of pairs of images, (H, W, ...), and from the first weights on the tangent kernel T.
    shift : Shift
        How many places further, down and to the right.
    flat : bool
        Whether these are rows, which have no places.
    """

    parts: tuple[Tensor, ...]
    shift: Shift = HERE
    flat: bool = False

    @property
    def cross(self) -> Tensor:
        return self.parts[0]

    def weighted(self, total: Callable[[Tensor], Tensor], b: float) -> Sheet:
        """After a layer of weighted sums over places, and biases of variance b, which train."""
        cross = total(self.cross) + b
        tangent = sum((total(T) for T in self.parts[1:]), cross)
        return replace(self, parts=(cross, tangent))

    def activated(self, phi: Phi, left: End, right: End) -> Sheet:
        """After an activation: F of S, and F' of S times T."""
        value, slope = duals(phi, self.cross, left, right)
        return replace(self, parts=(value, *(slope * T for T in self.parts[1:])))

    def __add__(self, other: Sheet) -> Sheet:
        """Of the sum of two networks with weights of their own."""
        if self.cross.shape != other.cross.shape or self.flat != other.flat:
            raise InputError("Residual: its layers must keep the shape of what they are added to.")
        pairs = zip_longest(self.parts, other.parts)
        return replace(self, parts=tuple(b if a is None else a if b is None else a + b for a, b in pairs))


Sheets = Callable[[Shift], Sheet]
"""The sheet of a shift, made when asked for."""


def cross_sheets(x: Tensor, z: Tensor, flat: bool) -> Sheets:
    """Of all pairs of two samples of images, (H, W, n, channels): means of products over channels."""
    times = torch.mul if x.shape[-1] == 1 else torch.matmul  # the same, and faster
    turned = z.mT / x.shape[-1]
    return _sheets(lambda shift: times(x, further(turned, shift)), flat)


def own_sheets(x: Tensor, flat: bool) -> Sheets:
    """Of each image with itself."""
    return _sheets(lambda shift: (x * further(x, shift)).mean(-1), flat)


def _sheets(product: Callable[[Shift], Tensor], flat: bool) -> Sheets:
    def sheet(shift: Shift) -> Sheet:
        return Sheet((product(shift),), shift, flat)

    return sheet


def further(part: Tensor, shift: Shift) -> Tensor:
    """Numbers of the places a shift further."""
    return part if shift == HERE else part.roll((-shift.down, -shift.right), (0, 1))


class Ends(Protocol):
    """Both ends of a sheet for one activation after the other."""

    def of(self, phi: Phi, sheet: Sheet) -> tuple[End, End]: ...


class Found:
    """Those of images with themselves at the same places, found on the way."""

    def __init__(self) -> None:
        self.all: list[End] = []

    def of(self, phi: Phi, sheet: Sheet) -> tuple[End, End]:
        self.all.append(end_of(phi, sheet.cross))
        return self.all[-1], self.all[-1]


class Known:
    """Those that were found before."""

    def __init__(self, left: Iterable[End], right: Iterable[End]) -> None:
        self.pairs = zip(left, right, strict=True)

    def of(self, phi: Phi, sheet: Sheet) -> tuple[End, End]:
        left, right = next(self.pairs)
        return left, tuple(further(part, sheet.shift) for part in right)


def end_of(phi: Phi, variance: Tensor) -> End:
    """A deviation, a variance, or an inverse deviation and the coefficients of a series."""
    if isinstance(phi, PiecewiseLinear):
        return (variance.clamp(min=TINY**2).sqrt(),)
    if isinstance(phi, Smooth):
        return (variance,)
    positive = variance > 0
    over = torch.where(positive, variance, 1.0).rsqrt() * positive
    return over, *coefficients(phi, variance.flatten()).reshape(*variance.shape, TERMS).movedim(-1, 0).contiguous()


def duals(phi: Phi, q: Tensor, left: End, right: End) -> tuple[Tensor, Tensor]:
    """F = E phi(u) phi(v) and F' = E phi'(u) phi'(v) for covariances q of normal u, v, whose variances the ends know.

    >>> from mercer.kernels.activations import RELU
    >>> one = torch.ones(1).double()
    >>> [part.round(decimals=4).item() for part in duals(RELU, 0.0 * one, (one,), (one,))]
    [0.1592, 0.25]
    """
    if isinstance(phi, Smooth):
        return phi.dual(q, *left, *right), phi.slope(q, *left, *right)
    if isinstance(phi, PiecewiseLinear):
        size = left[0] * right[0]
        angle, sine = angle_and_sine(q / size)
        slope = torch.sub(q.new_tensor(phi.mean_square), angle, alpha=phi.kink)
        return (slope * q).addcmul_(sine, size, value=phi.kink), slope
    over = left[0] * right[0]
    rho = (q * over).clamp_(-1.0, 1.0)
    value, slope = torch.zeros_like(q), torch.zeros_like(q)
    for a, b in zip(reversed(left[1:]), reversed(right[1:]), strict=True):
        slope = slope * rho + value
        value = value * rho + a * b
    return value, slope * over


def angle_and_sine(cosine: Tensor) -> tuple[Tensor, Tensor]:
    """Of a cosine that may be too large by rounding; numpy's functions, where they are quicker, overwrite it.

    >>> [round(part.item(), 12) for part in angle_and_sine(torch.tensor([1.0 + 1e-9]).double())]
    [0.0, 0.0]
    """
    one = torch.ones((), dtype=cosine.dtype, device=cosine.device)
    if cosine.requires_grad or cosine.device.type != "cpu" or "arcsin" not in costs().by_numpy:
        sine = torch.addcmul(one, cosine, cosine, value=-1.0).clamp_(min=TINY**2).sqrt_()
        return torch.atan2(sine, cosine), sine
    square = torch.addcmul(one, cosine.clamp_(-1.0, 1.0), cosine, value=-1.0)
    numbers, rest = cosine.numpy(), square.numpy()
    np.arccos(numbers, out=numbers)
    np.sqrt(rest, out=rest)
    return cosine, square
