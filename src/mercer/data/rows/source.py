"""`RowSource`: rows that are read in parts, from memory, from files or from elsewhere."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import IMPUTE, IMPUTE_ROWS, REPLACE
from mercer.core.errors import InputError
from mercer.core.rules import whole
from mercer.data.dials import NUMBERS_AT_ONCE, ROWS_AT_ONCE
from mercer.data.rows.stream import read_ahead


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
    n_rows, n_features : int
        Of the whole table.
    n_targets : int
        Columns of the targets, 0 when there are none.
    one_target : bool
        Whether targets are a plain column rather than a matrix.
    names : tuple[str, ...] or None
        Names of the features, or None.
    dtype : torch.dtype
        Torch.float32 or torch.float64, of the features.
    on_dask : bool
        Whether the rows are those of a Dask collection.
    labels : np.ndarray or None
        The sorted labels of which targets are the places, where the target is text.
    """

    n_rows: int
    n_features: int
    n_targets: int
    one_target: bool = True
    names: tuple[str, ...] | None = None
    dtype: torch.dtype
    on_dask: bool = False
    labels: np.ndarray | None = None

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
        """Plain data that tell this source from another, so that a checkpoint is not continued with other rows.

        They should change with every number: a digest of the rows does, their shape and some of them do not.
        """

    @property
    def reading_bytes(self) -> int:
        """Memory that reading takes: the part that is worked on, the next one, and what is made on the way to both."""
        row = self.n_features * self.dtype.itemsize + 8 * (self.n_targets + 1)
        return 5 * row * max(map(len, self.parts()), default=0)

    def portion(self, parts: list[Part]) -> Any:
        """A source that other processes can read these parts from: itself, unless the rows are in memory here."""
        return self

    @property
    def is_held(self) -> bool:
        """Whether this is a portion that holds the rows of some parts and no others."""
        return False

    def targets_of(self, part: Part) -> Chunk:
        """Targets and weights of a part, checked; X may have no columns where that takes less reading."""
        return self.read(part)

    def read(self, part: Part) -> Chunk:
        """The rows of a part, checked."""
        return self.checked(self.load(part), part)

    def checked(self, chunk: Chunk, part: Part) -> Chunk:
        """A chunk of finite numbers and weights that are not negative, or an error that says where."""
        named = {"X": chunk.X, "y": chunk.targets, "sample_weight": chunk.weights}
        for name, values in named.items():
            if values is not None and not _has_finite_sum(values):
                self._refuse_what_is_not_finite(name, values, part)
        if chunk.weights is not None and bool((chunk.weights < 0).any()):
            row = int((chunk.weights < 0).nonzero()[0, 0])
            raise InputError(f"sample_weight is negative in row {part.start + row} of {self.place(part)}.")
        return chunk

    def column_name(self, kind: str, index: int) -> str:
        """What a column of "X", "y" or "sample_weight" is called in a message."""
        if kind == "X":
            return repr(index if self.names is None else self.names[index])
        return "" if self.n_targets < 2 or kind != "y" else repr(index)

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
        column = self.column_name(name, index[1] if len(index) > 1 else 0)
        column = f", column {column}" if column else ""
        raise InputError(
            f"{name} contains {kind}: row {part.start + index[0]}{column} of {self.place(part)}; "
            + (REPLACE if kind == "infinity" else IMPUTE_ROWS if name == "X" else IMPUTE)
        )


def _has_finite_sum(values: Tensor) -> bool:
    """Summed by numpy: torch would start a second team of threads for the thread that reads ahead."""
    if values.device.type != "cpu":
        return bool(torch.isfinite(values.sum()))
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.numpy().sum()))


def rows_at_once_for(n_columns: int, given: int | None = None) -> int:
    """How many rows to read at a time.

    >>> rows_at_once_for(9), rows_at_once_for(1000), rows_at_once_for(9, 500)
    (65536, 8388, 500)
    """
    if given is None:
        return max(1, min(ROWS_AT_ONCE, NUMBERS_AT_ONCE // max(1, n_columns)))
    whole(1).check("rows_at_once", given, True)
    return int(given)


def digest_of(chunks: Iterable[Chunk]) -> str:
    """A digest of every number in some chunks: other rows, or the same ones cut in another way, have another one.

    >>> digest_of([Chunk(torch.ones(2, 1), None, None)]) == digest_of([Chunk(torch.ones(1, 1), None, None)] * 2)
    False
    """
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(f"{len(chunk.X)} rows".encode())
        for values in chunk:
            if values is not None:
                digest.update(values.cpu().numpy().ravel().data)
    return digest.hexdigest()


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

    >>> from mercer.data.rows.arrays import ArrayRows
    >>> rows = torch.arange(6.0).reshape(6, 1)
    >>> sample_rows(ArrayRows(rows, rows_at_once=2), 10, torch.Generator()).X.shape
    torch.Size([6, 1])
    """
    chosen = drawn(source.n_rows, count, generator)
    return picked(source, source.parts(), chosen)


def picked(source: RowSource, parts: Sequence[Part], chosen: Tensor) -> Chunk:
    """Those of the `chosen` rows, numbers in order, that lie in some parts; at least one must."""
    wanted = {}
    for part in parts:
        first, last = torch.searchsorted(chosen, torch.tensor([part.before, part.before + len(part)])).tolist()
        if first < last:
            wanted[part] = chosen[first:last] - part.before
    found = [
        [None if values is None else values[wanted[part]] for values in chunk]
        for part, chunk in read_ahead(source.read, wanted)
    ]
    columns = zip(*found, strict=True)
    return Chunk(*(None if values[0] is None else torch.cat(values) for values in columns))  # type: ignore[arg-type]


def drawn(n: int, count: int, generator: torch.Generator) -> Tensor:
    """`count` of the numbers below n, each set equally likely, in order; a large n takes no memory.

    >>> drawn(10**15, 3, torch.Generator().manual_seed(0)).shape, drawn(2, 3, torch.Generator())
    (torch.Size([3]), tensor([0, 1]))
    """
    if count >= n:
        return torch.arange(n)
    if count > n // 4 or n <= 2**20:
        return torch.randperm(n, generator=generator)[:count].sort().values
    numbers = torch.empty(0, dtype=torch.int64)
    while len(numbers) < count:
        more = torch.randint(n, (2 * count,), generator=generator)
        numbers = torch.from_numpy(_first_ones(torch.cat([numbers, more]).numpy()))
    return numbers[:count].sort().values


def _first_ones(values: np.ndarray) -> np.ndarray:
    """The different values, in the order in which each comes first."""
    places = np.unique(values, return_index=True)[1]
    return values[np.sort(places)]
