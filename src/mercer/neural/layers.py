"""The kernels of infinitely wide networks that are put together from layers, on images given as rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import dropwhile
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import pad

from mercer.core.arrays import Points
from mercer.core.errors import InputError, InputTypeError
from mercer.core.memory import resolve_budget
from mercer.core.rules import FLAG, SCALE, Rule, is_integer, number, one_of, whole
from mercer.kernels.activations import checked_activation, known
from mercer.kernels.base import Kernel
from mercer.kernels.pair import DensePair, Pair, vectors
from mercer.kernels.properties import Properties
from mercer.neural.covariances import FLAT, PAIRS, SAME, Covariances

COPIES = 16
"""Tensors of the size of all covariances of a tile that are alive at a time, and the share of the budget they take."""

CACHED = 80_000
"""Covariances of a tile on a CPU, whose tensors then stay in the caches: a third of the time of large tiles (Zen 5)."""


class Layer(Protocol):
    """A step from the covariances before a layer to those after it."""

    def __call__(self, before: Covariances) -> Covariances: ...


@dataclass(frozen=True)
class Dense:
    """A fully connected layer, with weights of variance w_var / inputs and biases of variance b_var."""

    w_var: float = 2.0
    b_var: float = 0.1

    def __post_init__(self) -> None:
        _check_variances(self)

    def __call__(self, before: Covariances) -> Covariances:
        if before.form != FLAT:
            raise InputError("Dense: images have places; put Flatten() before it.")
        return before.weighted(lambda S, form: S, self.w_var, self.b_var)


ODD = Rule(is_integer, lambda size: size >= 1 and size % 2, "an odd number, so that images keep their shape")


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


@dataclass(frozen=True)
class Activation:
    """An activation of `NNGP`, by name or as a smooth function; `slope` is that of "leaky_relu"."""

    activation: Any = "relu"
    slope: float = 0.01

    def __post_init__(self) -> None:
        checked_activation(self.activation, "Activation")

    def __call__(self, before: Covariances) -> Covariances:
        return before.activated(known(self.activation, self.slope))


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
                f"AveragePool(size={self.size}): images of {height} x {width} are not made of such squares."
            )
        return before.averaged(self._average)

    def _average(self, S: Tensor, form: str) -> Tensor:
        if form == SAME:
            return torch.full_like(S[..., :: self.size, :: self.size], torch.nan)
        lead = S.ndim - 4
        parts = [length for side in S.shape[lead:] for length in (side // self.size, self.size)]
        return S.reshape(*S.shape[:lead], *parts).mean(dim=[lead + k for k in (1, 3, 5, 7)])


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


@dataclass(frozen=True)
class Residual:
    """What comes in, added to what the layers make of it."""

    layers: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", _checked(self.layers, "Residual"))

    def __call__(self, before: Covariances) -> Covariances:
        return before + _through(self.layers, before)


IMAGE = Rule(
    lambda shape: isinstance(shape, tuple | list),
    lambda shape: len(shape) == 3 and all(is_integer(size) and size >= 1 for size in shape),
    "channels, height and width: three integers >= 1",
)


@dataclass(frozen=True, eq=False, repr=False)
class LayerKernel(Kernel):
    r"""The kernel of an infinitely wide network of these layers: tangent kernel, or covariance with `tangent` false.

    .. math:: S' = b + w\, \bar S, \quad T' = S' + w\, \bar T \quad \text{(Dense, Conv)}, \qquad
        S' = F(S), \quad T' = F'(S)\, T \quad \text{(Activation)},

    where the bar is the mean over the places that a filter sees. Rows are images of `shape` (channels, height, width),
    or rows as they are where `shape` is None. Covariances of all pairs of places are needed where the network pools,
    n m (H W)^2 numbers in tiles, else of the same places only. It is evaluated in float64, tile by tile.

    Parameters
    ----------
    layers : sequence of layers
        `Dense`, `Conv`, `Activation`, `AveragePool`, `Flatten`, `Residual`; the last one Dense.
    shape : tuple of int or None
        Channels, height and width of an image.
    tangent : bool
        Whether all weights train (NTK), or only the last layer (NNGP).

    References
    ----------
    Arora et al., *On exact computation with an infinitely wide neural net*, 2019; Novak et al., *Bayesian deep
    convolutional networks with many channels are Gaussian processes*, 2019.

    Examples
    --------
    >>> from mercer.kernels import NTK
    >>> net = LayerKernel([Dense(), Activation("relu"), Dense()])
    >>> X = torch.tensor([[1.0, 0.0], [0.0, 2.0]]).double()
    >>> bool(torch.allclose(net(X), NTK(depth=1, w_var=2.0, b_var=0.1)(X)))
    True
    >>> image = LayerKernel([Conv(3), Activation(), AveragePool(2), Flatten(), Dense()], shape=(1, 4, 4))
    >>> image(torch.ones(2, 16)).shape
    torch.Size([2, 2])
    """

    layers: Any
    shape: tuple[int, ...] | None = None
    tangent: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", _checked(self.layers, "LayerKernel"))
        FLAG.check("tangent", self.tangent, False)
        if not isinstance(self.layers[-1], Dense):
            raise InputError("LayerKernel: the last layer must be Dense(), which makes the output.")
        if self.shape is not None:
            IMAGE.check("shape", self.shape, True)
            object.__setattr__(self, "shape", tuple(self.shape))

    def of(self, pair: Pair) -> Any:
        return pair.matrix(self._gram, self._diag)

    @property
    def properties(self) -> Properties:
        return Properties(stationary=False)

    @property
    def _form(self) -> str:
        if self.shape is None:
            return FLAT
        return PAIRS if self._after_pooling else SAME

    @property
    def _own(self) -> str:
        """How each image is compared with itself: variances are what activations need."""
        bent = any(isinstance(layer, Activation) for layer in self._after_pooling)
        return self._form if bent or self.shape is None else SAME

    @property
    def _after_pooling(self) -> list[Any]:
        """The first pooling layer and those after it."""
        return list(dropwhile(lambda layer: not isinstance(layer, AveragePool), _all(self.layers)))

    def _gram(self, pair: DensePair) -> Tensor:
        x = self._images(pair.x)
        z = x if pair.z is None else self._images(pair.z)
        if x.shape[1:] != z.shape[1:]:
            raise InputError(f"X has {x.shape[1]} columns but Z has {z.shape[1]}; both need the same features.")
        side, like = self._side(x), vectors(pair.x)
        strips: list[list[Tensor]] = []
        for i, rows in enumerate(x.split(side)):
            before = [strip[i].T for strip in strips] if pair.z is None else []
            rest = z.split(side)[len(before) :]
            strips.append([*before, *(self._found(rows, others) for others in rest)])
        value = torch.cat([torch.cat(strip, 1) for strip in strips])
        return (0.5 * (value + value.T) if pair.z is None else value).to(like.dtype)

    def _diag(self, points: Points) -> Tensor:
        x = self._images(points)
        return torch.cat([self._found(row, row)[0] for row in x.split(1)]).to(vectors(points).dtype)

    def _found(self, x: Tensor, z: Tensor) -> Tensor:
        found = _through(self.layers, Covariances.of_images(x, z, self._form, self._own))
        return found.tangent if self.tangent else found.cross

    def _images(self, points: Points) -> Tensor:
        x = vectors(points).to(torch.float64)
        if self.shape is None:
            return x
        if x.shape[1] != math.prod(self.shape):
            raise InputError(f"shape={self.shape} is of {math.prod(self.shape)} numbers, but rows have {x.shape[1]}.")
        return x.reshape(len(x), *self.shape)

    def _side(self, x: Tensor) -> int:
        """Images of a tile."""
        places = 1 if self.shape is None else math.prod(self.shape[1:])
        each = places ** (2 if self._form == PAIRS else 1)
        most = resolve_budget(None, x.device) // (8 * COPIES * COPIES)
        return max(1, math.isqrt((min(most, CACHED) if x.device.type == "cpu" else most) // each))


def _through(layers: Iterable[Layer], before: Covariances) -> Covariances:
    for layer in layers:
        before = layer(before)
    return before


def _all(layers: Iterable[Any]) -> Iterator[Any]:
    """The layers and those inside of them."""
    for layer in layers:
        yield layer
        yield from _all(getattr(layer, "layers", ()))


def _checked(layers: Any, owner: str) -> tuple[Any, ...]:
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
        raise InputError(f"{type(layer).__name__}: rows have no places here; give shape=, and put it before Flatten().")
