"""Rows of Dask arrays and data frames."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeGuard

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError, InputTypeError
from mercer.data.rows.arrays import as_labels
from mercer.data.rows.held import HeldRows
from mercer.data.rows.source import Chunk, Part, RowSource


class DaskTable(Protocol):
    """An array or a data frame of Dask."""

    shape: Any
    ndim: int
    dtype: Any
    chunks: Any
    columns: Any
    rechunk: Callable[..., Any]
    map_partitions: Callable[..., Any]


class DaskRows(RowSource):
    """Rows of a Dask array or data frame; one part is one block of rows, or one partition.

    Blocks are computed when they are read, each time anew: call `persist` on the collection where it fits the memory
    of the cluster. Blocks of unknown length are counted first.

    Parameters
    ----------
    X : array-like of shape (n, d), or list of objects
        A Dask array of shape (n, d), or a Dask data frame of numbers.
    y : array-like of shape (n,) or (n, t)
        Targets: a Dask array, series or data frame, or an array; of a data frame X also the names of columns.
    sample_weight : array-like of shape (n,), or None
        Weights, in the same ways.

    Examples
    --------
    >>> import dask.array as da
    >>> source = DaskRows(da.ones((5, 2), chunks=(3, 1)), da.zeros(5, chunks=5))
    >>> source.n_rows, [len(part) for part in source.parts()]
    (5, [3, 2])
    """

    on_dask = True

    def __init__(self, X: Any, y: Any = None, sample_weight: Any = None) -> None:
        if not is_dask(X):
            raise InputTypeError(f"X is a {type(X).__name__}; expected a Dask array or data frame.")
        X, y, sample_weight = _columns(X, y, sample_weight)
        self.labels, y = _as_labels(y)
        self.names = tuple(map(str, X.columns)) if is_frame(X) else None
        self.X = _matrix(X, "X")
        if self.X.ndim != 2:
            raise InputError(f"X must be a matrix of shape (rows, features), got {self.X.ndim} dimension(s).")
        if self.X.shape[1] == 0:
            raise InputError("X has no columns: give at least one.")
        self.X = self.X.rechunk({1: -1})
        self.y, self.weights = self._beside(y, "y"), self._beside(sample_weight, "sample_weight")
        if self.weights is not None and self.weights.ndim != 1:
            raise InputError(f"sample_weight has shape {self.weights.shape}; expected one number for each row.")
        self.n_rows, self.n_features = map(int, self.X.shape)
        self.dtype = torch.float32 if self.X.dtype == np.float32 else torch.float64
        self.one_target = self.y is None or self.y.ndim == 1
        self.n_targets = 0 if self.y is None else 1 if self.y.ndim == 1 else int(self.y.shape[1])
        self.kind = "the Dask data frame" if self.names is not None else "the Dask array"
        self._delayed: list[list[Any] | None] | None = None

    def parts(self) -> list[Part]:
        parts, before = [], 0
        for place, count in enumerate(self.X.chunks[0]):
            if count:
                parts.append(Part(place, 0, int(count), before))
            before += int(count)
        return parts

    def load(self, part: Part) -> Chunk:
        result: Chunk = self.portion([part]).compute().load(part)
        return result

    def place(self, part: Part) -> str:
        return f"block {part.place} of {self.kind}"

    def portion(self, parts: list[Part]) -> Any:
        """A task of Dask that becomes the rows of these parts, on the worker where they are needed."""
        blocks = [None if arrays is None else [arrays[part.place] for part in parts] for arrays in self._blocks()]
        build = _Held(parts, self.dtype, self._plain())
        return importlib.import_module("dask").delayed(build, pure=False, traverse=False)(*blocks)

    def identity(self) -> dict[str, Any]:
        tokens = [None if array is None else str(array.name) for array in (self.X, self.y, self.weights)]
        return {"dask": tokens, "blocks": [int(count) for count in self.X.chunks[0]]}

    def _blocks(self) -> list[list[Any] | None]:
        if self._delayed is None:
            arrays = (self.X, self.y, self.weights)
            self._delayed = [None if array is None else list(array.to_delayed().reshape(-1)) for array in arrays]
        return self._delayed

    def _plain(self) -> DaskRows:
        """What a worker has to know: everything but the data."""
        plain = object.__new__(type(self))
        kept = ("names", "labels", "n_rows", "n_features", "n_targets", "one_target", "dtype", "kind")
        plain.__dict__ = {name: getattr(self, name) for name in kept}
        return plain

    def _beside(self, values: Any, name: str) -> Any:
        """Values in blocks like those of X."""
        if values is None:
            return None
        array = importlib.import_module("dask.array")
        rows = self.X.chunks[0]
        if not is_dask(values):
            values = np.asarray(values)
            _check_numbers(values.dtype, name)
            _check_length(len(values), sum(rows), name)
            return array.from_array(values, chunks=(rows, *values.shape[1:]))
        values = _matrix(values, name)
        if values.ndim not in (1, 2):
            raise InputError(f"{name} has {values.ndim} dimensions; expected 1 or 2.")
        _check_length(int(values.shape[0]), sum(rows), name)
        return values.rechunk({0: rows} | ({1: -1} if values.ndim == 2 else {}))


class _Held:
    """Blocks become held rows, on a worker; an object that Dask does not look into."""

    def __init__(self, parts: list[Part], dtype: torch.dtype, like: DaskRows) -> None:
        self.parts, self.dtype, self.like = parts, dtype, like
        self.__name__ = "rows"

    def __call__(self, X: list[Any], y: list[Any] | None, weights: list[Any] | None) -> HeldRows:
        chunks = []
        for i in range(len(self.parts)):
            targets = None if y is None else _tensor(y[i], torch.float64).reshape(len(y[i]), -1)
            weight = None if weights is None else _tensor(weights[i], torch.float64)
            chunks.append(Chunk(_tensor(X[i], self.dtype), targets, weight))
        for part, chunk in zip(self.parts, chunks, strict=True):
            for name, values in (("X", chunk.X), ("y", chunk.targets), ("sample_weight", chunk.weights)):
                if values is not None and len(values) != len(part):
                    raise InputError(
                        f"{name} has {len(values)} rows in {self.like.place(part)} but {len(part)} are expected: "
                        "give X, y and sample_weight the same partitions."
                    )
        return HeldRows(self.like, self.parts, chunks)


def is_dask(values: object) -> TypeGuard[DaskTable]:
    """Whether these are an array, a series or a data frame of Dask.

    >>> is_dask(np.ones(2))
    False
    """
    return hasattr(values, "__dask_graph__") and (hasattr(values, "chunks") or hasattr(values, "npartitions"))


def is_frame(values: Any) -> bool:
    """Whether these are a data frame of Dask."""
    return hasattr(values, "npartitions") and not hasattr(values, "chunks") and values.ndim == 2


def _columns(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Targets and weights that are named as columns of a frame X, taken out of it."""
    given = {"y": y, "sample_weight": sample_weight}
    taken: list[str] = []
    for name, value in given.items():
        wanted = [value] if isinstance(value, str) else value
        if not isinstance(wanted, list | tuple) or not all(isinstance(column, str) for column in wanted) or not wanted:
            continue
        if not is_frame(X):
            raise InputError(f"{name}={value!r} names columns, but X is not a data frame.")
        missing = [column for column in wanted if column not in X.columns]
        if missing:
            raise InputError(f"{name}: the data frame has no column {missing[0]!r}; it has {list(X.columns)}.")
        given[name] = X[value if isinstance(value, str) else list(wanted)]
        taken += wanted
    return (X.drop(columns=taken) if taken else X), given["y"], given["sample_weight"]


