"""Rows of arrays, memory maps and `.npy` files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError, InputTypeError
from mercer.core.rows.source import ROWS_AT_ONCE, Chunk, Part, RowSource, equal_parts


class ArrayRows(RowSource):
    """Rows of a numpy array or memory map, or of a tensor; nothing is copied before it is read.

    >>> source = ArrayRows(np.arange(6.0).reshape(3, 2), np.ones(3), rows_at_once=2)
    >>> source.n_rows, [len(chunk.X) for chunk in source]
    (3, [2, 1])
    """

    def __init__(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, rows_at_once: int = ROWS_AT_ONCE, name: str = "X"
    ) -> None:
        self.X, self.y, self.weights = _array(X, "X", 2), _array(y, "y"), _array(sample_weight, "sample_weight", 1)
        self.name, self.rows_at_once = name, int(rows_at_once)
        if self.rows_at_once < 1:
            raise InputError(f"rows_at_once={rows_at_once}: must be at least 1.")
        self.n_rows, self.n_features = self.X.shape
        self.dtype = torch.float32 if self.X.dtype in (np.float32, torch.float32) else torch.float64
        self.one_target = self.y is None or self.y.ndim == 1
        self.n_targets = 0 if self.y is None else 1 if self.y.ndim == 1 else self.y.shape[1]
        for label, values in (("y", self.y), ("sample_weight", self.weights)):
            if values is not None and len(values) != self.n_rows:
                raise InputError(f"{label} has {len(values)} rows but X has {self.n_rows}.")

    def parts(self) -> list[Part]:
        return equal_parts([self.n_rows], self.rows_at_once)

    def load(self, part: Part) -> Chunk:
        rows = slice(part.start, part.stop)
        y = None if self.y is None else _tensor(self.y[rows], torch.float64).reshape(len(part), -1)
        weights = None if self.weights is None else _tensor(self.weights[rows], torch.float64)
        return Chunk(_tensor(self.X[rows], self.dtype), y, weights)

    def place(self, part: Part) -> str:
        return self.name

    def identity(self) -> dict[str, Any]:
        first = self.load(Part(0, 0, min(100, self.n_rows), 0))
        content = b"".join(t.contiguous().numpy().tobytes() for t in first if t is not None)
        return {
            "shape": [self.n_rows, self.n_features, self.n_targets],
            "first_rows": hashlib.sha256(content).hexdigest(),
            "rows_at_once": self.rows_at_once,
        }


def npy_rows(
    X: str | os.PathLike[str], y: Any = None, sample_weight: Any = None, *, rows_at_once: int = ROWS_AT_ONCE
) -> ArrayRows:
    """Rows of a `.npy` file, mapped into memory and read when needed; y and weights may be files too."""
    arrays = [_mapped(value) if isinstance(value, str | os.PathLike) else value for value in (X, y, sample_weight)]
    return ArrayRows(arrays[0], arrays[1], arrays[2], rows_at_once=rows_at_once, name=Path(X).name)


def _mapped(path: str | os.PathLike[str]) -> np.ndarray:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"There is no file {os.fspath(path)}.") from None
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{os.fspath(path)} is not an array that numpy can read: {error}") from error


def _array(values: Any, name: str, ndim: int | None = None) -> Any:
    if values is None:
        return None
    array = values if isinstance(values, Tensor | np.ndarray) else np.asarray(values)
    kind = array.dtype.kind if isinstance(array, np.ndarray) else "c" if array.is_complex() else "f"
    if kind not in "fiub":
        raise InputTypeError(f"{name} has dtype {array.dtype}; expected numbers.")
    if array.ndim not in ((ndim,) if ndim else (1, 2)):
        raise InputError(f"{name} has shape {tuple(array.shape)}; expected {ndim or '1 or 2'} dimensions.")
    if name == "X" and array.shape[1] == 0:
        raise InputError("X has no columns.")
    return array


def _tensor(values: Any, dtype: torch.dtype) -> Tensor:
    """A copy that owns its memory, so that a mapped file is read here and now."""
    if isinstance(values, Tensor):
        return values.detach().to(dtype)
    return torch.from_numpy(np.array(values, dtype=np.float32 if dtype == torch.float32 else np.float64))
