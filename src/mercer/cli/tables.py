"""Tables in CSV, Parquet and npz files: columns by name, in and out."""

from __future__ import annotations

import csv
import gzip
import importlib
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mercer.core.errors import InputError
from mercer.core.files import replacing
from mercer.data.table import Table as Columns

FORMATS = {
    ".csv": "csv",
    ".csv.gz": "csv",
    ".tsv": "csv",
    ".tsv.gz": "csv",
    ".txt": "csv",
    ".txt.gz": "csv",
    ".dat": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
    ".npy": "npy",
}
"""What a file's name says about its content."""

TEXT_FORMATS = ("csv",)
DELIMITERS = (",", ";", "\t")
NAMES_KEY = "feature_names"
"""The array of an npz file that names the columns of its X."""


@dataclass(frozen=True)
class Table:
    """Columns of equal length by name, numpy arrays or arrow columns.

    `features` are the columns to learn from unless told otherwise; `left_out` says of other arrays in the file why they
    are no columns.
    """

    source: str
    columns: Mapping[str, Any]
    features: tuple[str, ...]
    n_rows: int
    left_out: Mapping[str, str] = field(default_factory=dict)


def read_table(path: Path) -> Table:
    """The table in a CSV, Parquet or npz file; the error says what is wrong with a file that cannot be read."""
    kind = checked_format(path)
    return _read_npz(path) if kind == "npz" else _read_arrow(path, kind)


def checked_format(path: Path) -> str:
    """The format of a file that is there and not empty."""
    kind = format_of(path)
    if not path.exists():
        raise InputError(f"There is no file {path}.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the data file in it.")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty.")
    return kind


def read_arrays(path: Path) -> tuple[Mapping[str, Any], tuple[str, ...], Mapping[str, str]]:
    """The columns of a Parquet or npz file, those to learn from, and why other arrays are no columns."""
    table = read_table(path)
    columns = {name: c if isinstance(c, np.ndarray) else _plain(name, c) for name, c in table.columns.items()}
    return columns, table.features, table.left_out


def _plain(name: str, column: Any) -> np.ndarray:
    """An arrow column as an array."""
    return Columns.of(_arrow().table({name: column})).columns[name]


