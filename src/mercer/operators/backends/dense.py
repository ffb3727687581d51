"""Tiles of kernels without a program: each tile is the kernel called on some rows and columns, or part of a matrix."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.kernels.base import Kernel
from mercer.kernels.pair import DensePair
from mercer.operators.backends.tiles import Layout, Rows, Strip, Tiles


class DenseTiles(Tiles):
    """Calls the kernel on the rows and columns of each tile."""

    def __init__(
        self, kernel: Kernel, x: Points, z: Points, dtype: torch.dtype, device: torch.device, reason: str
    ) -> None:
        super().__init__((len(x), len(z)), dtype, device, one_sample=z is x)
        self.kernel, self.x, self.z, self.reason = kernel, x, z, reason
        self.cell_bytes = 8 * torch.float64.itemsize
        self.notes = (f"dense tiles: {reason}",)

    def transposed(self) -> DenseTiles:
        if self.one_sample:
            return self
        return DenseTiles(self.kernel, self.z, self.x, self.dtype, self.device, self.reason)

    def strips(self, layout: Layout) -> Callable[[Rows], Strip]:
        places = torch.arange(len(self.x), device=self.device)

        def strip_of(rows: Rows) -> Strip:
            x = self.x.take(rows)

            def strip(columns: slice) -> Tensor:
                ids = (places[rows], places[columns]) if self.one_sample else None
                tile = self.kernel.on(DensePair(x, self.z.take(columns), ids))
                return tile.to(device=self.device, dtype=self.dtype)

            return strip

        return strip_of


class HeldMatrix(Tiles):
    """A Gram matrix that exists already."""

    def __init__(self, matrix: Tensor, *, one_sample: bool) -> None:
        super().__init__((matrix.shape[0], matrix.shape[1]), matrix.dtype, matrix.device, one_sample=one_sample)
        self.matrix = matrix
        self.cell_bytes = matrix.dtype.itemsize
        self.notes = ("the matrix is held in memory",)

    def transposed(self) -> HeldMatrix:
        return self if self.one_sample else HeldMatrix(self.matrix.T, one_sample=False)

    def strips(self, layout: Layout) -> Callable[[Rows], Strip]:
        return lambda rows: lambda columns: self.matrix[rows, columns]

    def product(self, V: Tensor, budget: int) -> Tensor:
        return self.matrix @ V
