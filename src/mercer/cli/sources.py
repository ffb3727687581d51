"""Data that are read in parts: when that is done, and which columns of them are used."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mercer.cli.dials import COPIES
from mercer.cli.problem import (
    Problem,
    checked_problem,
    features_of,
    find_column,
    listed,
    missing_columns,
    reject_text,
)
from mercer.cli.reading import STDIN
from mercer.cli.regression import Settings
from mercer.cli.tables import Table, array_names, format_of, is_index
from mercer.core.errors import InputError
from mercer.core.memory import readable, resolve_budget
from mercer.data import table as columns_of
from mercer.data.dials import ROWS_AT_ONCE
from mercer.data.rows import ArrayRows, ColumnRows, ParquetRows, Part, RowSource, npy_rows
from mercer.data.rows.files import FileArray
from mercer.data.rows.parquet import parquet_files

STREAMED = ("nystrom", "falkon", "random_features")
"""Solvers that need no more than some of the rows at a time."""


@dataclass(frozen=True)
class StreamedTable:
    """A source of rows with the names of its columns, and why it is read in parts."""

    rows: RowSource
    features: tuple[str, ...]
    target: str
    weight_column: str | None
    source: str
    reason: str
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.rows.n_rows


def why_in_parts(data: Path, settings: Settings) -> str | None:
    """Why the rows of a file or folder are read in parts, None when they are read as a whole."""
    if data == STDIN:
        return None
    if not data.exists() and not data.suffix:
        raise InputError(f"There is no file or folder {data}.")
    if data.is_dir():
        return "a folder is read in parts"
    if settings.checkpoint is not None:
        return "--checkpoint is for rows that are read in parts"
    if settings.solver in STREAMED or settings.landmarks is not None:
        given = f"--solver {settings.solver}" if settings.solver in STREAMED else "--landmarks"
        return f"{given} needs them only in parts"
    return too_large(data, settings.memory)


def too_large(data: Path, memory: int | None) -> str | None:
    """Why a file cannot be held in memory, None when it can; raises an error where it cannot be read in parts."""
    if not data.is_file():
        return None
    budget, kind = resolve_budget(memory), format_of(data)
    size = data.stat().st_size
    if size == 0:
        return None
    if kind == "parquet":
        metadata = _parquet(data).metadata
        size = max(size, 8 * metadata.num_rows * metadata.num_columns)
    if kind in ("parquet", "npy"):
        needed = COPIES * size
        return f"all rows need {readable(needed)}, the budget is {readable(budget)}" if needed > budget else None
    if size > budget:
        raise InputError(
            f"{data} has {readable(size)} but the memory budget is {readable(budget)}: "
            "save it as Parquet or .npy, which are read in parts."
        )
    return None


def streamed_table(
    data: Path,
    target: str,
    features: Sequence[str] | None,
    weights: str | None,
    reason: str,
    drop: Sequence[str] = (),
) -> StreamedTable:
    """The columns of Parquet or .npy data that a fit uses."""
    columns, rows_of = _columns(data)
    files = {option: _array_file(value) for option, value in (("target", target), ("weights", weights))}
    wanted = None if files["target"] else find_column(columns, _from_end(columns, target), "--target")
    counted = None
    if weights is not None and not files["weights"]:
        counted = find_column(columns, _from_end(columns, weights), "--weights")
    used = [name for name in (wanted, counted) if name is not None]
    chosen, notes = features_of(columns, str(data), features, used, drop)
    rows = rows_of(wanted or files["target"], chosen, counted or files["weights"])
    target_name = wanted or _free_name(Path(target).stem, chosen)
    weight_name = counted or (None if weights is None else _free_name(Path(weights).stem, (*chosen, target_name)))
    return StreamedTable(rows, chosen, target_name, weight_name, str(data), reason, notes)


def table_of_problem(problem: Problem, reason: str) -> StreamedTable:
    """Rows that are in memory, to be worked on in parts."""
    rows = ArrayRows(problem.X, problem.y, problem.weights, name=problem.source)
    rows.names = problem.features
    return StreamedTable(
        rows, problem.features, problem.target, problem.weight_column, problem.source, reason, problem.notes
    )


def array_table(data: Path) -> columns_of.Table:
    """The columns of an array in a .npy file, which are called X0, X1 and so on."""
    array = np.asarray(FileArray.npy(data)[:], dtype=np.float64)
    if array.ndim != 2:
        raise InputError(f"{data} has shape {array.shape}; expected two dimensions, one row for each example.")
    return columns_of.Table.of(dict(zip(array_names(array.shape[1]), array.T, strict=True)))


def parquet_tables(data: Path) -> Iterator[columns_of.Table]:
    """The rows of Parquet files, some at a time."""
    arrow = importlib.import_module("pyarrow")
    for file in parquet_files(data):
        for batch in _parquet(file).iter_batches(ROWS_AT_ONCE):
            yield columns_of.Table.of(arrow.Table.from_batches([batch]))


def problem_of_table(table: StreamedTable) -> Problem:
    """All rows of a table that fits in memory."""
    found = list(table.rows)
    X = np.concatenate([chunk.X.numpy() for chunk in found]).astype(np.float64)
    y = np.concatenate([chunk.targets.numpy() for chunk in found if chunk.targets is not None])[:, 0]
    weights = np.concatenate(
        [chunk.weights.numpy() for chunk in found if chunk.weights is not None] or [np.ones(len(y))]
    )
    problem = Problem(X, y, None, table.features, table.target, table.source, table.weight_column, table.notes)
    return checked_problem(problem, None if table.weight_column is None else weights)


@dataclass(frozen=True)
class PredictionRows:
    """The rows that a model is asked about, with the target and weights where they are known."""

    rows: RowSource
    table: Table
    target: str | None

    def kept(self, part: Part, names: Sequence[str]) -> dict[str, Any]:
        """Other columns of the same rows."""
        if not names:
            return {}
        if isinstance(self.rows, ParquetRows):
            table = self.rows.table(part, names)
            return {name: table.column(name) for name in names}
        assert isinstance(self.rows, ColumnRows)
        X = self.rows.source.load(part).X.numpy()
        return {name: X[:, self.table.features.index(name)] for name in names}


def checked_rows(data: Path, features: Sequence[str], target: str, weights: str | None) -> PredictionRows:
    """The columns of Parquet or .npy data that a model was fitted on; those of an array of as many columns in order."""
    columns, rows_of = _columns(data)
    known = target if target in columns.columns else None
    counted = weights if known is not None and weights in columns.columns else None
    if format_of_data(data) == "npy" and len(columns.features) == len(features):
        return PredictionRows(rows_of(None, columns.features, None), columns, None)
    missing_columns(columns, features)
    reject_text(columns, [*features, *(name for name in (known, counted) if name is not None)])
    return PredictionRows(rows_of(known, features, counted), columns, known)


def format_of_data(data: Path) -> str:
    """The format of a file, or of the files in a folder."""
    return "parquet" if data.is_dir() else format_of(data)


def _columns(data: Path) -> tuple[Table, Any]:
    """The columns of some data, without any rows, and a function that makes a source of some of them."""
    if not data.exists():
        raise InputError(f"There is no file {data}.")
    if format_of_data(data) == "npy":
        array = FileArray.npy(data)
        if array.ndim != 2:
            raise InputError(f"{data} has shape {array.shape}; expected two dimensions, one row for each example.")
        names = array_names(array.shape[1])
        none = np.empty(0, dtype=array.dtype)
        return Table(str(data), dict.fromkeys(names, none), names, 0), lambda *use: _npy_source(data, names, *use)
    first = parquet_files(data)[0]
    schema = _parquet(first).schema_arrow
    if len(set(schema.names)) < len(schema.names):
        raise InputError(f"{first} has two columns of the same name.")
    empty = schema.empty_table()
    columns = {name: empty.column(name) for name in schema.names}
    table = Table(str(data), columns, tuple(name for name in schema.names if not is_index(name)), 0)
    return table, lambda target, features, weights: _parquet_source(data, target, features, weights)


def _parquet_source(data: Path, target: Any, features: Sequence[str], weights: Any) -> ParquetRows:
    for option, value in (("--target", target), ("--weights", weights)):
        if isinstance(value, Path):
            raise InputError(f"{option} {value}: name a column; a file of its own goes with .npy data.")
    return ParquetRows(data, target, features, weights)


def _npy_source(data: Path, names: tuple[str, ...], target: Any, features: Sequence[str], weights: Any) -> ColumnRows:
    files = [value if isinstance(value, Path) else None for value in (target, weights)]
    places = [names.index(value) if isinstance(value, str) else None for value in (target, weights)]
    rows = npy_rows(data, *files)
    rows.names = names
    return ColumnRows(rows, [names.index(name) for name in features], places[0], places[1], features)


def _parquet(file: Path) -> Any:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
        return parquet.ParquetFile(file)
    except ImportError:
        raise InputError('Parquet files need pyarrow: pip install "mercer[io]"') from None
    except (importlib.import_module("pyarrow").ArrowException, OSError) as error:
        reason = " ".join(str(error).split()).rstrip(".")[:200]
        raise InputError(f"{file} cannot be read as a Parquet file: {reason}.") from error


def _array_file(text: str | None) -> Path | None:
    """The path of an array, where that and not the name of a column is given."""
    return Path(text) if text is not None and text.lower().endswith(".npy") else None


def _from_end(columns: Table, name: str) -> str:
    """Places of columns of an array count from the end when they are negative."""
    if name in columns.columns or not name.startswith("-") or not name[1:].isdecimal():
        return name
    place = len(columns.features) - int(name[1:])
    if place < 0:
        raise InputError(f"{columns.source} has {len(columns.features)} columns: {listed(columns.features)}.")
    return columns.features[place]


def _free_name(name: str, taken: Sequence[str]) -> str:
    return name if name not in taken else f"{name}_file"
