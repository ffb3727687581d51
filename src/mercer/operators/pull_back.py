"""The chain rule through a Gram matrix, tile by tile: from weights of its entries to points and parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.kernels.base import Kernel
from mercer.kernels.pair import DensePair
from mercer.operators.backends.tiles import slices
from mercer.operators.dials import LEAST_NUMBERS, TILE_NUMBERS, TILES_ALIVE

Weight = Callable[[slice, slice], Tensor]
"""A tile of the matrix W, in rows and columns."""


def pull_back(
    kernel: Kernel, x: Points, z: Points, weight: Weight, device: torch.device, budget: int | None = None
) -> tuple[Tensor | None, Tensor | None]:
    r"""The derivatives of

    .. math:: \sum_{ij} W_{ij}\, k(x_i, z_j)

    by x and by z, where these require gradients; those by parameters that are tensors are added to their ``grad``.

    With `z` the same object as `x` the weights must be symmetric, and only tiles on and below the diagonal are
    evaluated. Nothing of the size of W is stored.

    >>> from mercer.kernels import Gaussian
    >>> scale = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    >>> X = Points(torch.tensor([[0.0], [1.0]]).double())
    >>> kernel = Gaussian().replace(length_scale=scale)
    >>> pull_back(kernel, X, X, lambda i, j: torch.ones(2, 2)[i, j], torch.device("cpu"))
    (None, None)
    >>> scale.grad  # of 2 exp(-1 / (2 l^2))
    tensor(1.2131, dtype=torch.float64)
    """
    symmetric = z is x
    by_x, by_z = _zeros(x), None if symmetric else _zeros(z)
    places = torch.arange(len(x), device=device) if symmetric else None
    for rows, columns in _tiles(len(x), len(z), _cells(device, budget), symmetric):
        a, b = _leaf(x, rows), _leaf(z, columns)
        ids = None if places is None else (places[rows], places[columns])
        with torch.enable_grad():
            tile = kernel.on(DensePair(a, b, ids))
        if not tile.requires_grad:
            break
        part = weight(rows, columns)
        before = max(0, rows.start - columns.start) if symmetric else 0
        if before:
            part = part.clone()
            part[:, :before] *= 2.0  # stands for its mirror image too
        tile.backward(part.to(tile))
        for total, leaf, some in ((by_x, a, rows), (by_x if symmetric else by_z, b, columns)):
            if total is not None and leaf.values.grad is not None:
                total[some] += leaf.values.grad
    return by_x, by_z


def _tiles(n: int, m: int, cells: int, symmetric: bool) -> Iterator[tuple[slice, slice]]:
    width = min(m, max(2 * math.isqrt(cells), cells // max(1, n)))
    for rows in slices(0, n, max(1, cells // max(1, width))):
        for columns in slices(0, rows.stop if symmetric else m, width):
            yield rows, columns


def _cells(device: torch.device, budget: int | None) -> int:
    most = TILE_NUMBERS[device.type]
    return most if budget is None else max(LEAST_NUMBERS, min(most, budget // (8 * TILES_ALIVE)))


def _zeros(points: Points) -> Tensor | None:
    wanted = points.is_tensor and points.values.requires_grad
    return torch.zeros_like(points.values, requires_grad=False) if wanted else None


def _leaf(points: Points, some: slice) -> Points:
    """Some rows, which gather gradients of their own where the sample does."""
    part = points.take(some)
    if not part.is_tensor or not points.values.requires_grad:
        return part
    return Points(part.values.detach().requires_grad_(), part.names)
