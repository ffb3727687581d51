"""Blocks of rows that an engine works on, here or on other machines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from mercer.core.devices import choose_device
from mercer.core.memory import keep_buffers
from mercer.core.progress import Progress
from mercer.data.engines import Arrays, Engine, added, grouped, most_rows, sample_with
from mercer.data.rows import Part, RowSource
from mercer.functions.basis import Basis
from mercer.operators.placement import Placement
from mercer.solvers.basis_blocks import StreamedBlocks
from mercer.solvers.dials import KERNEL_VALUE, SECONDS, SPEED
from mercer.solvers.row_blocks import Block

WEIGHT = "weight of the blocks"

Tell = Callable[[int, Arrays], None]
"""Told how many parts are done, and their sum."""


class SpreadBlocks:
    """The values of a basis at the rows of a source; an engine works on them, group of parts by group of parts.

    Has the two methods that solvers know: `total` and `sample`. `total_weight` is known after the first pass. How rows
    are grouped depends on the rows and on what they cost, not on the workers, and neither do the sums.
    """

    def __init__(
        self,
        basis: Basis,
        source: RowSource,
        place: Placement,
        engine: Engine,
        *,
        device: Any = "auto",
        normal_equations: bool = True,
        verbose: bool = False,
    ) -> None:
        self.basis, self.source, self.place, self.engine, self.verbose = basis, source, place, engine, verbose
        self.parts, self.total_weight, self.passes = source.parts(), 0.0, 0
        self._tools = engine.broadcast((basis, place, device))
        self.group_rows = engine.group_rows or self._rows_of_a_task(device, normal_equations)

    def total(self, work: Callable[..., Arrays], *shared: Any) -> Arrays:
        """The sum of ``work(blocks, *shared)`` over groups of blocks."""
        return self.total_after(0, None, None, work, *shared)

    def total_after(
        self, done: int, start: Arrays | None, tell: Tell | None, work: Callable[..., Arrays], *shared: Any
    ) -> Arrays:
        """The same over the parts after the first so many, added to their sum `start`."""
        engine, groups = self.engine, grouped(self.parts[done:], self.group_rows)
        ends = [done]
        for group in groups:
            ends.append(ends[-1] + len(group))
        self.passes += 1
        before = self._rows_before(done)
        with Progress(self.source.n_rows, f"pass {self.passes}", done=before, shown=self.verbose) as progress:

            def after(count: int, total: Arrays) -> None:
                progress.advance(self._rows_before(ends[count]) - progress.done)
                if tell is not None:
                    tell(ends[count], total)

            if not groups and start is not None:
                found = start
            else:
                sent = [engine.broadcast(value) for value in shared]
                results = engine.map_groups(partial(_group_total, work), self.source, groups, self._tools, *sent)
                found = engine.reduce(added, results, start, after)
        if WEIGHT in found:  # not in sums that go on from others
            self.total_weight = float(found[WEIGHT])
        return {name: value.to(self.place.device) for name, value in found.items() if name != WEIGHT}

    def sample(self, count: int, generator: torch.Generator) -> Block:
        """`count` rows drawn without replacement, as one block; what a preconditioner can be built from."""
        chunk = sample_with(self.engine, self.source, count, generator)
        return StreamedBlocks(self.basis, self.source, self.place).block(chunk)

    def _rows_before(self, part: int) -> int:
        return self.parts[part].before if part < len(self.parts) else self.source.n_rows

    def _rows_of_a_task(self, device: Any, normal_equations: bool) -> int:
        """Rows that take a core, or a GPU where the workers have one, some seconds."""
        asked = self.engine.map_groups(_where, self.source, [self.parts[:1]], self.engine.broadcast(device))
        kind = "cuda" if float(self.engine.reduce(added, asked)["cuda"]) else "cpu"
        m, d, t = self.basis.size, self.source.n_features, self.source.n_targets
        value = 2 * d + KERNEL_VALUE
        operations = m * (value + 2 * m) if normal_equations else 2 * m * (value + 2 * t)
        return int(min(max(1.0, SECONDS * SPEED[kind] / operations), most_rows(self.source)))


def _group_total(
    work: Callable[..., Arrays],
    rows: RowSource,
    parts: list[Part],
    tools: tuple[Basis, Placement, Any],
    *shared: Any,
) -> Arrays:
    """What a worker does, on the device that it has; results travel in the memory of the machine."""
    keep_buffers()
    basis, place, device = tools
    place = replace(place, device=choose_device(device))
    blocks = StreamedBlocks(basis, rows, place, parts=parts)
    here = [value.to(place.device) if isinstance(value, Tensor) else value for value in shared]
    found = work(blocks, *here)
    found[WEIGHT] = torch.tensor(blocks.total_weight, dtype=torch.float64)
    return {name: value.cpu() for name, value in found.items()}


def _where(rows: RowSource, parts: list[Part], device: Any) -> Arrays:
    return {"cuda": torch.tensor(float(choose_device(device).type == "cuda"))}
