"""`RowSource`: rows that are read in parts, from memory, from files or from elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mercer.core.errors import InputError

ROWS_AT_ONCE = 65_536


@dataclass(frozen=True)
class Part:
    """Rows `start` to `stop` of the place with that number, a file or a row group; they follow `before` other rows.

    A part is plain data: it can be sent to another process, and read there or read again.
    """

    place: int
    start: int
    stop: int
    before: int

    def __len__(self) -> int:
        return self.stop - self.start


class Chunk(NamedTuple):
    """Rows that were read: X (b, d), float64 targets (b, t) and float64 weights (b,), None where there are none."""

    X: Tensor
    targets: Tensor | None
    weights: Tensor | None


class RowSource(ABC):
    """Rows of a table, with targets and weights, that need not fit in memory.

    Attributes
    ----------
    n_rows, n_features : of the whole table.
    n_targets : columns of the targets, 0 when there are none.
    one_target : whether targets are a plain column rather than a matrix.
    names : names of the features, or None.
    dtype : torch.float32 or torch.float64, of the features.
    """

    n_rows: int
    n_features: int
    n_targets: int
    one_target: bool = True
    names: tuple[str, ...] | None = None
    dtype: torch.dtype

    @abstractmethod
    def parts(self) -> list[Part]:
        """All rows, part by part, always in the same order."""

    @abstractmethod
    def load(self, part: Part) -> Chunk:
        """The rows of a part as they are."""

    @abstractmethod
    def place(self, part: Part) -> str:
        """Where a part is, in words, such as "row group 3 of prices.parquet"."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Plain data that tell this source from another, so that a checkpoint is not continued with other rows."""

    def read(self, part: Part) -> Chunk:
        """The rows of a part, checked."""
        chunk = self.load(part)
        named = {"X": chunk.X, "y": chunk.targets, "sample_weight": chunk.weights}
        for name, values in named.items():
            if values is not None and not bool(torch.isfinite(values.sum())):
                self._refuse_what_is_not_finite(name, values, part)
        if chunk.weights is not None and bool((chunk.weights < 0).any()):
            row = int((chunk.weights < 0).nonzero()[0, 0])
            raise InputError(f"sample_weight is negative in row {part.start + row} of {self.place(part)}.")
        return chunk

    def __iter__(self) -> Iterator[Chunk]:
        return (self.read(part) for part in self.parts())

    def __len__(self) -> int:
        return self.n_rows

    def _refuse_what_is_not_finite(self, name: str, values: Tensor, part: Part) -> None:
        bad = ~torch.isfinite(values)
        if not bool(bad.any()):
            return  # only the sum was too large
        index = bad.nonzero()[0].tolist()
        kind = "NaN" if bool(torch.isnan(values[tuple(index)])) else "infinity"
        column = ""
        if name == "X":
            column = f", column {index[1] if self.names is None else self.names[index[1]]!r}"
        raise InputError(
            f"{name} contains {kind}: row {part.start + index[0]}{column} of {self.place(part)}; "
            "remove or impute it first."
        )


def equal_parts(rows: list[int], at_once: int = ROWS_AT_ONCE) -> list[Part]:
    """Parts of at most `at_once` rows of places with so many rows each.

    >>> [(part.place, part.start, part.stop, part.before) for part in equal_parts([3, 2], at_once=2)]
    [(0, 0, 2, 0), (0, 2, 3, 2), (1, 0, 2, 3)]
    """
    parts, before = [], 0
    for place, count in enumerate(rows):
        for start in range(0, count, at_once):
            stop = min(start + at_once, count)
            parts.append(Part(place, start, stop, before + start))
        before += count
    return parts


def sample_rows(source: RowSource, count: int, generator: torch.Generator) -> Chunk:
    """`count` rows drawn without replacement, in order; how the source is cut into parts does not matter.

    >>> from mercer.core.rows.arrays import ArrayRows
    >>> rows = torch.arange(6.0).reshape(6, 1)
    >>> sample_rows(ArrayRows(rows, rows_at_once=2), 10, torch.Generator()).X.shape
    torch.Size([6, 1])
    """
    n = source.n_rows
    chosen = torch.arange(n) if count >= n else torch.randperm(n, generator=generator)[:count].sort().values
    found = []
    for part in source.parts():
        first, last = torch.searchsorted(chosen, torch.tensor([part.before, part.before + len(part)])).tolist()
        if first < last:
            rows = chosen[first:last] - part.before
            found.append([None if values is None else values[rows] for values in source.read(part)])
    columns = zip(*found, strict=True)
    return Chunk(*(None if values[0] is None else torch.cat(values) for values in columns))  # type: ignore[arg-type]
