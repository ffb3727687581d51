"""Products with a Gram matrix that is never stored: tile after tile is evaluated, used and overwritten."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor

from mercer.core.blocks import new_matrix
from mercer.core.memory import readable, require
from mercer.operators.backends.precision import full_precision

Rows = slice | Tensor
Strip = Callable[[slice], Tensor]
"""Gives the tile of some fixed rows and the columns asked for; the next call may overwrite it."""

TILE_BYTES = 2**22
"""Size of a tile on a CPU: small enough for the caches, large enough that torch's threads are worth their meeting."""
GPU_BYTES = 2**27
LEAST_BYTES = 2**14
LEFT_STRIPS = 16
"""Strips of rows whose operands are made together."""
TRIANGLE_BLOCKS, LEAST_WIDTH = 4, 48
"""Into how many blocks of columns a triangular factor is cut, and how wide they are at least: fewer keep no core busy.
Widths are multiples of 24, the columns that a CPU's product takes at a time."""
FOLDING_BYTES = 2**21
"""What preparing the operands of all columns takes besides them."""


@dataclass(frozen=True)
class Layout:
    """How a product is cut: into tiles of rows x columns.

    `keep` holds the operands of all columns, else they are made again for each tile; `mirror` uses each tile of a
    symmetric matrix twice.
    """

    rows: int
    columns: int
    keep: bool
    mirror: bool = False


