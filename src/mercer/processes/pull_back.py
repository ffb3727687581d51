"""The chain rule through a kernel, tile by tile: from the derivative in a Gram matrix to that in the parameters."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.kernels import Kernel
from mercer.kernels.pair import DensePair

TILE_NUMBERS = {"cpu": 2**17, "cuda": 2**25}
"""Cells of the tiles in which gradients are taken: on a CPU what its caches hold."""

Weight = Callable[[slice, slice], Tensor]
"""A tile of the symmetric matrix W, in rows and columns."""


def pull_back(kernel: Kernel, X: Points, weight: Weight, device: torch.device) -> None:
    """Add the derivative of sum(W * k(X, X)) to the gradients of the kernel's parameters that are tensors.

    Only tiles on and below the diagonal are evaluated. The tile that `weight` gives may be overwritten.

    >>> from mercer.kernels import Gaussian
    >>> scale = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    >>> X = Points(torch.tensor([[0.0], [1.0]]).double())
    >>> pull_back(Gaussian().replace(length_scale=scale), X, lambda i, j: torch.ones(2, 2)[i, j], torch.device("cpu"))
    >>> scale.grad  # of 2 exp(-1 / (2 l^2))
    tensor(1.2131, dtype=torch.float64)
    """
    n = len(X)
    places = torch.arange(n, device=device)
    start = 0
    while start < n:
        stop = min(n, start + max(16, TILE_NUMBERS[device.type] // n))
        rows, columns = slice(start, stop), slice(0, stop)
        tile = kernel.on(DensePair(X.take(rows), X.take(columns), (places[rows], places[columns])))
        if not tile.requires_grad:
            return
        part = weight(rows, columns).clone()
        part[:, :start] *= 2.0  # stands for its mirror image too
        tile.backward(part.to(tile))
        start = stop
