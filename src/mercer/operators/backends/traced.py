"""Tiles of a kernel whose formula is known: the program runs in place on cache-sized buffers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.formula.plans import Instruction, Plan, plans
from mercer.formula.simplify import Builder
from mercer.formula.spelling import InBaseTwo, InVectors
from mercer.formula.symbols import Program
from mercer.operators.backends.costs import costs
from mercer.operators.backends.statistics import operand_of_all, tile_inputs
from mercer.operators.backends.steps import Places, Steps
from mercer.operators.backends.tiles import Layout, Rows, Strip, Tiles
from mercer.operators.dials import BESSEL_BYTES


class TracedTiles(Tiles):
    """Evaluates a `Program` tile by tile; the operands of the columns are kept between products when they fit."""

    def __init__(self, program: Program, x: Points, z: Points, dtype: torch.dtype, device: torch.device) -> None:
        super().__init__((len(x.values), len(z.values)), dtype, device, one_sample=z is x)
        self.program, self.x, self.z = program, x, z
        found = plans(program, one_sample=self.one_sample, spelling=spelling(device))
        self.on_diagonal, self.off_diagonal = found.on_diagonal, found.off_diagonal
        self.inputs = tile_inputs(program, self.on_diagonal, x, z, dtype)
        self.kept: list[Tensor] | None = None
        self.needs_wide = any(source.dtype != dtype for source in self.inputs)
        self.packs = any(source.quick for source in self.inputs)
        self.given = self._given(self.on_diagonal) & self._given(self.off_diagonal)
        self.row_bytes = sum(source.width * source.dtype.itemsize for source in self.inputs)
        self.n_buffers = max(self.on_diagonal.n_buffers, self.off_diagonal.n_buffers)
        self.buffer_bytes = self.n_buffers * dtype.itemsize + 8 * self.needs_wide
        self.cell_bytes = self._cell_bytes()
        self.on_threads = device.type == "cpu"
        self.notes = tuple(dict.fromkeys(source.note for source in self.inputs if source.note)) or ("values of rows",)

    def transposed(self) -> TracedTiles:
        if self.one_sample:
            return self
        return TracedTiles(self.program, self.z, self.x, self.dtype, self.device)

    def keep(self, keep: bool) -> None:
        if not keep:
            self.kept = None
        elif self.kept is None:
            self.kept = [operand_of_all(source.right, self.z) for source in self.inputs]

    def strips(self, layout: Layout) -> Callable[[Rows], Strip]:
        buffers = self._buffers(layout.rows * layout.columns)

        @cache
        def steps(n_rows: int, n_columns: int, on_diagonal: bool) -> Steps:
            plan = self.on_diagonal if on_diagonal else self.off_diagonal
            cells = n_rows * n_columns
            tiles = [buffer[:cells].view(n_rows, n_columns) if len(buffer) else buffer for buffer in buffers]
            return Steps(self.program, plan, self.inputs, tiles, tiles[-1] if self.needs_wide else None)

        def made(start: int, stop: int) -> list[Tensor]:
            return [source.right(self.z, slice(start, stop)).T for source in self.inputs]

        @cache
        def kept(start: int, stop: int) -> list[Tensor]:
            return [operand[start:stop].T for operand in self.kept or ()]

        right = kept if layout.keep else made
        left_of = self._left_operands(layout.ahead)

        def strip_of(rows: Rows) -> Strip:
            left = left_of(rows)
            n_rows = len(rows) if isinstance(rows, Tensor) else rows.stop - rows.start

            def strip(columns: slice) -> Tensor:
                same = coincidences(rows, columns, self.device) if self.one_sample else None
                run = steps(n_rows, columns.stop - columns.start, same is not None)
                return run(left, right(columns.start, columns.stop), same)

            return strip

        return strip_of

    def _left_operands(self, ahead: int) -> Callable[[Rows], list[Tensor]]:
        """Operands of some rows; for consecutive strips those of `ahead` rows are made at once."""
        start, stop = 0, 0
        operands: list[Tensor] = []

        def left_of(rows: Rows) -> list[Tensor]:
            nonlocal start, stop, operands
            if isinstance(rows, Tensor):
                return [source.left(self.x, rows) for source in self.inputs]
            if not start <= rows.start < rows.stop <= stop:
                start, stop = rows.start, min(rows.start + max(ahead, rows.stop - rows.start), self.shape[0])
                operands = [source.left(self.x, slice(start, stop)) for source in self.inputs]
            return [operand[rows.start - start : rows.stop - start] for operand in operands]

        return left_of

    def _buffers(self, cells: int) -> list[Tensor]:
        dtypes = [self.dtype] * self.n_buffers + [torch.float64] * self.needs_wide
        return [
            torch.empty(cells * (i not in self.given), dtype=dtype, device=self.device)
            for i, dtype in enumerate(dtypes)
        ]

    def _given(self, plan: Plan) -> set[int]:
        """The buffers that inputs bring with them before anything else is written there."""
        first: dict[int | None, Instruction] = {}
        for step in plan.instructions:
            first.setdefault(step.buffer, step)
        return {
            i
            for i, step in first.items()
            if i is not None and step.op == "input" and self.inputs[int(step.value or 0)].quick
        }

    def _cell_bytes(self) -> int:
        bessel = any(step.op == "matern" for step in self.on_diagonal.instructions)
        temporary = max([source.temporary_bytes for source in self.inputs] + [BESSEL_BYTES * bessel])
        return self.buffer_bytes + temporary + self.packs * self.dtype.itemsize


def spelling(device: torch.device) -> type[Builder]:
    """How formulas are written down for a device."""
    if device.type != "cpu":
        return Builder
    return InBaseTwo if costs().powers_of_two else InVectors


def coincidences(rows: Rows, columns: slice, device: torch.device) -> Places | None:
    """Where a row and a column of a tile are the same row of the sample, None when they never are."""
    if isinstance(rows, slice):
        first, stop = max(rows.start, columns.start), min(rows.stop, columns.stop)
        if first >= stop:
            return None
        both = torch.arange(first, stop, device=device)
        return both - rows.start, both - columns.start
    places = ((rows >= columns.start) & (rows < columns.stop)).nonzero()[:, 0]
    return (places, rows[places] - columns.start) if len(places) else None
