"""Rows of arrays, memory maps and `.npy` files."""

from __future__ import annotations

import mmap
import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import column_names, plain_array, refuse_masked
from mercer.core.errors import InputError, InputTypeError
from mercer.data.rows.files import FileArray, forget_pages
from mercer.data.rows.held import HeldRows
from mercer.data.rows.marks import FileMark
from mercer.data.rows.source import Chunk, Part, RowSource, digest_of, equal_parts, rows_at_once_for
from mercer.data.rows.stream import read_ahead


class ArrayRows(RowSource):
    """Rows of a numpy array or memory map, or of a tensor; nothing is copied before it is read.

    X may also be a data frame of numbers, whose column names are kept. Targets may be text: a classifier takes them.
    `rows_at_once` are read at a time, by default 65,536, fewer where there are more than 128 columns.

    >>> source = ArrayRows(np.arange(6.0).reshape(3, 2), np.ones(3), rows_at_once=2)
    >>> source.n_rows, [len(chunk.X) for chunk in source]
    (3, [2, 1])
    """

    def __init__(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, rows_at_once: int | None = None, name: str = "X"
    ) -> None:
        if X is None:
            raise InputError("X is None: give the rows, (n, d).")
        self.names = column_names(X)
        self.labels, y = as_labels(y)
        self.X, self.y, self.weights = _array(X, "X", 2), _array(y, "y"), _array(sample_weight, "sample_weight", 1)
        self.name = name
        self.n_rows, self.n_features = self.X.shape
        self.rows_at_once = rows_at_once_for(self.n_features, rows_at_once)
        self.dtype = torch.float32 if self.X.dtype in (np.float32, torch.float32) else torch.float64
        self.one_target = self.y is None or self.y.ndim == 1
        self.n_targets = 0 if self.y is None else 1 if self.y.ndim == 1 else self.y.shape[1]
        for label, values in (("y", self.y), ("sample_weight", self.weights)):
            if values is not None and len(values) != self.n_rows:
                raise InputError(f"{label} has {len(values)} rows but X has {self.n_rows}.")
        self._mapped = _mapped_files(self.X, self.y, self.weights)

    def parts(self) -> list[Part]:
        return equal_parts([self.n_rows], self.rows_at_once)

    def load(self, part: Part) -> Chunk:
        rows = slice(part.start, part.stop)
        y = None if self.y is None else _tensor(self.y, rows, torch.float64).reshape(len(part), -1)
        weights = None if self.weights is None else _tensor(self.weights, rows, torch.float64)
        chunk = Chunk(_tensor(self.X, rows, self.dtype), y, weights)
        for path, mark in self._mapped.items():
            mark.check(path)
        return chunk

    def place(self, part: Part) -> str:
        return self.name

    def portion(self, parts: list[Part]) -> RowSource:
        arrays = [_file(array) for array in (self.X, self.y, self.weights)]
        if any(isinstance(array, Tensor | np.ndarray) for array in arrays):
            return HeldRows.of(self, parts)
        if arrays[0] is self.X:
            return self
        files = ArrayRows(arrays[0], arrays[1], arrays[2], rows_at_once=self.rows_at_once, name=self.name)
        files.names, files.labels = self.names, self.labels
        return files

    def identity(self) -> dict[str, Any]:
        """The shape and the names, and a digest of all rows."""
        chunks = (chunk for _, chunk in read_ahead(partial(ArrayRows.load, self), self.parts()))
        return {
            "shape": [self.n_rows, self.n_features, self.n_targets],
            "names": None if self.names is None else list(self.names),
            "content": digest_of(chunks),
            "rows_at_once": self.rows_at_once,
        }


def npy_rows(
    X: str | os.PathLike[str], y: Any = None, sample_weight: Any = None, *, rows_at_once: int | None = None
) -> ArrayRows:
    """Rows of a `.npy` file, read when needed; y and weights may be files too.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/X.npy", np.zeros((100, 3)))
    ...     npy_rows(f"{folder}/X.npy", np.ones(100)).n_rows
    100
    """
    arrays = [
        FileArray.npy(value) if isinstance(value, str | os.PathLike) else value for value in (X, y, sample_weight)
    ]
    return ArrayRows(arrays[0], arrays[1], arrays[2], rows_at_once=rows_at_once, name=Path(X).name)


def as_labels(y: Any) -> tuple[np.ndarray | None, Any]:
    """The sorted labels and the place of each target among them where targets are text; else None and y as it is.

    >>> as_labels(["b", "a", "b"])
    (array(['a', 'b'], dtype=object), array([1., 0., 1.]))
    """
    if y is None or isinstance(y, Tensor | FileArray):
        return None, y
    array = np.asarray(y)
    if array.ndim != 1 or array.dtype.kind not in "OUST":
        return None, y
    values = array.astype(object)
    text = np.array([isinstance(value, str) for value in values], dtype=bool)
    if not text.any():
        return None, y
    if not text.all():
        row = int((~text).argmax())
        raise InputTypeError(
            f"y has {values[row]!r:.60} in row {row} among labels that are text: give labels of one type."
        )
    labels, codes = np.unique(values, return_inverse=True)
    return labels, codes.astype(np.float64)


def _array(values: Any, name: str, ndim: int | None = None) -> Any:
    if values is None:
        return None
    refuse_masked(values, name)
    array = values if isinstance(values, Tensor | np.ndarray | FileArray) else plain_array(values, name)
    kind = "c" if isinstance(array, Tensor) and array.is_complex() else "f"
    if not isinstance(array, Tensor):
        kind = array.dtype.kind
    where = f" in {array.path}" if isinstance(array, FileArray) else ""
    if kind not in "fiub":
        raise InputTypeError(f"{name}{where} has dtype {array.dtype}; expected numbers.")
    if array.ndim not in ((ndim,) if ndim else (1, 2)):
        raise InputError(f"{name}{where} has shape {tuple(array.shape)}; expected {ndim or '1 or 2'} dimensions.")
    if name == "X" and array.shape[1] == 0:
        raise InputError("X has no columns: give at least one.")
    return array


def _mapped_files(*arrays: Any) -> dict[Path, FileMark]:
    """The files behind memory maps that only read; others are memory, which may change with its owner."""
    maps = (array for array in arrays if isinstance(array, np.memmap) and array.mode == "r")
    files = {Path(array.filename) for array in maps if array.filename is not None}
    return {path: FileMark.of(path) for path in files}


def _file(array: Any) -> Any:
    """The file behind an array that is one, mapped into memory as a whole; else the array itself."""
    whole = isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap) and array.filename is not None
    if not whole:
        return array
    by_columns = array.ndim > 1 and not array.flags.c_contiguous
    return FileArray(Path(array.filename), array.dtype, array.shape, array.offset, by_columns)


def _tensor(values: Any, rows: slice, dtype: torch.dtype) -> Tensor:
    """Some rows as a copy that owns its memory, so that a mapped file is read here and now."""
    if isinstance(values, Tensor):
        return values[rows].detach().to(dtype)
    wanted = np.float32 if dtype == torch.float32 else np.float64
    if isinstance(values, FileArray):
        return torch.from_numpy(values[rows].astype(wanted, copy=False))
    copied = torch.from_numpy(np.array(values[rows], dtype=wanted))
    forget_pages(values)
    return copied
