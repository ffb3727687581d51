"""The layers of infinitely wide networks, each a step from covariances to covariances."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product, starmap
from typing import Any, Protocol

from torch import Tensor

from mercer.core.errors import InputError, InputTypeError
from mercer.core.rules import SCALE, Rule, is_integer, number, one_of, whole
from mercer.kernels.activations import checked_activation, known
from mercer.kernels.registry import register_part
from mercer.neural.covariances import HERE, Ends, Sheet, Sheets, Shift


class Layer(Protocol):
    """A step from the covariances before a layer to those after it."""

    def __call__(self, before: Sheet, ends: Ends) -> Sheet: ...


@register_part
@dataclass(frozen=True)
class Dense:
    """A fully connected layer, with weights of variance w_var / inputs and biases of variance b_var.

    >>> from mercer.neural import LayerKernel
    >>> LayerKernel([Dense(w_var=3.0, b_var=1.0)])([[1.0, 2.0]])
    array([[8.5]])
    """

    w_var: float = 2.0
    b_var: float = 0.1

    def __post_init__(self) -> None:
        _check_variances(self)

    def __call__(self, before: Sheet, ends: Ends) -> Sheet:
        if not before.flat:
            raise InputError("Dense: it needs flat rows; put Flatten() before it.")
        return before.weighted(lambda S: self.w_var * S, self.b_var)


SLOPE = number(lambda value: abs(value) <= 1e6, "a finite number of at most a million")
ODD = Rule(is_integer, lambda size: size >= 1 and size % 2, "an odd number, so that images keep their shape")


@register_part
@dataclass(frozen=True)
class Conv:
    """A convolution with an odd `size` that keeps the shape of images, by "circular" or "zero" padding.

    >>> from mercer.neural import LayerKernel
    >>> LayerKernel([Conv(3), Activation(), Flatten(), Dense()], shape=(1, 2, 2))([[0.0, 1.0, 2.0, 3.0]]).shape
    (1, 1)
    """

    size: int = 3
    w_var: float = 2.0
    b_var: float = 0.1
    padding: str = "zero"

    def __post_init__(self) -> None:
        _check_variances(self)
        ODD.check("size", self.size, False)
        one_of("zero", "circular").check("padding", self.padding, False)

    def __call__(self, before: Sheet, ends: Ends) -> Sheet:
        height, width = _places(self, before)
        if self.size >= 2 * max(height, width):
            raise InputError(f"Conv(size={self.size}): images of {height} x {width} are smaller than that.")

        def total(S: Tensor) -> Tensor:
            """Over the places that the filter sees; two places are seen through the same part of it."""
            for dim, by in enumerate(before.shift):
                S = self._total_along(dim, by, S)
            return S

        return before.weighted(total, self.b_var)

    def _total_along(self, dim: int, by: int, S: Tensor) -> Tensor:
        """With zeros around both images, what is beyond an edge of either one does not meet what is before it."""
        length, w = S.shape[dim], self.w_var**0.5 / self.size
        total = w * S
        if self.padding == "circular":
            for step in range(1, self.size // 2 + 1):
                total.add_(S.roll(step, dim), alpha=w).add_(S.roll(-step, dim), alpha=w)
            return total
        for start, count in ((0, length - by), (length - by, by)):
            for step in range(1, min(self.size // 2, count - 1) + 1):
                before, after = ((dim, place, count - step) for place in (start, start + step))
                total.narrow(*before).add_(S.narrow(*after), alpha=w)
                total.narrow(*after).add_(S.narrow(*before), alpha=w)
        return total


@register_part
@dataclass(frozen=True)
class Activation:
    """An activation of `NNGP`, by name or as a smooth function; `slope` is that of "leaky_relu".

    >>> Activation("leaky_relu", slope=0.2)
    Activation(activation='leaky_relu', slope=0.2)
    """

    activation: Any = "relu"
    slope: float = 0.01

    def __post_init__(self) -> None:
        checked_activation(self.activation, "Activation")
        SLOPE.check("slope", self.slope, False)

    def __call__(self, before: Sheet, ends: Ends) -> Sheet:
        phi = known(self.activation, self.slope)
        return before.activated(phi, *ends.of(phi, before))


@register_part
@dataclass(frozen=True)
class AveragePool:
    """Means over squares of `size` x `size` places.

    >>> from mercer.neural import LayerKernel
    >>> mean = LayerKernel([AveragePool(2), Flatten(), Dense(w_var=1.0, b_var=0.0)], shape=(1, 2, 2))
    >>> mean([[0.0, 1.0, 2.0, 3.0]])  # 1.5^2
    array([[2.25]])
    """

    size: int = 2

    def __post_init__(self) -> None:
        whole(1).check("size", self.size, False)

    def __call__(self, before: Sheet, ends: Ends) -> Sheet:
        _places(self, before)
        if self.size > 1:
            raise InputError("Residual: its layers must keep the shape of what they are added to.")
        return before

    def pooled(self, sheets: Sheets) -> Sheets:
        """Sheets after it, of which each needs all before it; these are made once, when the first is asked for."""

        @cache
        def means() -> list[Tensor]:
            return self._means(sheets)

        def sheet(shift: Shift) -> Sheet:
            return Sheet(tuple(mean[shift] for mean in means()), shift)

        return sheet

    def _means(self, sheets: Sheets) -> list[Tensor]:
        """Parts by shift. Where the places of a sheet get depends on where in their squares they are."""
        first = sheets(HERE)
        height, width = _places(self, first)
        if height % self.size or width % self.size:
            raise InputError(
                f"AveragePool(size={self.size}): images of {height} x {width} cannot be divided into squares of that "
                f"size."
            )
        rows, columns = height // self.size, width // self.size
        totals = [S.new_zeros(rows, columns, rows, columns, *S.shape[2:]) for S in first.parts]
        for shift in starmap(Shift, product(range(height), range(width))):
            sheet = sheets(shift)
            for total, S in zip(totals, sheet.parts, strict=True):
                squares = S.unflatten(1, (columns, -1)).unflatten(0, (rows, -1))
                moved = (_moved(by, self.size, count) for by, count in zip(shift, (rows, columns), strict=True))
                for (down, high), (right, wide) in product(*moved):
                    total[down, right] += squares[:, high, :, wide].sum((1, 3))
        return [total / self.size**4 for total in totals]


def _moved(by: int, size: int, count: int) -> list[tuple[int, slice]]:
    """How many of `count` squares further places get that move by so much, for each part of a square."""
    squares, rest = divmod(by, size)
    if rest == 0 or count == 1:
        return [(squares, slice(0, size))]
    return [(squares, slice(0, size - rest)), ((squares + 1) % count, slice(size - rest, size))]


@register_part
@dataclass(frozen=True)
class Flatten:
    """From images to rows: the layer after it sees all places.

    >>> from mercer.neural import LayerKernel
    >>> LayerKernel([Flatten(), Dense(w_var=1.0, b_var=0.0)], shape=(1, 2, 2))([[0.0, 1.0, 2.0, 3.0]])  # |x|^2 / 4
    array([[3.5]])
    """

    def __call__(self, before: Sheet, ends: Ends) -> Sheet:
        _places(self, before)
        return Sheet(tuple(S.mean((0, 1), keepdim=True) for S in before.parts), flat=True)


@register_part
@dataclass(frozen=True)
class Residual:
    """What comes in, added to what the layers make of it.

    >>> Residual([Activation(), Conv(3)])
    Residual(layers=(Activation(activation='relu', slope=0.01), Conv(size=3, w_var=2.0, b_var=0.1, padding='zero')))
    """

    layers: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", checked_layers(self.layers, "Residual"))

    def __call__(self, before: Sheet, ends: Ends) -> Sheet:
        return before + through(self.layers, before, ends)


def through(layers: Iterable[Layer], before: Sheet, ends: Ends) -> Sheet:
    """The covariances after all of the layers."""
    for layer in layers:
        before = layer(before, ends)
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


def _places(layer: Any, before: Sheet) -> tuple[int, int]:
    """Height and width."""
    if before.flat:
        raise InputError(f"{type(layer).__name__}: it needs images; give shape=, and put it before Flatten().")
    return before.cross.shape[0], before.cross.shape[1]
