"""Products with a Gram matrix that is never stored: tile after tile is evaluated, used and overwritten."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from mercer.core.memory import readable, require
from mercer.operators.backends.precision import full_precision

Rows = slice | Tensor
Strip = Callable[[slice], Tensor]
"""Gives the tile of some fixed rows and the columns asked for; the next call may overwrite it."""

CELLS = {"cpu": 2**20, "cuda": 2**24}
"""Cells of a tile: what the caches of a CPU hold, and what keeps a GPU busy."""
LEAST_CELLS = 2**12
FOLDING_BYTES = 8 * 2**20
"""What preparing the operands of a whole sample takes besides them."""


@dataclass(frozen=True)
class Layout:
    """How a product is cut: tiles of rows x columns, operands kept or made again for each tile, mirrored or not."""

    rows: int
    columns: int
    keep: bool
    mirror: bool


class Tiles(ABC):
    """A Gram matrix K(x, z) given tile by tile; `z is x` for one sample, whose matrix is symmetric."""

    notes: tuple[str, ...] = ()
    cell_bytes: int
    """Working memory for each cell of a tile."""
    row_bytes: int = 0
    """Memory of the operands of one row, or of one column."""

    def __init__(self, shape: tuple[int, int], dtype: torch.dtype, device: torch.device, *, one_sample: bool) -> None:
        self.shape, self.dtype, self.device, self.one_sample = shape, dtype, device, one_sample

    @abstractmethod
    def strips(self, layout: Layout) -> Callable[[Rows], Strip]:
        """A function from rows to their `Strip`, with buffers for tiles of that layout."""

    @abstractmethod
    def transposed(self) -> Tiles:
        """The tiles of K(z, x)."""

    def product(self, V: Tensor, budget: int) -> Tensor:
        """K @ V for V of shape (m,) or (m, t)."""
        layout = self._layout(V[:1].numel(), budget)
        with torch.no_grad(), full_precision(self.device):
            return self._mirrored_product(V, layout) if layout.mirror else self._plain_product(V, layout)

    def write_rows(self, index: Tensor, out: Tensor, budget: int) -> None:
        """Write the rows of K at `index` to `out`."""
        layout = self._layout(0, budget)
        with torch.no_grad(), full_precision(self.device):
            strip_of = self.strips(layout)
            for part in slices(0, len(index), layout.rows):
                strip = strip_of(index[part])
                for columns in slices(0, self.shape[1], layout.columns):
                    out[part, columns] = strip(columns)

    def write_dense(self, out: Tensor, budget: int) -> None:
        """Write K to `out`; for one sample the part below the diagonal mirrors the part above it."""
        n, m = self.shape
        layout = self._layout(0, budget)
        with torch.no_grad(), full_precision(self.device):
            strip_of = self.strips(layout)
            for rows in slices(0, n, layout.rows):
                strip = strip_of(rows)
                for columns in slices(rows.start if self.one_sample else 0, m, layout.columns):
                    tile = out[rows, columns] = strip(columns)
                    if self.one_sample:
                        out[columns, rows] = tile.T
                if self.one_sample:
                    square = out[rows, rows]
                    square.copy_(square.triu() + square.triu(1).T)

    def _plain_product(self, V: Tensor, layout: Layout) -> Tensor:
        n, m = self.shape
        out = V.new_empty(n, *V.shape[1:])
        strip_of = self.strips(layout)
        for rows in slices(0, n, layout.rows):
            strip = strip_of(rows)
            total = torch.zeros_like(out[rows], dtype=torch.float64)
            for columns in slices(0, m, layout.columns):
                total += strip(columns) @ V[columns]
            out[rows] = total
        return out

    def _mirrored_product(self, V: Tensor, layout: Layout) -> Tensor:
        """Each tile right of the diagonal is used twice, as itself and as its mirror image below."""
        total = torch.zeros_like(V, dtype=torch.float64)
        strip_of = self.strips(layout)
        for rows in slices(0, len(V), layout.rows):
            strip = strip_of(rows)
            for columns in slices(rows.start, len(V), layout.columns):
                tile = strip(columns)
                total[rows] += tile @ V[columns]
                below = slice(max(rows.stop, columns.start), columns.stop)
                total[below] += tile[:, below.start - columns.start :].T @ V[rows]
        return total.to(self.dtype)

    def _layout(self, t: int, budget: int) -> Layout:
        """The fastest layout whose product with t columns stays within the budget."""
        for layout in self._layouts():
            if self._bytes(layout, t) <= budget:
                return layout
        n, m = self.shape
        needed = self._bytes(layout, t)
        fixed = self._bytes(layout, 0)
        fitting = int((budget - fixed) / max(1.0, (needed - fixed) / max(1, t)))
        advice = f"Give it a memory_budget of at least {readable(needed)}"
        advice += f", or multiply at most {fitting:,} columns at a time." if 1 <= fitting < t else "."
        columns = f" with {t:,} column{'s' * (t > 1)}" if t else ""
        require(needed, budget, f"a product of the {n:,} x {m:,} Gram matrix{columns}", advice)
        raise AssertionError("unreachable")

    def _layouts(self) -> Iterator[Layout]:
        """Layouts from the fastest to the smallest."""
        n, m = self.shape
        cells = CELLS.get(self.device.type, CELLS["cpu"])
        while cells >= LEAST_CELLS:
            columns = max(1, min(m, max(2 * math.isqrt(cells), cells // max(1, n))))
            rows = max(1, min(n, cells // columns))
            for keep in (True, False):
                if self.one_sample and rows < n:
                    yield Layout(rows, columns, keep, mirror=True)
                yield Layout(rows, columns, keep, mirror=False)
            cells //= 2

    def _bytes(self, layout: Layout, t: int) -> int:
        """Memory a product with t columns allocates at its peak."""
        n, m = self.shape
        item = self.dtype.itemsize
        sums = n * t * (item + 8) if layout.mirror else n * t * item + layout.rows * t * 8
        partial = (layout.rows + layout.columns) * t * item
        if layout.keep:
            operands = (n + m) * self.row_bytes + FOLDING_BYTES
        else:
            operands = 3 * (layout.rows + layout.columns) * self.row_bytes
        return sums + partial + operands + layout.rows * layout.columns * self.cell_bytes


def slices(start: int, stop: int, step: int) -> Iterator[slice]:
    """Consecutive slices of at most `step` that cover start to stop.

    >>> list(slices(0, 5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return (slice(i, min(i + step, stop)) for i in range(start, stop, step))
