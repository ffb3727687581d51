"""A sample of rows, drawn where the rows are."""

from __future__ import annotations

import torch
from torch import Tensor

from mercer.data.dials import SAMPLED_AT_ONCE
from mercer.data.engines.engine import Arrays, Engine, grouped
from mercer.data.rows.source import Chunk, Part, RowSource, drawn, picked, sample_rows


def most_rows(source: RowSource) -> int:
    """Rows of a group that a worker can hold."""
    return max(1, SAMPLED_AT_ONCE // source.n_features)


def sample_with(engine: Engine | None, source: RowSource, count: int, generator: torch.Generator) -> Chunk:
    """The rows that `sample_rows` draws; with an engine only they come here.

    >>> from mercer.data.engines.serial import SerialEngine
    >>> from mercer.data.rows.arrays import ArrayRows
    >>> source = ArrayRows(torch.arange(6.0).reshape(6, 1), rows_at_once=2)
    >>> sample_with(SerialEngine(), source, 10, torch.Generator()).X.shape
    torch.Size([6, 1])
    """
    if engine is None:
        return sample_rows(source, count, generator)
    chosen = drawn(source.n_rows, count, generator)
    groups = grouped(_parts_with(source.parts(), chosen), engine.group_rows or most_rows(source))
    found = engine.reduce(_joined, engine.map_groups(_pick, source, groups, engine.broadcast(chosen)))
    return Chunk(found["X"], found.get("targets"), found.get("weights"))


def _parts_with(parts: list[Part], chosen: Tensor) -> list[Part]:
    starts = torch.tensor([part.before for part in parts])
    ends = starts + torch.tensor([len(part) for part in parts])
    some = torch.searchsorted(chosen, starts) < torch.searchsorted(chosen, ends)
    return [part for part, has in zip(parts, some.tolist(), strict=True) if has]


def _pick(rows: RowSource, parts: list[Part], chosen: Tensor) -> Arrays:
    chunk = picked(rows, parts, chosen)
    return {name: values for name, values in chunk._asdict().items() if values is not None}


def _joined(a: Arrays, b: Arrays) -> Arrays:
    return {name: torch.cat([values, b[name]]) for name, values in a.items()}
