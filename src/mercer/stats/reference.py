"""The rows that new ones are compared with: numbers, or a table with categories, text, dates and gaps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError, ModelFileError
from mercer.data.table import Column, Table
from mercer.estimators.tabular.encoder import TableEncoder
from mercer.files import kinds
from mercer.stats.mixed import KINDS, as_numbers, is_mixed, together
from mercer.stats.samples import column_labels, sample_points

COLUMN = kinds.Table({"name": kinds.TEXT, "kind": kinds.one_of(*KINDS.values()), "gaps": kinds.Several(kinds.whole()),
                      "texts": kinds.optional(kinds.Several(kinds.optional(kinds.TEXT)))})  # fmt: skip
STORED = {"numbers": torch.float64, "booleans": torch.bool, "dates": torch.int64}


@dataclass(frozen=True, eq=False)
class Numbers:
    """A reference of numbers."""

    points: Points

    @property
    def rows(self) -> Points:
        """What a two-sample test takes."""
        return self.points

    def looked_at(self) -> Numbers:
        """The rows as they are."""
        return self

    @property
    def names(self) -> tuple[str, ...] | None:
        return self.points.names

    @property
    def n_columns(self) -> int:
        return self.points.values.shape[1]

    def __len__(self) -> int:
        return len(self.points)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns as numbers."""
        return column_labels(self.names, self.n_columns)

    def take(self, rows: np.ndarray) -> Numbers:
        return Numbers(self.points.take(torch.from_numpy(rows)))

    def new(self, X: Any) -> Numbers:
        """New rows with the same columns."""
        if is_mixed(X):
            table = Table.of(X)
            name = next(n for n in table.names if is_mixed(table.only([n])))
            raise InputError(f"Column {name!r} of X holds text or dates but the reference holds numbers only.")
        found = Numbers(_numbers(X))
        if found.n_columns != self.n_columns:
            raise InputError(f"X has {found.n_columns} columns but the reference has {self.n_columns}.")
        if found.names and self.names and found.names != self.names:
            raise InputError(f"The columns of X are {list(found.names)} but those of the reference {list(self.names)}.")
        return found

    def encoded(self, new: Numbers) -> Points:
        """New rows as numbers."""
        return new.points

    def to_state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return {"columns": None if self.names is None else list(self.names), "table": None}, {"X": self.points.values}


@dataclass(frozen=True, eq=False)
class Mixed:
    """A reference with categories, text, dates or gaps. Tests encode it together with the new rows."""

    table: Table
    encoder: TableEncoder

    @classmethod
    def of(cls, table: Table) -> Mixed:
        return cls(table, TableEncoder.looking_at(table))

    @property
    def rows(self) -> Table:
        """What a two-sample test takes."""
        return self.table

    def looked_at(self) -> Mixed:
        """The same rows, whose columns are treated as these rows alone ask for."""
        return Mixed.of(self.table)

    @property
    def points(self) -> Points:
        """The rows as numbers."""
        return as_numbers(self.encoder, self.table)

    @property
    def names(self) -> tuple[str, ...]:
        return self.table.names

    @property
    def n_columns(self) -> int:
        return len(self.table.names)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns as numbers."""
        return self.encoder.columns

    def take(self, rows: np.ndarray) -> Mixed:
        return Mixed(self.table.take(rows), self.encoder)

    def new(self, X: Any) -> Mixed:
        """New rows with the same columns of the same kinds."""
        if not hasattr(X, "columns"):
            raise InputError(
                f"X is not a data frame, but the reference was one, with the columns {', '.join(self.names)}."
            )
        table = Table.of(X)
        if not len(table):
            raise InputError("X has no rows.")
        whole = together([self.table, table], ("the reference", "X"))
        return Mixed(whole.take(slice(len(self.table), None)), self.encoder)

    def encoded(self, new: Mixed) -> Points:
        """New rows as numbers; levels and gaps that the reference has not are at the centre of their column."""
        return as_numbers(self.encoder, new.table)

    def to_state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        entries, arrays = [], {}
        for j, (name, column) in enumerate(self.table.columns.items()):
            kind = KINDS[column.dtype.kind]
            gaps = np.flatnonzero(np.isnan(column)).tolist() if kind == "numbers" else []
            texts = column.tolist() if kind == "text" else None
            entries.append({"name": name, "kind": kind, "texts": texts, "gaps": gaps})
            if kind != "text":
                arrays[f"column_{j}"] = torch.from_numpy(_stored(column))
        return {"columns": list(self.names), "table": entries}, arrays


def reference(X: Any) -> Numbers | Mixed:
    """Rows of either kind."""
    return Mixed.of(Table.of(X)) if is_mixed(X) else Numbers(_numbers(X).owned())


def from_state(meta: Mapping[str, Any], arrays: dict[str, Tensor]) -> Numbers | Mixed:
    """What `to_state` wrote, its arrays taken out."""
    names, entries = meta["columns"], meta["table"]
    if entries is None:
        X = arrays.pop("X", None)
        if X is None or X.ndim != 2 or len(X) < 2 or X.shape[1] == 0 or not X.is_floating_point():
            raise ModelFileError("its reference X is missing or no matrix of numbers")
        if names is not None and len(names) != X.shape[1]:
            raise ModelFileError(f"it has {len(names)} names for {X.shape[1]} columns")
        return Numbers(Points(X, None if names is None else tuple(names)))
    columns = {entry["name"]: _column(entry, arrays.pop(f"column_{j}", None)) for j, entry in enumerate(entries)}
    lengths = {len(column) for column in columns.values()}
    if len(lengths) != 1 or lengths == {1} or list(columns) != names:
        raise ModelFileError("the columns of its table differ in length or have other names")
    try:
        return Mixed.of(Table(columns, lengths.pop()))
    except InputError as error:
        raise ModelFileError(f"its table cannot be used: {error}") from None


def _column(entry: dict[str, Any], values: Tensor | None) -> Column:
    kind = entry["kind"]
    if kind == "text":
        if entry["texts"] is None or values is not None:
            raise ModelFileError(f"column {entry['name']!r:.60} has no texts")
        return np.array([*entry["texts"], None], dtype=object)[:-1]
    if values is None or values.ndim != 1 or values.dtype != STORED[kind]:
        raise ModelFileError(f"column {entry['name']!r:.60} has no {kind}")
    found = values.numpy().copy()
    if max(entry["gaps"], default=-1) >= len(found):
        raise ModelFileError(f"column {entry['name']!r:.60} has gaps beyond its rows")
    if entry["gaps"]:
        found[entry["gaps"]] = np.nan if kind == "numbers" else 0
    return found.view("datetime64[us]") if kind == "dates" else found


def _stored(column: Column) -> np.ndarray:
    """Numbers without NaN, and dates as microseconds."""
    values = column.view(np.int64) if column.dtype.kind == "M" else column
    return np.where(np.isnan(column), 0.0, column) if column.dtype.kind == "f" else np.ascontiguousarray(values)


def _numbers(X: Any) -> Points:
    points = sample_points(X, "X")
    if not points.is_tensor:
        raise InputError("DriftDetector needs a table, not a list of objects.")
    return points
