"""The engine that works in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mercer.core.errors import InputError
from mercer.data.engines.engine import Arrays, Merge, Work, bunches, folded
from mercer.data.rows.source import Part, RowSource


class SerialEngine:
    """Group after group in this process: the groups, the order of the sums and the result are those of a cluster.

    Good to see in a debugger what a worker would do: ``KernelRidge(client=SerialEngine()).fit(source)``.

    >>> import torch
    >>> from mercer.data.engines.engine import added
    >>> from mercer.data.rows import ArrayRows
    >>> source = ArrayRows(torch.ones(5, 2), rows_at_once=1)
    >>> def column_sums(rows, parts):
    ...     return {"sums": sum(rows.read(part).X.sum(0) for part in parts)}
    >>> engine = SerialEngine()
    >>> engine.reduce(added, engine.map_groups(column_sums, source, [source.parts()[:3], source.parts()[3:]]))
    {'sums': tensor([5., 5.])}
    """

    def __init__(self, group_rows: int | None = None) -> None:
        self.group_rows = group_rows

    def broadcast(self, value: Any) -> Any:
        return value

    def map_groups(self, work: Work, source: RowSource, groups: Sequence[list[Part]], *shared: Any) -> list[Any]:
        return [partial(work, source, group, *shared) for group in groups]

    def reduce(
        self,
        merge: Merge,
        results: Sequence[Any],
        start: Arrays | None = None,
        after: Callable[[int, Arrays], None] | None = None,
    ) -> Arrays:
        total, done = start, 0
        for bunch in bunches(results):
            value = folded(merge, (result() for result in bunch))
            total = value if total is None else merge(total, value)
            done += len(bunch)
            if after is not None:
                after(done, total)
        if total is None:
            raise InputError("There are no rows.")
        return total

    def close(self) -> None:
        pass

    def __repr__(self) -> str:
        return "this process"