class Tiles(ABC):
    """A Gram matrix K(x, z) given tile by tile; `one_sample` when z is x and the matrix is symmetric."""

    notes: tuple[str, ...] = ()
    cell_bytes: int
    """Working memory for each cell of a tile."""
    row_bytes = 0
    """Memory of the operands of one row, or of one column."""

    def __init__(self, shape: tuple[int, int], dtype: torch.dtype, device: torch.device, *, one_sample: bool) -> None:
        self.shape, self.dtype, self.device, self.one_sample = shape, dtype, device, one_sample

    @abstractmethod
    def strips(self, layout: Layout) -> Callable[[Rows], Strip]:
        """A function from rows to their `Strip`, with buffers of its own."""

    @abstractmethod
    def transposed(self) -> Tiles:
        """The tiles of K(z, x)."""

    def keep(self, keep: bool) -> None:  # noqa: B027 - by default there is nothing to hold
        """Hold the operands of all columns from now on, or do not."""

    def product(self, V: Tensor, budget: int) -> Tensor:
        """K @ V for V of shape (m,) or (m, t)."""
        layout = self._layout(V[:1].numel(), budget)
        return self._mirrored_product(V, layout) if layout.mirror else self._plain_product(V, layout)

    def quadratic(self, U: Tensor, V: Tensor, budget: int) -> Tensor:
        """u_b^T K v_b in float64 for the columns of U (n, B) and V (m, B), strip by strip."""
        layout = self._layout(V.shape[1], budget)
        total = torch.zeros(V.shape[1], dtype=torch.float64, device=self.device)
        twice = self.one_sample and U is V
        with self._evaluating(layout) as strip_of:
            for rows in slices(0, self.shape[0], layout.rows):
                strip = strip_of(rows)
                for columns in slices(rows.start if twice else 0, self.shape[1], layout.columns):
                    tile = strip(columns)
                    if twice:  # what lies right of the square on the diagonal stands for its mirror image too
                        tile[:, max(0, rows.stop - columns.start) :] *= 2.0
                    total += (U[rows].double() * (tile @ V[columns])).sum(0)
        return total

    def gradients(self, V: Tensor, W: Tensor) -> tuple[Tensor, Tensor] | None:
        """Derivatives of sum(W * (K V)) by x and by z, where the back end has a way of its own."""
        return None

    def rows_product(self, index: Tensor, V: Tensor, budget: int) -> Tensor:
        """The product of the rows of K at `index` with V of shape (m,) or (m, t)."""
        layout = self._layout(V[:1].numel(), budget)
        out = V.new_empty(len(index), *V.shape[1:])
        with self._evaluating(layout) as strip_of:
            for part in slices(0, len(index), layout.rows):
                strip = strip_of(index[part])
                total = torch.zeros_like(out[part], dtype=torch.float64)
                for columns in slices(0, self.shape[1], layout.columns):
                    total += strip(columns) @ V[columns]
                out[part] = total
        return out

    def write_rows(self, index: Tensor, out: Tensor, budget: int) -> None:
        """Write the rows of K at `index` to `out`; few rows are cut into few, wide tiles."""
        layout = self._layout(0, budget)
        if layout.keep and 0 < len(index) < layout.rows:
            wide = layout.rows * layout.columns // len(index)
            layout = replace(layout, rows=len(index), columns=min(self.shape[1], wide))
        with self._evaluating(layout) as strip_of:
            for part in slices(0, len(index), layout.rows):
                strip = strip_of(index[part])
                for columns in slices(0, self.shape[1], layout.columns):
                    out[part, columns] = strip(columns)

    def write_dense(self, out: Tensor, budget: int) -> None:
        """Write K to `out`; for one sample the part below the diagonal mirrors the part above it."""
        layout = self._layout(0, budget)
        with self._evaluating(layout) as strip_of:
            for rows in slices(0, self.shape[0], layout.rows):
                strip = strip_of(rows)
                for columns in slices(rows.start if self.one_sample else 0, self.shape[1], layout.columns):
                    tile = out[rows, columns] = strip(columns)
                    if self.one_sample:
                        out[columns, rows] = tile.T
                if self.one_sample:
                    square = out[rows, rows]
                    square.copy_(square.triu() + square.triu(1).T)

    def _plain_product(self, V: Tensor, layout: Layout) -> Tensor:
        n = self.shape[0]
        out = new_matrix(n, V.shape[1], V.dtype, V.device) if V.ndim == 2 else V.new_empty(n)
        blocks = lower_blocks(V)
        with self._evaluating(layout) as strip_of:
            for rows in slices(0, self.shape[0], layout.rows):
                strip = strip_of(rows)
                if layout.columns == self.shape[1]:
                    tile = strip(slice(0, layout.columns))
                    for inner, outer in blocks:
                        torch.matmul(tile[:, inner], V[inner][..., outer], out=out[rows][..., outer])
                    continue
                total = torch.zeros_like(out[rows], dtype=torch.float64)
                for columns in slices(0, self.shape[1], layout.columns):
                    total += strip(columns) @ V[columns]
                out[rows] = total
        return out

    def _mirrored_product(self, V: Tensor, layout: Layout) -> Tensor:
        """Each tile right of the diagonal is used twice, as itself and as its mirror image below."""
        total = torch.zeros_like(V, dtype=torch.float64)
        with self._evaluating(layout) as strip_of:
            for rows in slices(0, len(V), layout.rows):
                strip = strip_of(rows)
                for columns in slices(rows.start, len(V), layout.columns):
                    tile = strip(columns)
                    total[rows] += tile @ V[columns]
                    below = slice(max(rows.stop, columns.start), columns.stop)
                    total[below] += tile[:, below.start - columns.start :].T @ V[rows]
        return total.to(self.dtype)

    @contextmanager
    def _evaluating(self, layout: Layout) -> Iterator[Callable[[Rows], Strip]]:
        with torch.no_grad(), full_precision(self.device):
            self.keep(layout.keep)
            yield self.strips(layout)

    def _layout(self, t: int, budget: int) -> Layout:
        """The fastest layout whose product with t columns stays within the budget."""
        for layout in self._layouts():
            if self._bytes(layout, t) <= budget:
                return layout
        n, m = self.shape
        needed, fixed = self._bytes(layout, t), self._bytes(layout, 0)
        fitting = int((budget - fixed) / max(1.0, (needed - fixed) / max(1, t)))
        advice = f"Give it a memory_budget of at least {readable(needed)}"
        advice += f", or multiply at most {fitting:,} columns at a time." if 1 <= fitting < t else "."
        columns = f" with {t:,} column{'s' * (t > 1)}" if t else ""
        require(needed, budget, f"a product of the {n:,} x {m:,} Gram matrix{columns}", advice)
        raise AssertionError("unreachable")

    def _layouts(self) -> Iterator[Layout]:
        """Layouts from the fastest to the smallest."""
        size = TILE_BYTES if self.device.type == "cpu" else GPU_BYTES
        while size >= LEAST_BYTES:
            for keep in (True, False):
                layout = self._cut(size // self.dtype.itemsize, keep)
                if self.one_sample and layout.rows < self.shape[0] and self.device.type == "cpu":
                    yield replace(layout, mirror=True)
                yield layout
            size //= 2

    def _cut(self, cells: int, keep: bool) -> Layout:
        """Tiles of so many cells, wider than high: few rows at a time need few operands made."""
        n, m = max(1, self.shape[0]), max(1, self.shape[1])
        columns = min(m, max(2 * math.isqrt(cells), cells // n))
        return Layout(min(max(1, cells // columns), n), columns, keep)

    def _bytes(self, layout: Layout, t: int) -> int:
        """Memory a product with t columns allocates at its peak."""
        n, m = self.shape
        item = self.dtype.itemsize
        sums = n * t * (item + 8) if layout.mirror else n * t * item
        tile = layout.rows * layout.columns * self.cell_bytes
        vectors = (layout.rows * (8 + item) + layout.columns * item) * t
        block = min(n, LEFT_STRIPS * layout.rows)
        made = block if layout.keep else block + layout.columns
        kept = m * self.row_bytes + FOLDING_BYTES if layout.keep else 0
        return sums + kept + tile + vectors + 4 * made * self.row_bytes


def lower_blocks(V: Tensor) -> list[tuple[slice, slice]]:
    """Blocks, as rows and columns, that hold all of V; of a lower triangular V the zeros above them are left out.

    >>> lower_blocks(torch.ones(100, 100).tril())
    [(slice(0, None, None), slice(0, 48, None)), (slice(48, None, None), slice(48, 100, None))]
    >>> lower_blocks(torch.ones(100, 100))
    [(slice(None, None, None), slice(None, None, None))]
    """
    if V.ndim == 2 and V.device.type == "cpu":
        n_columns = V.shape[1]
        count = max(1, min(TRIANGLE_BLOCKS, n_columns // LEAST_WIDTH))
        starts = [i * (n_columns // count // 24 * 24) for i in range(count)]
        blocks = [(slice(a, None), slice(a, b)) for a, b in pairwise([*starts, n_columns])]
        if not any(bool(V[: inner.start, outer].any()) for inner, outer in blocks):
            return blocks
    return [(slice(None), slice(None))]


def slices(start: int, stop: int, step: int) -> Iterator[slice]:
    """Consecutive slices of at most `step` that cover start to stop.

    >>> list(slices(0, 5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return (slice(i, min(i + step, stop)) for i in range(start, stop, step))