def write_table(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns to a CSV, Parquet or npz file, in full or not at all."""
    kind = format_of(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            if kind == "npz":
                _write_npz(temporary, columns)
            elif kind == "npy":
                _write_npy(temporary, columns)
            elif kind == "parquet":
                _arrow("parquet").write_table(_arrow().table(dict(columns)), temporary)
            else:
                _write_csv(temporary, columns, path.name.lower())
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror or error}.") from error


def format_of(path: Path) -> str:
    """What the file's name says: "csv", "parquet", "npz" or "npy".

    >>> format_of(Path("houses.csv"))
    'csv'
    """
    name = path.name.lower()
    for ending, kind in FORMATS.items():
        if name.endswith(ending):
            return kind
    raise InputError(f"{path}: the name must end in one of {', '.join(FORMATS)}.")


def _read_arrow(path: Path, kind: str) -> Table:
    arrow = _arrow()
    try:
        if kind == "csv":
            options = _arrow("csv").ParseOptions(delimiter=_delimiter(path), newlines_in_values=True)
            table = _arrow("csv").read_csv(path, parse_options=options)
        else:
            table = _arrow("parquet").read_table(path)
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise _unreadable(path, kind, error) from error
    names = table.column_names
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InputError(f"{path} has two columns named {name!r}; columns need different names.")
    columns = dict(zip(names, table.columns, strict=True))
    return Table(str(path), columns, tuple(name for name in names if not is_index(name)), table.num_rows)


def is_index(name: str) -> bool:
    """Whether a column is the row index that pandas writes beside the data.

    >>> is_index(""), is_index("__index_level_0__"), is_index("age")
    (True, True, False)
    """
    return name == "" or name.startswith("__index_level_")


def _delimiter(path: Path) -> str:
    """The comma, unless the header has none and has a semicolon or tab."""
    with _arrow().input_stream(str(path)) as stream:
        header = stream.read(1 << 16).split(b"\n")[0]
    return next((d for d in DELIMITERS if d.encode() in header), ",")


def _read_npz(path: Path) -> Table:
    """Each 1-d array is a column, each column of a 2-d array `A` is a column `A0`, `A1`, ..."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise _unreadable(path, "npz", error) from error
    names = arrays.pop(NAMES_KEY, None)
    tables = {key: np.atleast_2d(array.T).T for key, array in arrays.items() if array.ndim in (1, 2)}
    if not tables:
        raise InputError(f"{path} holds no arrays of one or two dimensions.")
    main = "X" if "X" in tables else next(iter(tables))
    n_rows = len(tables[main])
    left_out = {key: f"has shape {array.shape}" for key, array in arrays.items() if key not in tables}
    columns: dict[str, Any] = {}
    for key, table in tables.items():
        if len(table) == n_rows:
            columns.update(zip(_column_names(path, key, arrays[key], names), table.T, strict=True))
        else:
            left_out[key] = f"has {len(table)} rows but {main!r} has {n_rows}"
    features = _column_names(path, "X", arrays["X"], names) if main == "X" else tuple(columns)
    return Table(str(path), columns, features, n_rows, left_out)


def array_names(width: int) -> tuple[str, ...]:
    """The names of the columns of an array that has none.

    >>> array_names(2)
    ('X0', 'X1')
    """
    return tuple(f"X{j}" for j in range(width))


def _column_names(path: Path, key: str, array: np.ndarray, names: np.ndarray | None) -> tuple[str, ...]:
    width = 1 if array.ndim == 1 else array.shape[1]
    if names is None or key != "X":
        return (key,) if width == 1 else tuple(f"{key}{j}" for j in range(width))
    if names.shape != (width,) or names.dtype.kind != "U" or len(set(names.tolist())) != width:
        raise InputError(f"{path}: {NAMES_KEY} must hold {width} different names, one for each column of X.")
    return tuple(names.tolist())


def _write_npz(path: Path, columns: Mapping[str, Any]) -> None:
    with zipfile.ZipFile(path, "w") as file:
        for name, column in columns.items():
            array = np.asarray(column)
            array = array.astype(str) if array.dtype.kind == "O" else array
            with file.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def _write_npy(path: Path, columns: Mapping[str, Any]) -> None:
    """One column as it is, several side by side."""
    arrays = [np.asarray(column) for column in columns.values()]
    if any(array.dtype.kind not in "fiub" for array in arrays):
        raise InputError("A .npy file holds numbers only: keep no text columns, or write Parquet.")
    with path.open("wb") as file:
        np.save(file, arrays[0] if len(arrays) == 1 else np.column_stack(arrays), allow_pickle=False)


def _write_csv(path: Path, columns: Mapping[str, Any], name: str) -> None:
    values = [c.tolist() if isinstance(c, np.ndarray) else c.to_pylist() for c in columns.values()]
    opened = gzip.open if name.endswith(".gz") else open
    with opened(path, "wt", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter="\t" if name.endswith(".tsv") else ",", lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*values, strict=True))


def has_arrow() -> bool:
    """Whether CSV and Parquet files can be read here."""
    try:
        _arrow()
    except InputError:
        return False
    return True


def _arrow(part: str = "") -> Any:
    try:
        return importlib.import_module(f"pyarrow.{part}" if part else "pyarrow")
    except ImportError as error:
        raise InputError('CSV and Parquet files need pyarrow: pip install "mercer[io]"') from error


def _unreadable(path: Path, kind: str, error: Exception) -> InputError:
    words = {"csv": "CSV", "parquet": "Parquet", "npz": "npz"}[kind]
    reason = " ".join(str(error).split()).rstrip(".")[:200] or type(error).__name__
    return InputError(f"{path} cannot be read as a {words} file: {reason}.")
