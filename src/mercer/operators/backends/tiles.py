"""Products with a Gram matrix that is never stored: tile after tile is evaluated, used and overwritten."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor

from mercer.core.blas import one_blas_thread
from mercer.core.blocks import new_matrix
from mercer.core.memory import readable, require
from mercer.core.threads import side_by_side
from mercer.operators.backends import costs
from mercer.operators.backends.cuts import even_width, lower_blocks, rounded, shrinking, slices
from mercer.operators.backends.precision import full_precision
from mercer.operators.backends.products import product, quick, quick_product
from mercer.operators.backends.sums import empty_by_columns, few_columns, ways
from mercer.operators.dials import (
    FOLDING_BYTES,
    GPU_BYTES,
    LEAST_BYTES,
    LEAST_PARTS,
    LEFT_STRIPS,
    MIRRORED,
    MOST_MIRRORED,
    SQUARES,
    STEP,
    THREADED_CELLS,
    TILES_AT_ONCE,
)

P = TypeVar("P")
R = TypeVar("R")
Rows = slice | Tensor
Strip = Callable[[slice], Tensor]
"""Gives the tile of some fixed rows and the columns asked for; the next call may overwrite it."""

TILE_BYTES: int | None = None
"""Size of a tile on a CPU; None for what suits the processor."""


@dataclass(frozen=True)
class Layout:
    """How a product is cut: into tiles of rows x columns, by so many threads.

    `keep` holds the operands of all columns, else they are made again for each tile; `mirror` uses each tile of a
    symmetric matrix twice. Operands are made for `ahead` rows at once.
    """

    rows: int
    columns: int
    keep: bool
    mirror: bool = False
    threads: int = 1
    ahead: int = 0


@dataclass(frozen=True)
class Square:
    """Some rows and columns of a symmetric matrix, on its diagonal or right of it, and their numbers as blocks."""

    i: int
    j: int
    rows: slice
    columns: slice


def mirror(square: Tensor) -> None:
    """Copy what is above the diagonal of a matrix to below it, some rows at a time.

    >>> K = torch.tensor([[1.0, 2.0], [0.0, 3.0]])
    >>> mirror(K)
    >>> K
    tensor([[1., 2.],
            [2., 3.]])
    """
    for some in slices(0, len(square), MIRRORED):
        own, right = square[some, some], square[some, some.stop :]
        own.copy_(own.triu() + own.triu(1).T)
        square[some.stop :, some] = right.T


class Tiles(ABC):
    """A Gram matrix K(x, z) given tile by tile; `one_sample` when z is x and the matrix is symmetric."""

    notes: tuple[str, ...] = ()
    cell_bytes: int
    """Working memory for each cell of a tile."""
    row_bytes = 0
    """Memory of the operands of one row, or of one column."""
    buffer_bytes = 0
    """Bytes of the buffers for each cell; 0 for those of one value."""
    packs = False
    """Whether a product copies the operands of a tile."""
    on_threads = False
    """Whether several threads may evaluate tiles."""

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
        twice = self.one_sample and U is V

        def tools() -> Callable[[slice], Tensor]:
            strip_of = self.strips(layout)

            def part(rows: slice) -> Tensor:
                strip = strip_of(rows)
                total = torch.zeros(V.shape[1], dtype=torch.float64, device=self.device)
                for columns in slices(rows.start if twice else 0, self.shape[1], layout.columns):
                    tile = strip(columns)
                    if twice:  # what lies right of the square on the diagonal stands for its mirror image too
                        tile[:, max(0, rows.stop - columns.start) :] *= 2.0
                    total += (U[rows].double() * (tile @ V[columns])).sum(0)
                return total

            return part

        parts = self._over(list(slices(0, self.shape[0], layout.rows)), tools, layout)
        zero = torch.zeros(V.shape[1], dtype=torch.float64, device=self.device)
        return torch.stack([zero, *parts]).sum(0)

    def gradients(self, V: Tensor, W: Tensor) -> tuple[Tensor, Tensor] | None:
        """Derivatives of sum(W * (K V)) by x and by z, where the back end has a way of its own."""
        return None

    def rows_product(self, index: Tensor, V: Tensor, budget: int) -> Tensor:
        """The product of the rows of K at `index` with V of shape (m,) or (m, t)."""
        layout = self._layout(V[:1].numel(), budget)
        out = V.new_empty(len(index), *V.shape[1:])

        def tools() -> Callable[[slice], None]:
            strip_of = self.strips(layout)

            def part(rows: slice) -> None:
                self._strip_product(strip_of(index[rows]), V, out[rows], layout)

            return part

        self._over(list(slices(0, len(index), layout.rows)), tools, layout)
        return out

    def write_rows(self, index: Tensor, out: Tensor, budget: int) -> None:
        """Write the rows of K at `index` to `out`; few rows are cut into few, wide tiles."""
        layout = self._layout(0, budget)
        if layout.keep and 0 < len(index) < layout.rows:
            wide = layout.rows * layout.columns // len(index)
            layout = replace(layout, rows=len(index), columns=min(self.shape[1], wide))

        def tools() -> Callable[[tuple[slice, slice]], None]:
            strip_of = self.strips(layout)

            def part(places: tuple[slice, slice]) -> None:
                rows, some = places
                strip = strip_of(index[rows])
                for columns in slices(some.start, some.stop, layout.columns):
                    out[rows, columns] = strip(columns)

            return part

        width = self.shape[1] if len(index) > layout.rows else layout.columns
        parts = [(a, b) for a in slices(0, len(index), layout.rows) for b in slices(0, self.shape[1], width)]
        self._over(parts, tools, layout)

    def write_dense(self, out: Tensor, budget: int) -> None:
        """Write K to `out`; for one sample the part below the diagonal mirrors the part above it."""
        layout = self._layout(0, budget)

        def tools() -> Callable[[Square], None]:
            strip_of = self.strips(layout)

            def part(square: Square) -> None:
                for rows in slices(square.rows.start, square.rows.stop, layout.rows):
                    strip = strip_of(rows)
                    first = max(rows.start, square.columns.start) if self.one_sample else square.columns.start
                    for columns in slices(first, square.columns.stop, layout.columns):
                        tile = out[rows, columns] = strip(columns)
                        right = slice(max(rows.stop, columns.start), columns.stop)
                        if self.one_sample and right.start < right.stop:
                            out[right, rows] = tile[:, right.start - columns.start :].T
                    if self.one_sample and square.i == square.j:
                        mirror(out[rows, rows])

            return part

        parts = self._squares(layout) if self.one_sample else self._strips_of_parts(layout)
        self._over(parts, tools, layout)

    def _plain_product(self, V: Tensor, layout: Layout) -> Tensor:
        n = self.shape[0]
        out = new_matrix(n, V.shape[1], V.dtype, V.device) if V.ndim == 2 else V.new_empty(n)
        whole = layout.columns == self.shape[1]
        at_once = whole and V.ndim == 2 and quick(V.dtype, V.device, len(V), n * V.shape[1])
        blocks = lower_blocks(V) if whole and not at_once else []

        def tools() -> Callable[[Square], None]:
            strip_of = self.strips(layout)

            def part(square: Square) -> None:
                for rows in slices(square.rows.start, square.rows.stop, layout.rows):
                    strip = strip_of(rows)
                    if at_once:
                        out[rows] = quick_product(strip(slice(0, layout.columns)), V)
                    elif len(blocks) > 1:
                        tile = strip(slice(0, layout.columns))
                        for inner, outer in blocks:
                            product(tile[:, inner], V[inner][..., outer], out[rows][..., outer])
                    else:
                        self._strip_product(strip, V, out[rows], layout)

            return part

        self._over(self._strips_of_parts(layout), tools, layout)
        return out

    def _strip_product(self, strip: Strip, V: Tensor, out: Tensor, layout: Layout) -> None:
        """The product of some rows, written to `out`."""
        parts = list(slices(0, self.shape[1], layout.columns))
        wide = torch.float64 if len(parts) > TILES_AT_ONCE else self.dtype
        ready = wide == self.dtype and not few_columns(V)
        total = out if ready else empty_by_columns(V, len(out), wide)[0]
        view, new_sum = ways(V, self.dtype)
        W, products = view(V), new_sum(view(total))
        for columns in parts:
            products.add(view(strip(columns)), W[columns])
        products.finish()
        if not ready:
            out.copy_(total)

    def _mirrored_product(self, V: Tensor, layout: Layout) -> Tensor:
        """Each tile right of the diagonal is used twice, as itself and as its mirror image below.

        A square adds to the sums of its rows and to those of its columns; each square has places of its own for both.
        """
        parts = self._squares(layout)
        sums = empty_by_columns(V, len(V), torch.float64, copies=1 + parts[-1].j)
        view, new_sum = ways(V, self.dtype)
        W, totals = view(V), view(sums)

        def tools() -> Callable[[Square], None]:
            strip_of = self.strips(layout)

            def part(square: Square) -> None:
                i, j = square.rows, square.columns
                apart = square.i != square.j
                if not apart:
                    totals[square.i][i] = 0.0
                strips = -(-(j.stop - j.start) // layout.columns) * TILES_AT_ONCE
                below = new_sum(totals[square.i][j], at_once=strips, empty=apart)
                for rows in slices(i.start, i.stop, layout.rows):
                    strip = strip_of(rows)
                    beside = new_sum(totals[square.j][rows], empty=apart)
                    for columns in slices(max(rows.start, j.start), j.stop, layout.columns):
                        tile = view(strip(columns))
                        beside.add(tile, W[columns])
                        start = max(rows.stop, columns.start)
                        if start < columns.stop:
                            place = slice(start - j.start, columns.stop - j.start)
                            below.add(tile[:, start - columns.start :].T, W[rows], place)
                        del tile  # its memory is that of the next
                    beside.finish()
                below.finish()

            return part

        self._over(parts, tools, layout)
        out = torch.empty_like(V)
        for rows in slices(0, len(V), self._edge(layout)):
            out[rows] = sums[:, rows].sum(0)
        return out

    def _squares(self, layout: Layout) -> list[Square]:
        """The squares on and right of the diagonal, a multiple of the rows of a tile wide, row by row."""
        edges = list(slices(0, self.shape[0], self._edge(layout)))
        count = range(len(edges))
        return [Square(i, j, edges[i], edges[j]) for i in count for j in count if i <= j]

    def _edge(self, layout: Layout) -> int:
        """The rows of a square."""
        return layout.ahead if layout.mirror else layout.rows * LEFT_STRIPS

    def _strips_of_parts(self, layout: Layout) -> list[Square]:
        """Parts that are some strips of rows each."""
        most, least = max(layout.rows, layout.ahead), -(-layout.rows // LEAST_PARTS)
        parts = shrinking(self.shape[0], most, least, layout.threads)
        return [Square(i, -1, rows, slice(0, self.shape[1])) for i, rows in enumerate(parts)]

    def _over(self, parts: Sequence[P], tools: Callable[[], Callable[[P], R]], layout: Layout) -> list[R]:
        blas = one_blas_thread() if self.on_cpu and costs.costs().vectors_by_openblas else nullcontext()
        with torch.no_grad(), full_precision(self.device), blas:
            self.keep(layout.keep)
            return side_by_side(parts, tools, layout.threads)

    def _layout(self, t: int, budget: int) -> Layout:
        """The fastest layout whose product with t columns stays within the budget."""
        for layout in self._layouts(t):
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

    def _layouts(self, t: int) -> Iterator[Layout]:
        """Layouts from the fastest to the smallest."""
        most = self._threads()
        for threads in dict.fromkeys((most, 1)):
            size = self._tile_bytes(threads, t)
            while size >= LEAST_BYTES:
                for keep in (True, False):
                    yield from self._cuts(size, keep, threads, t)
                size //= 2

    def _cuts(self, size: int, keep: bool, threads: int, t: int) -> Iterator[Layout]:
        n = self.shape[0]
        layout = replace(self._cut(self._cells(size), keep), threads=threads)
        if self.one_sample and layout.rows < n and self.on_cpu and t <= MOST_MIRRORED:
            edge = layout.rows * -(-n // (SQUARES * layout.rows))
            edge = rounded(-(-n // -(-n // edge)))
            yield replace(
                layout, mirror=True, ahead=edge, columns=even_width(edge, layout.columns, self.dtype.itemsize)
            )
        if threads > 1:
            layout = replace(layout, rows=min(layout.rows, max(1, -(-n // threads))))
        strips = -(-n // (layout.rows * threads * LEAST_PARTS))
        yield replace(layout, ahead=layout.rows * min(max(1, strips), LEFT_STRIPS))

    @property
    def on_cpu(self) -> bool:
        return self.device.type == "cpu"

    def _threads(self) -> int:
        """How many threads evaluate tiles, each with one core; with one, torch may use all cores in each operation."""
        many = self.on_threads and self.shape[0] * self.shape[1] >= THREADED_CELLS
        return torch.get_num_threads() if many else 1

    def _tile_bytes(self, threads: int, t: int) -> int:
        if not self.on_cpu:
            return GPU_BYTES
        return TILE_BYTES or costs.tile_bytes(threads, t)

    def _cells(self, size: int) -> int:
        """Cells of a tile; its buffers together take at most half as much again."""
        item = self.dtype.itemsize
        return min(size // item, 3 * size // (2 * max(item, self.buffer_bytes)))

    def _cut(self, cells: int, keep: bool) -> Layout:
        """Tiles of so many cells, wider than high: few rows at a time need few operands made."""
        n, m = max(1, self.shape[0]), max(1, self.shape[1])
        columns = min(m, max(2 * math.isqrt(cells), cells // n))
        if self.on_cpu:
            columns = even_width(m, max(math.isqrt(2 * cells), cells // n), self.dtype.itemsize)
        rows = max(1, cells // columns)
        return Layout(min(rows if rows < STEP else rows // STEP * STEP, n), columns, keep)

    def _bytes(self, layout: Layout, t: int) -> int:
        """Memory a product with t columns allocates at its peak."""
        n, m = self.shape
        item = self.dtype.itemsize
        sums = n * t * item
        if layout.mirror:
            sums += n * t * (8 * (2 + -(-n // layout.ahead)) + 2 * item)
        tile = layout.rows * layout.columns * self.cell_bytes
        vectors = (layout.rows * (8 + 2 * item) + layout.columns * item) * t
        if layout.mirror:
            vectors += layout.ahead * item * t
        block = min(n, max(layout.ahead, layout.rows))
        made = block if layout.keep and not self.packs else block + layout.columns
        kept = m * self.row_bytes + FOLDING_BYTES if layout.keep else 0
        return sums + kept + layout.threads * (tile + vectors + 4 * made * self.row_bytes)
