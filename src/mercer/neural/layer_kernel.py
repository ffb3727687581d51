"""The kernels of infinitely wide networks that are put together from layers, on images given as rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.core.memory import require, resolve_budget
from mercer.core.rules import FLAG, Rule, is_integer
from mercer.core.threads import side_by_side
from mercer.kernels.base import Kernel
from mercer.kernels.pair import DensePair, Pair, vectors
from mercer.kernels.properties import Properties
from mercer.kernels.registry import register
from mercer.neural.covariances import End, Known, Sheets, cross_sheets, own_sheets
from mercer.neural.dials import CACHED, COPIES, WIDE
from mercer.neural.layers import Dense, checked_layers
from mercer.neural.passes import output, stages, variances

P = TypeVar("P")
R = TypeVar("R")

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
    (H W)^2 for each pair of images, else of the same places only. It is evaluated in float64.

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

    def _gram(self, pair: DensePair) -> Tensor:
        x = self._images(pair.x)
        z = x if pair.z is None else self._images(pair.z)
        if x.shape[-1] != z.shape[-1]:
            raise InputError(f"X has {x.shape[-1]} columns but Z has {z.shape[-1]}; both need the same features.")
        left = self._ends(x)
        right = left if pair.z is None else self._ends(z)
        n, m = x.shape[2], z.shape[2]
        count = self._pairs(x.device)
        wide = min(m, max(math.isqrt(count), min(WIDE, count)))
        tiles = [
            (rows, slice(start, start + wide))
            for rows in _slices(n, max(1, count // wide))
            for start in range(rows.start if pair.z is None else 0, m, wide)
        ]

        def found(tile: tuple[slice, slice]) -> Tensor:
            rows, columns = tile
            sheets = cross_sheets(x[:, :, rows], z[:, :, columns], self.shape is None)
            ends = zip(_some(left, rows, 3), _some(right, columns, 2), strict=True)
            return self._output(sheets, ends)

        value = x.new_zeros(n, m)
        for (rows, columns), part in zip(tiles, _each(found, tiles, x, z), strict=True):
            value[rows, columns] = part
        return (value.triu() + value.triu(1).T if pair.z is None else value).to(vectors(pair.x).dtype)

    def _diag(self, points: Points) -> Tensor:
        x = self._images(points)

        def found(rows: slice) -> Tensor:
            some = x[:, :, rows]
            ends = [(each, each) for each in self._ends(some)]
            return self._output(own_sheets(some, self.shape is None), ends)

        return torch.cat(_each(found, _slices(x.shape[2], self._pairs(x.device)), x)).to(vectors(points).dtype)

    def _ends(self, x: Tensor) -> list[list[End]]:
        """The variances of images for each activation of each stage."""

        def found(rows: slice) -> list[list[End]]:
            return variances(self.layers, own_sheets(x[:, :, rows], self.shape is None))

        parts = _each(found, _slices(x.shape[2], self._pairs(x.device)), x)
        return [
            [tuple(torch.cat(part, 2) for part in zip(*ends, strict=True)) for ends in zip(*stage, strict=True)]
            for stage in zip(*parts, strict=True)
        ]

    def _output(self, sheets: Sheets, ends: Iterable[tuple[list[End], list[End]]]) -> Tensor:
        found = output(self.layers, sheets, [partial(Known, *each) for each in ends])
        return found.parts[1 if self.tangent else 0][0, 0]

    def _images(self, points: Points) -> Tensor:
        """(H, W, n, channels); rows are images of one place."""
        x = vectors(points).to(torch.float64)
        if self.shape is None:
            return x[None, None]
        if x.shape[1] != math.prod(self.shape):
            raise InputError(f"shape={self.shape} is of {math.prod(self.shape)} numbers, but rows have {x.shape[1]}.")
        return x.reshape(len(x), *self.shape).permute(2, 3, 0, 1).contiguous()

    def _pairs(self, device: torch.device) -> int:
        """Pairs of images at a time."""
        places = 1 if self.shape is None else math.prod(self.shape[1:])
        pooled, each = places, places
        for _, pool in stages(self.layers):
            if pool is not None:
                pooled //= pool.size**2
                each = max(each, pooled**2)
        budget = resolve_budget(None, device)
        require(
            8 * COPIES * each, budget, "covariances of two images at all pairs of their places", "Use smaller images."
        )
        most = budget // (8 * COPIES * COPIES * each)
        return max(1, min(most, CACHED // places) if device.type == "cpu" else most)


def _some(ends: list[list[End]], images: slice, dim: int) -> list[list[End]]:
    """Those of some images, along a dimension of pairs."""
    return [[tuple(part[:, :, images].unsqueeze(dim) for part in end) for end in stage] for stage in ends]


def _slices(count: int, size: int) -> list[slice]:
    return [slice(start, start + size) for start in range(0, count, size)]


def _each(work: Callable[[P], R], parts: Sequence[P], *images: Tensor) -> list[R]:
    """What becomes of each part; threads know nothing of gradients."""
    if torch.is_grad_enabled() and any(x.requires_grad for x in images):
        return [work(part) for part in parts]
    return side_by_side(parts, lambda: work, torch.get_num_threads() if images[0].device.type == "cpu" else 1)
