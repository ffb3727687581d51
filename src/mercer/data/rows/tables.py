"""Rows of tables with columns of any kind, some at a time, and the rows of numbers that an encoder makes of them."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from mercer.core.errors import InputTypeError
from mercer.data.rows.dask import DaskRows, is_frame
from mercer.data.rows.held import HeldRows
from mercer.data.rows.parquet import ParquetRows, parquet_files
from mercer.data.rows.source import Chunk, Part, RowSource, drawn
from mercer.data.rows.views import SelectedRows, View
from mercer.data.table import Table


class ParquetTables(ParquetRows):
    """Rows of Parquet files with columns of any kind, for `mercer.tabular`; by default all but target and weight.

    Parameters are those of `ParquetRows`.
    """

    @classmethod
    def columns_of(cls, path: Any) -> tuple[list[str], dict[str, Any]]:
        """The names and the arrow types of the columns of Parquet files."""
        schema = importlib.import_module("pyarrow.parquet").read_schema(parquet_files(Path(path))[0])
        names = [name for name in schema.names if not name.startswith("__index_level_")]
        return names, {name: schema.field(name).type for name in names}

    def table_of(self, part: Part) -> Table:
        """The columns of a part as they are."""
        return Table.of(self.table(part, self.features))

    def load(self, part: Part) -> Chunk:
        raise InputTypeError(
            f"{self.files[0]} is read as a table with columns of any kind: use mercer.tabular(...), or ParquetRows for "
            "its columns of numbers."
        )

    def _numbers(self, schema: Any) -> tuple[str, ...]:
        others = {*self.targets, self.weight}
        names = [f.name for f in schema if f.name not in others and not f.name.startswith("__index_level_")]
        return tuple(dict.fromkeys(names))

    def _check_column(self, schema: Any, name: str, file: Any, *, text: bool) -> None:
        if name in self.features and name in schema.names:
            return
        super()._check_column(schema, name, file, text=text)


class DaskTables(RowSource):
    """Rows of a Dask data frame with columns of any kind, partition by partition; y and weights as in `DaskRows`."""

    on_dask = True
    dtype = torch.float64

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None) -> None:
        if not is_frame(X):
            raise InputTypeError(f"X is a {type(X).__name__}; expected a Dask data frame.")
        named = [name for name in (y, sample_weight) if isinstance(name, str)]
        ones = X.map_partitions(_ones, meta=_ones(X._meta))
        self.beside = DaskRows(ones, *(X[v] if isinstance(v, str) else v for v in (y, sample_weight)))
        self.X = X.drop(columns=named) if named else X
        names = tuple(map(str, self.X.columns))
        self.n_rows, self.n_features, self.names = self.beside.n_rows, len(names), names
        self.n_targets, self.one_target = self.beside.n_targets, self.beside.one_target
        self.labels = self.beside.labels

    def parts(self) -> list[Part]:
        return self.beside.parts()

    def targets_of(self, part: Part) -> Chunk:
        return self.beside.read(part)

    def table_of(self, part: Part) -> Table:
        """The columns of a part as they are."""
        return Table.of(self.X.partitions[part.place].compute())

    def load(self, part: Part) -> Chunk:
        raise InputTypeError("The data frame has columns of any kind: use mercer.tabular(...).")

    def portion(self, parts: list[Part]) -> Any:
        """A task of Dask that becomes the tables of these parts on the worker where they are needed."""
        frames = self.X.to_delayed()
        build = importlib.import_module("dask").delayed(
            _Held(tuple(map(str, self.X.columns))), pure=False, traverse=False
        )
        return build(self.beside.portion(parts), [frames[part.place] for part in parts])

    def place(self, part: Part) -> str:
        return f"partition {part.place} of the Dask data frame"

    def identity(self) -> dict[str, Any]:
        return self.beside.identity() | {"frame": str(self.X._name)}


class HeldTables(HeldRows):
    """Some parts of a source of tables with their rows."""

    def __init__(self, beside: HeldRows, tables: list[Table], names: tuple[str, ...]) -> None:
        self.__dict__ = beside.__dict__ | {"tables": dict(zip(beside.parts(), tables, strict=True)), "names": names}

    def table_of(self, part: Part) -> Table:
        """The columns of a part as they are."""
        return self.tables[part]

    tables: dict[Part, Table]


class _Held:
    """Partitions become held tables, on a worker; an object that Dask does not look into."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.__name__ = "tables"

    def __call__(self, beside: HeldRows, frames: list[Any]) -> HeldTables:
        return HeldTables(beside, [Table.of(frame) for frame in frames], self.names)