def _matrix(values: Any, name: str) -> Any:
    """A Dask array of numbers with blocks of known length."""
    if hasattr(values, "npartitions") and not hasattr(values, "chunks"):
        kinds: Sequence[tuple[Any, Any]] = (
            list(values.dtypes.items()) if is_frame(values) else [(values.name, values.dtype)]
        )
        for column, kind in kinds:
            _check_numbers(kind, f"Column {column!r} of {name}")
        single = all(kind == np.float32 for _, kind in kinds)
        return values.astype("float32" if single else "float64").to_dask_array(lengths=True)
    _check_numbers(values.dtype, name)
    if any(np.isnan(length) for lengths in values.chunks for length in lengths):
        values = values.copy().compute_chunk_sizes()
    return values


def _as_labels(y: Any) -> tuple[np.ndarray | None, Any]:
    """The sorted labels and the places of targets among them where these are text; gaps stay gaps."""
    if not hasattr(y, "__dask_graph__"):
        return as_labels(y)
    if hasattr(y, "chunks") or y.ndim != 1 or getattr(y.dtype, "kind", "O") not in "OUST":
        return None, y
    found = [label for label in y.unique().compute().tolist() if isinstance(label, str)]
    labels = np.array(sorted(found), dtype=object)
    return labels, y.map_partitions(_codes, labels, meta=(y.name, "f8"))


def _codes(series: Any, labels: np.ndarray) -> Any:
    """The places of labels, NaN for gaps."""
    return series.astype(object).map({label: float(i) for i, label in enumerate(labels)}).astype("float64")


def _check_numbers(dtype: Any, name: str) -> None:
    kind = getattr(dtype, "kind", "O")
    if kind not in "fiub":
        raise InputTypeError(f"{name} has dtype {dtype}; expected numbers. Encode text, dates and categories first.")


def _check_length(found: int, expected: int, name: str) -> None:
    if found != expected:
        raise InputError(f"{name} has {found} rows but X has {expected}.")


def _tensor(values: Any, dtype: torch.dtype) -> Tensor:
    return torch.from_numpy(np.array(values, dtype=np.float32 if dtype == torch.float32 else np.float64))
