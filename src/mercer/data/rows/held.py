"""Rows that were read and are held in memory: what is sent to another process when it cannot read them itself."""

from __future__ import annotations

from typing import Any

from mercer.data.rows.source import Chunk, Part, RowSource


class HeldRows(RowSource):
    """Some parts of a source with their rows.

    >>> import torch
    >>> from mercer.data.rows.arrays import ArrayRows
    >>> source = ArrayRows(torch.arange(6.0).reshape(3, 2), rows_at_once=1)
    >>> HeldRows.of(source, source.parts()[1:2]).load(source.parts()[1]).X
    tensor([[2., 3.]])
    """

    def __init__(self, like: RowSource, parts: list[Part], chunks: list[Chunk]) -> None:
        self.n_rows, self.n_features, self.n_targets = like.n_rows, like.n_features, like.n_targets
        self.one_target, self.names, self.dtype = like.one_target, like.names, like.dtype
        self.labels = like.labels
        self._parts, self._chunks = parts, dict(zip(parts, chunks, strict=True))
        self._places = {part.place: like.place(part) for part in parts}

    @classmethod
    def of(cls, source: RowSource, parts: list[Part]) -> HeldRows:
        """These parts of a source, read now."""
        return cls(source, parts, [source.load(part) for part in parts])

    def parts(self) -> list[Part]:
        return self._parts

    @property
    def is_held(self) -> bool:
        return True

    def load(self, part: Part) -> Chunk:
        return self._chunks[part]

    def place(self, part: Part) -> str:
        return self._places[part.place]

    def identity(self) -> dict[str, Any]:
        return {"parts": len(self._parts)}
