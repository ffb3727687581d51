"""Rows of Parquet files, row group by row group."""

from __future__ import annotations

import hashlib
import importlib
import os
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mercer.core.errors import InputError, InputTypeError
from mercer.data.dials import BUFFER, MOST_LABELS, PAGES
from mercer.data.rows.marks import FileMark, changed
from mercer.data.rows.source import Chunk, Part, RowSource, equal_parts, rows_at_once_for

ENDINGS = (".parquet", ".pq")


class ParquetRows(RowSource):
    """Rows of a Parquet file, of all files in a folder in the order of their names, or of several files and folders.

    A part is a row group, or some rows of one that has more than `rows_at_once`. The files must stay as they are until
    a fit has ended: one that has changed is an error.

    Parameters
    ----------
    path : str or os.PathLike[str] or Sequence[str or os.PathLike[str]]
        A file or a folder, or a list of these, whose order is kept.
    target : str or Sequence[str] or None
        Column, or columns, to predict; None for rows to predict at. One column may be text, for classes.
    features : Sequence[str] or None
        Columns to learn from; by default every column of numbers that is neither target nor weight.
    weight : str or None
        Column of sample weights.
    rows_at_once : int or None
        Most rows of a part, by default 65,536, fewer where there are more than 128 columns.
    """

    _of_text: bool = False
    _open: tuple[int, Any] | None = None  # the file that was read last, by number
    _cursor: tuple[Any, _Batches] | None = None  # where in it reading goes on

    def __init__(
        self,
        path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        target: str | Sequence[str] | None = None,
        features: Sequence[str] | None = None,
        weight: str | None = None,
        *,
        rows_at_once: int | None = None,
    ) -> None:
        self.files, self._names = _files_and_names(path)
        self._marks = [FileMark.of(file) for file in self.files]
        self._footers = [_footer(file) for file in self.files]
        self.one_target = target is None or isinstance(target, str)
        self.targets = () if target is None else (target,) if isinstance(target, str) else tuple(target)
        self.weight = weight
        with self._opened(0) as file:
            schema = file.schema_arrow
        self.features = tuple(features) if features is not None else self._numbers(schema)
        self.names = self.features
        self._check_uses()
        if not self.features:
            raise InputError(f"{self.files[0]} has no column of numbers to learn from.")
        self.dtype = torch.float32
        self.n_features, self.n_targets = len(self.features), len(self.targets)
        self.rows_at_once = rows_at_once_for(self.n_features, rows_at_once)
        self._places, counts = [], []
        for i in range(len(self.files)):
            with self._opened(i) as file:
                self._check_schema(i, file.schema_arrow, features is None)
                groups = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
            self._places += [(i, g) for g in range(len(groups))]
            counts += groups
        self._parts, self.n_rows = equal_parts(counts, self.rows_at_once), sum(counts)
        if not self._parts:
            raise InputError(f"{_words(self.files)} {'has' if len(self.files) == 1 else 'have'} no rows.")
        self._lock = threading.RLock()
        if self._of_text:
            self.labels = self._found_labels()

    def parts(self) -> list[Part]:
        return list(self._parts)

    def load(self, part: Part) -> Chunk:
        columns = self.table(part, self._wanted)
        wide = np.float32 if self.dtype == torch.float32 else np.float64
        X, y = np.empty((len(part), self.n_features), wide), np.empty((len(part), self.n_targets))
        for array, names in ((X, self.features), (y, self.targets)):
            for j, name in enumerate(names):
                array[:, j] = self._codes(columns) if array is y and self._of_text else _column(columns, name)
        return Chunk(torch.from_numpy(X), torch.from_numpy(y) if self.targets else None, self._weights(columns))

    def targets_of(self, part: Part) -> Chunk:
        """Targets and weights alone, for which no other column is read."""
        columns = self.table(part, [*self.targets, *([self.weight] if self.weight else [])])
        found = [self._codes(columns)] if self._of_text else [_column(columns, name) for name in self.targets]
        y = np.column_stack(found).astype(np.float64)
        return self.checked(Chunk(torch.empty(len(part), 0), torch.from_numpy(y), self._weights(columns)), part)

    def _weights(self, columns: Any) -> torch.Tensor | None:
        return torch.from_numpy(_column(columns, self.weight).astype(np.float64)) if self.weight else None

    def _codes(self, columns: Any) -> np.ndarray:
        """The places of labels, NaN for a gap."""
        arrow, compute = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.compute")
        column = columns.column(self.targets[0]).cast(arrow.string())
        found = compute.index_in(column, value_set=arrow.array(self.labels, arrow.string()))
        return np.asarray(found.cast("float64").to_numpy(), dtype=np.float64)

    def _found_labels(self) -> np.ndarray:
        """The labels of a target that is text, from one pass over its column."""
        arrow, compute = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.compute")
        found: set[str] = set()
        for part in self._parts:
            column = self.table(part, self.targets).column(0).cast(arrow.string())
            found.update(text for text in compute.unique(column).to_pylist() if text is not None)
            if len(found) > MOST_LABELS:
                raise InputError(
                    f"The target {self.targets[0]!r} is text with more than {MOST_LABELS:,} different values; expected "
                    "labels."
                )
        return np.array(sorted(found), dtype=object)

    def table(self, part: Part, columns: Sequence[str]) -> Any:
        """Some columns of a part as an arrow table."""
        arrow = importlib.import_module("pyarrow")
        with self._lock:
            try:
                table = self._rows_of(part, list(dict.fromkeys(columns)))
                self._check_unchanged(self._places[part.place][0])
            except (arrow.ArrowException, OSError) as error:
                self._begin()
                self._check_unchanged(self._places[part.place][0])
                raise InputError(f"Cannot read {self.place(part)}: {_reason(error)}") from error
            except InputError as error:
                self._begin()
                raise InputError(f"Cannot read {self.place(part)}: {error}") from error
        if table.num_rows != len(part):
            raise changed(self.files[self._places[part.place][0]], f"a part had {len(part)} rows, now {table.num_rows}")
        return table

    @property
    def reading_bytes(self) -> int:
        return super().reading_bytes + PAGES * len(self._wanted)

    def place(self, part: Part) -> str:
        file, group = self._places[part.place]
        return f"row group {group} of {self._names[file]}"

    def column_name(self, kind: str, index: int) -> str:
        names = {"X": self.features, "y": self.targets, "sample_weight": (self.weight,)}[kind]
        return repr(names[index])

    def identity(self) -> dict[str, Any]:
        """Names of the files with digests of all their bytes, and the columns that are used."""
        return {
            "files": [[name, self._digest(i)] for i, name in enumerate(self._names)],
            "features": list(self.features),
            "targets": list(self.targets),
            "weight": self.weight,
            "rows_at_once": self.rows_at_once,
        }

    @property
    def _wanted(self) -> tuple[str, ...]:
        return (*self.features, *self.targets, *([self.weight] if self.weight else []))

    def _rows_of(self, part: Part, columns: list[str]) -> Any:
        """Rows of a row group; those that follow the last ones are read on, others from the start of their group."""
        at = (part.place, tuple(columns))
        if self._cursor is None or self._cursor[0] != at or self._cursor[1].position > part.start:
            file, group = self._places[part.place]
            if self._open is None or self._open[0] != file or group == 0:  # anew for each pass
                self._begin()
                self._check_unchanged(file)
                if _footer(self.files[file]) != self._footers[file]:
                    raise changed(self.files[file], "its footer differs")
                self._open = (file, self._opened(file))
            self._cursor = (at, _Batches(self._open[1], group, columns, self.rows_at_once))
        table = self._cursor[1].rows(part.start, part.stop)
        if self._cursor[1].at_end:
            self._cursor = None
        return table

    def _begin(self) -> None:
        """Close what is open."""
        if self._open is not None:
            self._open[1].close()
        self._open = self._cursor = None

    def _opened(self, i: int) -> Any:
        file, parquet, arrow = self.files[i], _parquet(), importlib.import_module("pyarrow")
        try:
            return parquet.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER)
        except FileNotFoundError:
            raise InputError(f"{file} has vanished since it was opened.") from None
        except (arrow.ArrowException, OSError) as error:
            raise InputError(f"{file} is not a Parquet file that can be read: {_reason(error)}") from error

    def _check_unchanged(self, i: int) -> None:
        self._marks[i].check(self.files[i])

    def _digest(self, i: int) -> str:
        try:
            with self.files[i].open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise InputError(f"Cannot read {self.files[i]}: {error.strerror or error}.") from error

    def _check_uses(self) -> None:
        """No column is used twice."""
        for use, names in (("features", self.features), ("target", self.targets)):
            twice = [name for name, count in Counter(names).items() if count > 1]
            if twice:
                raise InputError(f"{use} names the column {twice[0]!r} more than once.")
        if self.weight in self.targets:
            raise InputError(f"The column {self.weight!r} is both target and weight; name two different columns.")
        for use, others in (("target", self.targets), ("weight", (self.weight,))):
            both = [name for name in self.features if name in others]
            if both:
                raise InputError(f"features has {both[0]!r}, which is the {use}; leave it out of features.")

    def _check_schema(self, i: int, schema: Any, all_numbers: bool) -> None:
        for name in self._wanted:
            self._check_column(schema, name, self.files[i], text=(name,) == self.targets)
        if self.targets and is_text(schema.field(self.targets[0]).type):
            self._of_text = True
        more = sorted(set(self._numbers(schema)) - set(self.features)) if all_numbers else []
        if more:
            raise InputError(
                f"{self.files[i]} has a column {more[0]!r} that {self.files[0]} does not have as numbers: "
                "say which features to use."
            )
        if any(str(schema.field(name).type) not in ("float", "halffloat") for name in self.features):
            self.dtype = torch.float64

    def _check_column(self, schema: Any, name: str, file: Path, *, text: bool) -> None:
        if name not in schema.names:
            raise InputError(f"{file} has no column {name!r}; its columns are {', '.join(map(repr, schema.names))}.")
        if len(schema.get_all_field_indices(name)) > 1:
            raise InputError(f"{file} has more than one column named {name!r}; rename or remove the others.")
        kind = schema.field(name).type
        if not is_number(kind) and not (text and is_text(kind)):
            raise InputTypeError(f"Column {name!r} of {file} is of type {kind}; expected numbers.")

    def _numbers(self, schema: Any) -> tuple[str, ...]:
        others = {*self.targets, self.weight}
        names = [
            field.name
            for field in schema
            if field.name not in others and is_number(field.type) and not field.name.startswith("__index_level_")
        ]
        return tuple(dict.fromkeys(names))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_open", "_cursor", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()