class SelectedTables(SelectedRows):
    """`SelectedRows` of a source of tables."""

    def __init__(self, source: RowSource, fraction: float, seed: int, *, held_out: bool) -> None:
        super().__init__(source, fraction, seed, held_out=held_out)
        self.labels = source.labels

    def table_of(self, part: Part) -> Table:
        """The columns of the rows of a part that are selected."""
        inner = self._inner[part.place]
        return table_of(self.source, inner).take(self._chosen(inner))

    def targets_of(self, part: Part) -> Chunk:
        inner = self._inner[part.place]
        rows, chunk = self._chosen(inner), self.source.targets_of(inner)
        targets, weights = (None if v is None else v[torch.from_numpy(rows)] for v in (chunk.targets, chunk.weights))
        return Chunk(torch.empty(len(part), 0), targets, weights)


class Encoder(Protocol):
    """What turns tables into numbers; its text changes with what it does."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    def encode(self, table: Table) -> np.ndarray: ...


class EncodedRows(View):
    """The rows of numbers that an encoder makes of tables."""

    def __init__(self, source: RowSource, encoder: Encoder) -> None:
        super().__init__(source)
        self.encoder, self.names, self.n_features = encoder, encoder.columns, len(encoder.columns)
        self.labels, self.dtype = source.labels, torch.float64

    def load(self, part: Part) -> Chunk:
        X = torch.from_numpy(np.ascontiguousarray(self.encoder.encode(table_of(self.source, part))))
        targets = self.source.targets_of(part) if self.n_targets else Chunk(X, None, None)
        return Chunk(X, targets.targets, targets.weights)

    def targets_of(self, part: Part) -> Chunk:
        return self.source.targets_of(part)

    def identity(self) -> dict[str, Any]:
        return self.source.identity() | {"encoder": hashlib.sha256(repr(self.encoder).encode()).hexdigest()}

    def column_name(self, kind: str, index: int) -> str:
        return repr(self.encoder.columns[index]) if kind == "X" else self.source.column_name(kind, index)

    @property
    def reading_bytes(self) -> int:
        return self.source.reading_bytes + 3 * 8 * self.n_features * max(map(len, self.parts()), default=0)


def table_of(source: RowSource, part: Part) -> Table:
    """The columns of a part of any source as a table."""
    own = getattr(source, "table_of", None)
    if own is not None:
        found: Table = own(part)
        return found
    X = source.read(part).X.numpy().astype(np.float64)
    names: Sequence[str] = source.names or [f"x{j}" for j in range(source.n_features)]
    return Table.of(dict(zip(map(str, names), X.T, strict=True)))


def sampled_table(source: RowSource, count: int, seed: int) -> tuple[Table, np.ndarray | None, np.ndarray | None]:
    """`count` rows drawn without replacement, with targets and weights; how the source is cut does not matter."""
    chosen = drawn(source.n_rows, count, torch.Generator().manual_seed(seed))
    tables, targets, weights = [], [], []
    for part in source.parts():
        first, last = torch.searchsorted(chosen, torch.tensor([part.before, part.before + len(part)])).tolist()
        if first == last:
            continue
        rows = (chosen[first:last] - part.before).numpy()
        tables.append(table_of(source, part).take(rows))
        beside = source.targets_of(part) if source.n_targets else None
        if beside is not None and beside.targets is not None:
            targets.append(beside.targets.numpy()[rows])
        if beside is not None and beside.weights is not None:
            weights.append(beside.weights.numpy()[rows])
    joined = Table.joined(tables)
    return joined, np.concatenate(targets) if targets else None, np.concatenate(weights) if weights else None


def _ones(frame: Any) -> Any:
    """One column of numbers, to be there for the rows."""
    return frame[[]].assign(rows=1.0)
