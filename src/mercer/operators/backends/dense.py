"""Tiles of kernels without a program: each tile is the kernel called on some rows and columns, or part of a matrix."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

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

            def part(columns: slice) -> Tensor:
                ids = (places[rows], places[columns]) if self.one_sample else None
                return self.kernel.on(DensePair(x, self.z.take(columns), ids)).to(device=self.device, dtype=self.dtype)

            def strip(columns: slice) -> Tensor:
                if not self.one_sample or isinstance(rows, Tensor):
                    return part(columns)
                return torch.cat([part(piece) for piece in around(rows, columns)], 1)

            return strip

        return strip_of


def around(rows: slice, columns: slice) -> list[slice]:
    """Columns cut at the ends of `rows`: on the square of a sample with itself a kernel can check its symmetry.

    >>> around(slice(2, 4), slice(0, 9))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 9, None)]
    """
    inner = {min(max(end, columns.start), columns.stop) for end in (rows.start, rows.stop)}
    cuts = sorted(inner | {columns.start, columns.stop})
    return [slice(a, b) for a, b in pairwise(cuts)]


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