class _Batches:
    """The record batches of a row group, from which rows are taken in order."""

    def __init__(self, file: Any, group: int, columns: list[str], at_once: int) -> None:
        self.arrow = importlib.import_module("pyarrow")
        self.batches = file.iter_batches(at_once, row_groups=[group], columns=columns, use_threads=False)
        self.schema = self.arrow.schema([file.schema_arrow.field(name) for name in columns])
        self.rows_in_group, self.position = file.metadata.row_group(group).num_rows, 0
        self.held: Any = None

    @property
    def at_end(self) -> bool:
        """Whether all rows have been taken."""
        return bool(self.position >= self.rows_in_group)

    def rows(self, start: int, stop: int) -> Any:
        """Rows `start` to `stop`; `start` must not lie before what was taken already."""
        found = []
        while self.position < stop:
            if self.held is None:
                self.held = next(self.batches, None)
            if self.held is None:
                break
            skipped = min(max(0, start - self.position), self.held.num_rows)
            taken = min(stop - self.position, self.held.num_rows) - skipped
            if taken > 0:
                found.append(self.held.slice(skipped, taken))
            self.position += skipped + taken
            rest = self.held.slice(skipped + taken)
            self.held = rest if rest.num_rows else None
        return self.arrow.Table.from_batches(found, self.schema if not found else None)


