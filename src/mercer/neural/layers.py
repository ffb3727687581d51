"""The layers of infinitely wide networks, each a step from covariances to covariances."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import pad

from mercer.core.errors import InputError, InputTypeError
from mercer.core.rules import SCALE, Rule, is_integer, number, one_of, whole
from mercer.kernels.activations import checked_activation, known
from mercer.kernels.registry import register_part
from mercer.neural.covariances import FLAT, PAIRS, SAME, Covariances


class Layer(Protocol):
    """A step from the covariances before a layer to those after it."""

    def __call__(self, before: Covariances) -> Covariances: ...


@register_part
@dataclass(frozen=True)
class Dense:
    """A fully connected layer, with weights of variance w_var / inputs and biases of variance b_var."""

    w_var: float = 2.0
    b_var: float = 0.1

    def __post_init__(self) -> None:
        _check_variances(self)

    def __call__(self, before: Covariances) -> Covariances:
        if before.form != FLAT:
            raise InputError("Dense: it needs flat rows; put Flatten() before it.")
        return before.weighted(lambda S, form: S, self.w_var, self.b_var)


SLOPE = number(lambda value: abs(value) <= 1e6, "a finite number of at most a million")
ODD = Rule(is_integer, lambda size: size >= 1 and size % 2, "an odd number, so that images keep their shape")


@register_part
@dataclass(frozen=True)
class Conv:
    """A convolution with an odd `size` that keeps the shape of images, by "circular" or "zero" padding."""

    size: int = 3
    w_var: float = 2.0
    b_var: float = 0.1
    padding: str = "zero"

    def __post_init__(self) -> None:
        _check_variances(self)
        ODD.check("size", self.size, False)
        one_of("zero", "circular").check("padding", self.padding, False)

    def __call__(self, before: Covariances) -> Covariances:
        _check_places(self, before)
        height, width = before.cross.shape[-2:]
        if self.size >= 2 * max(height, width):
            raise InputError(f"Conv(size={self.size}): images of {height} x {width} are smaller than that.")
        return before.weighted(self._average, self.w_var, self.b_var)

    def _average(self, S: Tensor, form: str) -> Tensor:
        """The mean over the places that the filter sees; two places are seen through the same part of it."""
        for place in (-2, -1):
            S = self._mean_along((place - 2, place) if form == PAIRS else (place,), S)
        return S

    def _mean_along(self, dims: tuple[int, ...], S: Tensor) -> Tensor:
        """Along dimensions that move together."""
        reach, total = self.size // 2, torch.zeros_like(S)
        if self.padding == "circular":
            for by in range(-reach, reach + 1):
                total += torch.roll(S, (by,) * len(dims), dims)
            return total / self.size
        length, wide = S.shape[dims[0]], pad(S, [reach * (-1 - k // 2 in dims) for k in range(-2 * dims[0])])
        for by in range(self.size):
            seen = wide
            for dim in dims:
                seen = seen.narrow(dim, by, length)
            total += seen
        return total / self.size


@register_part
@dataclass(frozen=True)
class Activation:
    """An activation of `NNGP`, by name or as a smooth function; `slope` is that of "leaky_relu"."""

    activation: Any = "relu"
    slope: float = 0.01

    def __post_init__(self) -> None:
        checked_activation(self.activation, "Activation")
        SLOPE.check("slope", self.slope, False)

    def __call__(self, before: Covariances) -> Covariances:
        return before.activated(known(self.activation, self.slope))


@register_part
@dataclass(frozen=True)
class AveragePool:
    """Means over squares of `size` x `size` places."""

    size: int = 2

    def __post_init__(self) -> None:
        whole(1).check("size", self.size, False)

    def __call__(self, before: Covariances) -> Covariances:
        _check_places(self, before)
        height, width = before.cross.shape[-2:]
        if height % self.size or width % self.size:
            raise InputError(
                f"AveragePool(size={self.size}): images of {height} x {width} cannot be divided into squares of that "
                f"size."
            )
        return before.averaged(self._average)

    def _average(self, S: Tensor, form: str) -> Tensor:
        if form == SAME:
            return torch.full_like(S[..., :: self.size, :: self.size], torch.nan)
        lead = S.ndim - 4
        parts = [length for side in S.shape[lead:] for length in (side // self.size, self.size)]
        return S.reshape(*S.shape[:lead], *parts).mean(dim=[lead + k for k in (1, 3, 5, 7)])


@register_part
@dataclass(frozen=True)
class Flatten:
    """From images to rows: the layer after it sees all places."""

    def __call__(self, before: Covariances) -> Covariances:
        _check_places(self, before)
        return before.averaged(self._average, flat=True)

    def _average(self, S: Tensor, form: str) -> Tensor:
        if form == SAME:
            return S.mean((-2, -1))
        return S.flatten(-4, -3).flatten(-2).diagonal(dim1=-2, dim2=-1).mean(-1)


@register_part
@dataclass(frozen=True)
class Residual:
    """What comes in, added to what the layers make of it."""

    layers: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", checked_layers(self.layers, "Residual"))

    def __call__(self, before: Covariances) -> Covariances:
        return before + through(self.layers, before)


def through(layers: Iterable[Layer], before: Covariances) -> Covariances:
    """The covariances after all of the layers."""
    for layer in layers:
        before = layer(before)
    return before


def all_layers(layers: Iterable[Any]) -> Iterator[Any]:
    """The layers and those inside of them."""
    for layer in layers:
        yield layer
        yield from all_layers(getattr(layer, "layers", ()))


def checked_layers(layers: Any, owner: str) -> tuple[Any, ...]:
    """The layers as a tuple, or an error that names what is no layer."""
    known_layers = Dense, Conv, Activation, AveragePool, Flatten, Residual
    found = tuple(layers) if isinstance(layers, list | tuple) else (layers,)
    for layer in found:
        if not isinstance(layer, known_layers):
            names = ", ".join(cls.__name__ for cls in known_layers)
            raise InputTypeError(f"{owner}: {layer!r:.60} is no layer; give objects of {names}.")
    if not found:
        raise InputError(f"{owner}: give at least one layer.")
    return found


def _check_variances(layer: Dense | Conv) -> None:
    number(lambda value: value > 0, "a finite number > 0").check("w_var", layer.w_var, False)
    SCALE.check("b_var", layer.b_var, False)


def _check_places(layer: Any, before: Covariances) -> None:
    if before.form == FLAT:
        raise InputError(f"{type(layer).__name__}: it needs images; give shape=, and put it before Flatten().")
