"""Rows of Parquet files, row group by row group."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError, InputTypeError
from mercer.core.rows.source import Chunk, Part, RowSource


class ParquetRows(RowSource):
    """Rows of a Parquet file, or of all files in a folder in the order of their names; one part is one row group.

    Parameters
    ----------
    path : a file or a folder.
    target : column, or columns, to predict; None for rows to predict at.
    features : columns to learn from; by default every column of numbers that is neither target nor weight.
    weight : column of sample weights.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        target: str | Sequence[str] | None = None,
        features: Sequence[str] | None = None,
        weight: str | None = None,
    ) -> None:
        self.path = Path(path)
        self.files = _files(self.path)
        self.one_target = target is None or isinstance(target, str)
        self.targets = () if target is None else (target,) if isinstance(target, str) else tuple(target)
        self.weight = weight
        schema = self._file(0).schema_arrow
        self.features = tuple(features) if features is not None else self._numbers(schema)
        self.names = self.features
        for name in self._wanted:
            self._check_column(schema, name, self.files[0])
        if not self.features:
            raise InputError(f"{self.files[0]} has no column of numbers to learn from.")
        single = all(str(schema.field(name).type) == "float" for name in self.features)
        self.dtype = torch.float32 if single else torch.float64
        self.n_features, self.n_targets = len(self.features), len(self.targets)
        self.n_rows = sum(len(part) for part in self._groups)

    def parts(self) -> list[Part]:
        return list(self._groups)

    def load(self, part: Part) -> Chunk:
        file, group = self._places[part.place]
        arrow = importlib.import_module("pyarrow")
        try:
            table = self._open(self.files[file]).read_row_group(group, columns=list(self._wanted))
        except FileNotFoundError:
            raise InputError(f"{self.files[file]} has vanished since it was opened.") from None
        except (arrow.ArrowException, OSError) as error:
            raise InputError(f"Cannot read {self.place(part)}: {error}") from error
        if table.num_rows != len(part):
            raise InputError(f"{self.place(part)} has {table.num_rows} rows but had {len(part)}: the file has changed.")
        columns = {name: _column(table, name) for name in self._wanted}
        X = np.column_stack([columns[name] for name in self.features]).astype(
            np.float32 if self.dtype == torch.float32 else np.float64, copy=False
        )
        targets = _stacked(columns, self.targets) if self.targets else None
        return Chunk(torch.from_numpy(X), targets, torch.from_numpy(columns[self.weight]) if self.weight else None)

    def place(self, part: Part) -> str:
        file, group = self._places[part.place]
        return f"row group {group} of {self.files[file].name}"

    def identity(self) -> dict[str, Any]:
        sizes = [[file.name, file.stat().st_size] for file in self.files]
        return {
            "files": sizes,
            "features": list(self.names or ()),
            "targets": list(self.targets),
            "weight": self.weight,
        }

    @property
    def _wanted(self) -> tuple[str, ...]:
        return (*self.features, *self.targets, *([self.weight] if self.weight else []))

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        return [(i, g) for i in range(len(self.files)) for g in range(self._file(i).num_row_groups)]

    @cached_property
    def _groups(self) -> list[Part]:
        parts, before = [], 0
        for place, (file, group) in enumerate(self._places):
            self._check_schema(file)
            count = self._file(file).metadata.row_group(group).num_rows
            if count:
                parts.append(Part(place, 0, count, before))
            before += count
        if not parts:
            raise InputError(f"{self.path} has no rows.")
        return parts

    def _file(self, i: int) -> Any:
        if not hasattr(self, "_opened"):
            self._opened: dict[int, Any] = {}
        if i not in self._opened:
            self._opened[i] = self._open(self.files[i])
        return self._opened[i]

    def _open(self, file: Path) -> Any:
        parquet = _parquet()
        arrow = importlib.import_module("pyarrow")
        try:
            return parquet.ParquetFile(file)
        except FileNotFoundError:
            raise InputError(f"{file} has vanished since it was opened.") from None
        except (arrow.ArrowException, OSError) as error:
            raise InputError(f"{file} is not a Parquet file that can be read: {error}") from error

    def _check_schema(self, i: int) -> None:
        schema = self._file(i).schema_arrow
        for name in self._wanted:
            self._check_column(schema, name, self.files[i])

    def _check_column(self, schema: Any, name: str, file: Path) -> None:
        if name not in schema.names:
            raise InputError(f"{file} has no column {name!r}; its columns are {', '.join(map(repr, schema.names))}.")
        kind = schema.field(name).type
        if not _is_number(kind):
            raise InputTypeError(f"Column {name!r} of {file} is of type {kind}; expected numbers.")

    def _numbers(self, schema: Any) -> tuple[str, ...]:
        others = {*self.targets, self.weight}
        return tuple(
            field.name
            for field in schema
            if field.name not in others and _is_number(field.type) and not field.name.startswith("__index_level_")
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_opened"}


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix in (".parquet", ".pq"))
        if not files:
            raise InputError(f"There is no .parquet file in the folder {path}.")
        return files
    if not path.exists():
        raise InputError(f"There is no file {path}.")
    return [path]


def _parquet() -> Any:
    try:
        return importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InputError("Parquet files need pyarrow: pip install 'mercer[io]'.") from None


def _is_number(kind: Any) -> bool:
    text = str(kind)
    return text.startswith(("int", "uint", "float", "double", "bool", "decimal", "halffloat"))


def _column(table: Any, name: str) -> np.ndarray:
    """A column as numbers; missing values are NaN."""
    compute = importlib.import_module("pyarrow.compute")
    column = table.column(name)
    wanted = "float32" if str(column.type) == "float" else "float64"
    return np.asarray(compute.cast(column, wanted).to_numpy(), dtype=wanted)


def _stacked(columns: dict[str, np.ndarray], names: tuple[str, ...]) -> Tensor:
    return torch.from_numpy(np.column_stack([columns[name] for name in names]).astype(np.float64, copy=False))