def is_text(kind: Any) -> bool:
    """Whether an arrow type is one of text, or of categories that are."""
    return str(getattr(kind, "value_type", kind)) in ("string", "large_string", "string_view")


def is_number(kind: Any) -> bool:
    """Whether an arrow type is one of numbers."""
    return str(kind).startswith(("int", "uint", "float", "double", "bool", "decimal", "halffloat"))


def _files_and_names(path: Any) -> tuple[list[Path], list[str]]:
    """All files of a path or of several, and what to call them: by their place in a folder where that is enough."""
    given = [path] if isinstance(path, str | os.PathLike) else path
    if not isinstance(given, list | tuple) or not given or not all(isinstance(p, str | os.PathLike) for p in given):
        raise InputTypeError(f"ParquetRows({path!r:.60}): give a file, a folder, or a list of files and folders.")
    files, names = [], []
    for root in map(Path, given):
        found = parquet_files(root)
        files += found
        names += [str(file.relative_to(root)) if file != root else file.name for file in found]
    twice = [file for file, count in Counter(map(os.path.realpath, files)).items() if count > 1]
    if twice:
        raise InputError(f"The file {twice[0]} is given more than once; its rows would count twice.")
    return files, names if len(set(names)) == len(names) else list(map(str, files))


def _words(files: list[Path]) -> str:
    return str(files[0]) + (f" and {len(files) - 1} more files" if len(files) > 1 else "")


def _footer(file: Path) -> str:
    """A digest of what a Parquet file says of itself at its end: where each column lies, and its range."""
    try:
        with file.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - 8))
            stream.seek(max(0, size - 8 - int.from_bytes(stream.read(4), "little")))
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except FileNotFoundError:
        raise InputError(f"{file} has vanished since it was opened.") from None
    except OSError as error:
        raise InputError(f"Cannot read {file}: {error.strerror or error}.") from error


def parquet_files(path: Path) -> list[Path]:
    """The file, or the Parquet files in a folder and in folders in it, in the order of their names."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix in ENDINGS)
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


def _column(table: Any, name: str) -> np.ndarray:
    """A column as numbers; missing values are NaN."""
    column = table.column(name)
    wanted = "float32" if str(column.type) == "float" else "float64"
    return np.asarray(column.cast(wanted, safe=False).to_numpy(), dtype=wanted)


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error)
    return " ".join(text.split()).rstrip(".")[:300] + "."
