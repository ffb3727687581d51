"""The kernels of infinitely wide networks that are put together from layers, on images given as rows."""

from __future__ import annotations

import math
from itertools import dropwhile
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.core.memory import require, resolve_budget
from mercer.core.rules import FLAG, Rule, is_integer
from mercer.kernels.base import Kernel
from mercer.kernels.pair import DensePair, Pair, vectors
from mercer.kernels.properties import Properties
from mercer.kernels.registry import register
from mercer.neural.covariances import FLAT, PAIRS, SAME, Covariances
from mercer.neural.dials import CACHED, COPIES
from mercer.neural.layers import Activation, AveragePool, Dense, all_layers, checked_layers, through

IMAGE = Rule(
    lambda shape: isinstance(shape, tuple | list),
    lambda shape: len(shape) == 3 and all(is_integer(size) and size >= 1 for size in shape),
    "channels, height and width: three integers >= 1",
)


@register
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
    >>> from mercer.neural import Activation, AveragePool, Conv, Dense, Flatten
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
        object.__setattr__(self, "layers", checked_layers(self.layers, "LayerKernel"))
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
        return list(dropwhile(lambda layer: not isinstance(layer, AveragePool), all_layers(self.layers)))

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
        found = through(self.layers, Covariances.of_images(x, z, self._form, self._own))
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
        budget = resolve_budget(None, x.device)
        require(
            8 * COPIES * each, budget, "covariances of two images at all pairs of their places", "Use smaller images."
        )
        most = budget // (8 * COPIES * COPIES)
        return max(1, math.isqrt((min(most, CACHED) if x.device.type == "cpu" else most) // each))
