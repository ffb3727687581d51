"""Tables that are written part by part."""

from __future__ import annotations

import contextlib
import csv
import gzip
import importlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mercer.cli.tables import format_of
from mercer.core.errors import InputError
from mercer.core.files import replacing


class Writer(Protocol):
    """Takes columns, some rows at a time."""

    def write(self, columns: Mapping[str, Any]) -> None:
        """Append rows."""


@contextlib.contextmanager
def writing(path: Path, n_rows: int) -> Iterator[Writer]:
    """A writer for a CSV, Parquet or .npy file of so many rows, which is written in full or not at all."""
    kind = format_of(path)
    if kind == "npz":
        raise InputError(f"--out {path}: rows that are read in parts are written to .csv, .parquet or .npy.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary, contextlib.ExitStack() as stack:
            if kind == "parquet":
                yield _Parquet(temporary, stack)
            elif kind == "npy":
                yield _Npy(temporary, stack, n_rows)
            else:
                yield _Csv(temporary, stack, path.name.lower())
    except OSError as error:
        raise InputError(f"Cannot write {path}: {error.strerror or error}.") from error


class _Parquet:
    def __init__(self, path: Path, stack: contextlib.ExitStack) -> None:
        self.path, self.stack = path, stack
        self.writer: Any = None
        self.arrow, self.parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")

    def write(self, columns: Mapping[str, Any]) -> None:
        table = self.arrow.table(dict(columns))
        if self.writer is None:
            self.writer = self.stack.enter_context(self.parquet.ParquetWriter(self.path, table.schema))
        self.writer.write_table(table)


class _Csv:
    def __init__(self, path: Path, stack: contextlib.ExitStack, name: str) -> None:
        opened = gzip.open if name.endswith(".gz") else open
        file = stack.enter_context(opened(path, "wt", newline="", encoding="utf-8"))
        self.writer = csv.writer(file, delimiter="\t" if name.endswith(".tsv") else ",", lineterminator="\n")
        self.begun = False

    def write(self, columns: Mapping[str, Any]) -> None:
        if not self.begun:
            self.writer.writerow(columns)
            self.begun = True
        values = [c.tolist() if isinstance(c, np.ndarray) else c.to_pylist() for c in columns.values()]
        self.writer.writerows(zip(*values, strict=True))


class _Npy:
    """The header says how many rows will follow."""

    def __init__(self, path: Path, stack: contextlib.ExitStack, n_rows: int) -> None:
        self.file, self.n_rows, self.begun = stack.enter_context(path.open("wb")), n_rows, False

    def write(self, columns: Mapping[str, Any]) -> None:
        arrays = [np.asarray(column) for column in columns.values()]
        if any(array.dtype.kind not in "fiub" for array in arrays):
            raise InputError("A .npy file holds numbers only: keep no text columns, or write Parquet.")
        rows = np.column_stack([array.astype(np.float64) for array in arrays])
        if not self.begun:
            shape = (self.n_rows,) if len(arrays) == 1 else (self.n_rows, len(arrays))
            header = {"descr": "<f8", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_2_0(self.file, header)
            self.begun = True
        self.file.write(rows.astype("<f8").tobytes())


def to_stdout(path: Path, columns: Mapping[str, Any]) -> None:
    """Write columns as CSV to standard output, which `path` stands for."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(np.asarray(c).tolist() for c in columns.values()), strict=True))
