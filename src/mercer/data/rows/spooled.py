"""Rows from an iterator of chunks, kept in temporary files so that they can be read again."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from mercer.core.arrays import column_names, refuse_masked
from mercer.core.errors import InputError, InputTypeError
from mercer.data.rows.arrays import ArrayRows
from mercer.data.rows.files import FileArray
from mercer.data.rows.source import rows_at_once_for

FILES = ("X", "y", "sample_weight")


def chunk_rows(chunks: Iterable[Any], *, folder: Any = None, rows_at_once: int | None = None) -> ArrayRows:
    """Rows from an iterator of chunks, each X, (X, y) or (X, y, sample_weight).

    A fit reads rows more than once and an iterator gives them once, so they are written to a temporary folder, by
    default that of the system, which is removed with the source. Chunks that are data frames must all have the same
    columns in the same order; their names are kept.

    >>> source = chunk_rows((np.ones((2, 3)) * i, np.ones(2)) for i in range(4))
    >>> source.n_rows, source.n_features
    (8, 3)
    """
    rows_at_once_for(1, rows_at_once)  # a wrong number is refused before anything is read
    place = Path(tempfile.mkdtemp(prefix="mercer-rows-", dir=folder))
    try:
        arrays, names = _spool(chunks, place)
        source = ArrayRows(*arrays, rows_at_once=rows_at_once, name="the chunks")
        source.names = names
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    weakref.finalize(source, shutil.rmtree, place, ignore_errors=True)
    return source


def _spool(chunks: Iterable[Any], place: Path) -> tuple[list[FileArray | None], tuple[str, ...] | None]:
    """Append every chunk to one file for each kind of array; these files, and the column names of X."""
    shapes: list[tuple[int, ...] | None] = []
    dtypes: list[Any] = []
    names: list[tuple[str, ...] | None] = []
    counts = [0, 0, 0]
    files = [(place / name).open("wb") for name in FILES]
    try:
        for number, chunk in enumerate(chunks):
            given = chunk if isinstance(chunk, tuple) else (chunk,)
            parts = [_plain(part, f"{name} of chunk {number}") for part, name in zip(given, FILES, strict=False)]
            parts += [None] * (3 - len(parts))
            columns = [column_names(part) for part in given]
            if not shapes:
                names = columns
                shapes = [None if part is None else part.shape[1:] for part in parts]
                dtypes = [_kept(part, i) for i, part in enumerate(parts)]
            if dtypes[0] == np.float32 and parts[0] is not None and parts[0].dtype != np.float32:
                raise InputError(f"X of chunk {number} is {parts[0].dtype}, but the chunks before it are float32.")
            for kind, found, expected in zip(FILES, columns, names, strict=False):
                _check_names(f"{kind} of chunk {number}", found, expected)
            for i, part in enumerate(parts):
                shape = None if part is None else part.shape[1:]
                if shape != shapes[i]:
                    raise InputError(f"{FILES[i]} of chunk {number} does not match the chunks before it.")
                if part is not None:
                    n = len(part) if parts[0] is None else len(parts[0])
                    if len(part) != n:
                        raise InputError(f"{FILES[i]} of chunk {number} has {len(part)} rows, X has {n}.")
                    files[i].write(np.ascontiguousarray(part, dtype=dtypes[i]).tobytes())
                    counts[i] += len(part)
    finally:
        for file in files:
            file.close()
    if not shapes or counts[0] == 0:
        raise InputError("The iterator gave no rows.")
    arrays = [
        None if shape is None else FileArray(place / name, np.dtype(dtype), (count, *shape))
        for name, shape, dtype, count in zip(FILES, shapes, dtypes, counts, strict=True)
    ]
    return arrays, names[0]


def _plain(part: Any, name: str) -> np.ndarray | None:
    if part is None:
        return None
    refuse_masked(part, name)
    array = part.detach().cpu().numpy() if isinstance(part, Tensor) else np.asarray(part)
    if array.dtype.kind not in "fiub":
        raise InputTypeError(f"{name} has dtype {array.dtype}; expected numbers.")
    return array


def _check_names(what: str, found: tuple[str, ...] | None, expected: tuple[str, ...] | None) -> None:
    if found != expected:
        one, other = (
            "no column names" if names is None else f"the columns {list(names)}" for names in (found, expected)
        )
        raise InputError(
            f"{what} has {one}, but the chunks before it have {other}: give all chunks the same, in one order."
        )


def _kept(part: np.ndarray | None, i: int) -> Any:
    """The type that is written: float32 rows stay so, all else is float64."""
    single = part is not None and part.dtype == np.float32 and i == 0
    return np.float32 if single else np.float64
