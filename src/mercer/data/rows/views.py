"""Other views of a source of rows: some of its columns, some of its rows, or its features standardised."""

from __future__ import annotations

import copy
import hashlib
import importlib
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch

from mercer.core.errors import InputError
from mercer.data.rows.source import Chunk, Part, RowSource


class View(RowSource):
    """A source whose rows are made of those of another one, part by part."""

    def __init__(self, source: RowSource) -> None:
        self.source = source
        self.n_rows, self.n_features, self.n_targets = source.n_rows, source.n_features, source.n_targets
        self.one_target, self.names, self.dtype = source.one_target, source.names, source.dtype
        self.on_dask = source.on_dask

    def parts(self) -> list[Part]:
        return self.source.parts()

    def over(self, source: RowSource | None) -> Self:
        """The same view of a source with the same columns."""
        twin = object.__new__(type(self))
        twin.__dict__ = self.__dict__ | {"source": source}
        return twin

    def __copy__(self) -> Self:
        return self.over(copy.copy(self.source))

    def portion(self, parts: list[Part]) -> Any:
        """The view of what other processes can read these parts from, which may be a task of Dask."""
        inner = self.source.portion(parts)
        if isinstance(inner, RowSource):
            return self.over(inner)
        return importlib.import_module("dask").delayed(_Over(self.over(None)), pure=False, traverse=False)(inner)

    @property
    def is_held(self) -> bool:
        return self.source.is_held

    def load(self, part: Part) -> Chunk:
        return self.changed(self.source.read(part), part)

    def read(self, part: Part) -> Chunk:
        return self.load(part)  # checked before it was changed, while rows and columns had their own numbers

    def changed(self, chunk: Chunk, part: Part) -> Chunk:
        """What becomes of a chunk."""
        return chunk

    def place(self, part: Part) -> str:
        return self.source.place(part)

    def column_name(self, kind: str, index: int) -> str:
        return self.source.column_name(kind, index)

    @property
    def reading_bytes(self) -> int:
        return self.source.reading_bytes


class _Over:
    """A view that is put over rows on a worker; an object that Dask does not look into."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.__name__ = "rows"

    def __call__(self, source: RowSource) -> View:
        return self.view.over(source)


class ColumnRows(View):
    """Features, and where wanted target and weights, from columns of the X of another source.

    >>> from mercer.data.rows.arrays import ArrayRows
    >>> table = ArrayRows(np.arange(6.0).reshape(2, 3))
    >>> chunk = next(iter(ColumnRows(table, [0, 1], target=2)))
    >>> chunk.X, chunk.targets
    (tensor([[0., 1.],
            [3., 4.]], dtype=torch.float64), tensor([[2.],
            [5.]], dtype=torch.float64))
    """

    def __init__(
        self,
        source: RowSource,
        features: Sequence[int],
        target: int | None = None,
        weight: int | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(source)
        self.features, self.target, self.weight = list(features), target, weight
        outside = [j for j in (*features, target, weight) if j is not None and not 0 <= j < source.n_features]
        if outside:
            raise InputError(f"There is no column {outside[0]}: the rows have {source.n_features} columns.")
        self.n_features, self.names = len(self.features), None if names is None else tuple(names)
        if target is not None:
            self.n_targets, self.one_target = 1, True

    def changed(self, chunk: Chunk, part: Part) -> Chunk:
        X = chunk.X
        targets = chunk.targets if self.target is None else X[:, [self.target]].double()
        weights = chunk.weights if self.weight is None else X[:, self.weight].double()
        if weights is not None and bool((weights < 0).any()):
            row = int((weights < 0).nonzero()[0, 0])
            raise InputError(f"The weight is negative in row {part.start + row} of {self.place(part)}.")
        return Chunk(X[:, self.features], targets, weights)

    def identity(self) -> dict[str, Any]:
        own = {"features": self.features, "target": self.target, "weight": self.weight}
        return self.source.identity() | {"columns": own}


class SelectedRows(View):
    """The rows that are held out for testing, or the others; a hash of its number and the seed decides on each row.

    So the choice does not depend on how the source is cut, and needs no memory.

    >>> from mercer.data.rows.arrays import ArrayRows
    >>> source = ArrayRows(np.zeros((1000, 1)))
    >>> len(SelectedRows(source, 0.2, seed=0, held_out=True)), len(SelectedRows(source, 0.2, seed=0, held_out=False))
    (196, 804)
    """

    def __init__(self, source: RowSource, fraction: float, seed: int, *, held_out: bool) -> None:
        super().__init__(source)
        self.fraction, self.seed, self.held_out = fraction, seed, held_out
        self._inner, self._parts, self.n_rows = source.parts(), [], 0
        for i, part in enumerate(self._inner):
            count = int(self._chosen(part).sum())
            if count:
                self._parts.append(Part(i, 0, count, self.n_rows))
                self.n_rows += count

    def parts(self) -> list[Part]:
        return list(self._parts)

    def load(self, part: Part) -> Chunk:
        inner = self._inner[part.place]
        rows, chunk = self._chosen(inner), self.source.read(inner)
        X, targets, weights = (None if values is None else torch.from_numpy(values.numpy()[rows]) for values in chunk)
        assert X is not None
        return Chunk(X, targets, weights)

    def place(self, part: Part) -> str:
        return self.source.place(self._inner[part.place])

    def portion(self, parts: list[Part]) -> Any:
        """Itself: its parts are not those of the source."""
        return self

    def identity(self) -> dict[str, Any]:
        return self.source.identity() | {"held_out": [self.fraction, self.seed, self.held_out]}

    def _chosen(self, part: Part) -> np.ndarray:
        return np.asarray((row_hash(part.before, len(part), self.seed) < self.fraction) == self.held_out)


class ScaledRows(View):
    """Features less their centre, divided by their scale, and targets less their mean; features without names."""

    def __init__(self, source: RowSource, center: np.ndarray, scale: np.ndarray, target_mean: float = 0.0) -> None:
        super().__init__(source)
        self.center, self.scale, self.target_mean, self.names = center, scale, float(target_mean), None

    def changed(self, chunk: Chunk, part: Part) -> Chunk:
        scaled = (chunk.X.numpy() - self.center) / self.scale
        X = torch.from_numpy(scaled.astype(np.float32 if self.dtype == torch.float32 else np.float64, copy=False))
        return Chunk(X, None if chunk.targets is None else chunk.targets - self.target_mean, chunk.weights)

    def identity(self) -> dict[str, Any]:
        numbers = np.concatenate([self.center, self.scale, [self.target_mean]])
        return self.source.identity() | {"scaled": hashlib.sha256(numbers.tobytes()).hexdigest()}


def row_hash(first: int, count: int, seed: int) -> np.ndarray:
    """A number in [0, 1) for each of the rows from `first` on, as good as random (splitmix64 of row and seed).

    >>> row_hash(0, 3, seed=0).round(3), row_hash(2, 1, seed=0).round(3)
    (array([0.883, 0.432, 0.026]), array([0.026]))
    """
    with np.errstate(over="ignore"):
        z = np.arange(first + 1, first + count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64((seed * 0xD1342543DE82EF95) % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53
