"""Rows of data from numpy, pandas, polars or torch become one thing, `Points`, and results go back as they came."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError, InputTypeError
from mercer.core.threads import GRAIN, LONG

IMPUTE = "remove or impute it first."
IMPUTE_ROWS = "impute it, for example with SimpleImputer."
REPLACE = "replace it or remove it first."

FLOATS = (torch.float32, torch.float64)


@dataclass(frozen=True, eq=False)
class Points:
    """A sample: an (n, d) tensor with optional column names, or a list of any objects.

    `borrowed` where the memory belongs to somebody else, who may write into it; `is_tensor` for a table of numbers.
    """

    values: Any
    names: tuple[str, ...] | None = None
    borrowed: bool = False
    is_tensor: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_tensor", isinstance(self.values, Tensor))

    def __len__(self) -> int:
        return len(self.values)

    def take(self, index: slice | Tensor) -> Points:
        """Rows at `index`, with the same names."""
        if self.is_tensor:
            return Points(self.values[index], self.names, self.borrowed and isinstance(index, slice))
        rows = range(len(self))[index] if isinstance(index, slice) else index.tolist()
        return Points([self.values[i] for i in rows], self.names, self.borrowed)

    def owned(self) -> Points:
        """The same in memory of its own, a copy row by row as in files; objects are copied where they are arrays."""
        if not self.borrowed:
            return self
        by_rows = torch.contiguous_format
        values = self.values.clone(memory_format=by_rows) if self.is_tensor else list(map(_copied, self.values))
        return replace(self, values=values, borrowed=False)

    def double(self) -> Points:
        """The same in float64; objects stay as they are."""
        return Points(self.values.to(torch.float64), self.names) if self.is_tensor else self

    @property
    def borrowed_bytes(self) -> int:
        """What `owned` takes for a table."""
        return self.values.numel() * self.values.element_size() if self.borrowed and self.is_tensor else 0


def as_points(
    X: Any, name: str = "X", *, objects: bool = False, names: Sequence[str] | None = None, source: Any = None
) -> Points:
    """Convert a sample to `Points`.

    With `objects`, only two-dimensional arrays and frames of numbers become a tensor; lists of strings, graphs,
    numbers or lists stay the objects they are. `names` are those of the columns, where X does not tell them, and
    `source` is what X was made of, where it is not the caller's.
    """
    if isinstance(X, Points):
        return X
    if hasattr(X, "toarray"):
        raise InputTypeError(f"{name} is a sparse matrix; mercer needs dense data: pass {name}.toarray().")
    frame = _frame(X, name)
    if objects and not _is_table(X, frame):
        return Points(_object_list(X, frame, name), borrowed=True)
    if isinstance(X, Tensor):
        return Points(_check_matrix(checked_tensor(X, name), name), borrowed=X.dtype in FLOATS)
    array = plain_array(X, name) if frame is None else _frame_array(frame, name)
    names = column_names(X) if names is None else tuple(names)
    values = _check_matrix(_tensor_from_numpy(array, name), name, names)
    return Points(values, names, is_borrowed(values.numpy(), X if source is None else source))


def is_borrowed(array: np.ndarray, X: Any) -> bool:
    """Whether an array that was made of X may be the memory of X.

    >>> X = np.zeros((2, 2))
    >>> is_borrowed(X[1:], X), is_borrowed(X.copy(), X), is_borrowed(np.asarray([[1.0]]), [[1.0]])
    (True, False, False)
    """
    if isinstance(X, np.ndarray):
        return np.may_share_memory(array, X)
    if isinstance(X, list | tuple):
        return False
    frame = _frame(X, "X")
    if frame is None:
        return array.base is not None  # a view of what only X knows
    plain = (column for column in frame.iter_columns() if column.dtype in (nw.Float64, nw.Float32))
    return any(np.may_share_memory(array, column.to_numpy()) for column in plain)


def _copied(item: Any) -> Any:
    if isinstance(item, np.ndarray):
        return item.copy()
    return item.clone() if isinstance(item, Tensor) else item


def column_names(X: Any) -> tuple[str, ...] | None:
    """Column names of a pandas, polars or arrow table when all are strings, else None."""
    frame = _frame(X, "X")
    return tuple(frame.columns) if frame is not None and all(isinstance(c, str) for c in frame.columns) else None


def restore(result: Tensor, like: Any) -> Any:
    """Give `result` back as the caller's kind of array: torch for torch, numpy for everything else."""
    return result if isinstance(like, Tensor) else result.detach().cpu().numpy()


def check_finite(values: Tensor, name: str, names: Sequence[str] | None = None, advice: str = IMPUTE) -> None:
    """Raise an error that points at the first NaN or infinity of `values`, with the column's name where it has one."""
    if _sum_is_finite(values.detach()):  # quick: NaN and infinities survive in a sum
        return
    finite = torch.isfinite(values)
    if bool(finite.all()):
        return
    index = tuple((~finite).nonzero()[0].tolist())
    missing = bool(torch.isnan(values[index]))
    column = repr(names[index[1]]) if names is not None else ", ".join(map(str, index[1:]))
    places = {0: "the only number", 1: f"position {index[0] if index else 0}"}
    where = places.get(len(index)) or f"row {index[0]}, column {column}"
    raise InputError(
        f"{name} contains {'NaN' if missing else 'infinity'} (first: {where}); {advice if missing else REPLACE}"
    )


def _sum_is_finite(values: Tensor) -> bool:
    pieces = quiet_pieces(values) if values.numel() <= LONG else (values,)
    return all(bool(torch.isfinite(part.sum())) for part in pieces)


def quiet_pieces(values: Tensor) -> Sequence[Tensor]:
    """Some rows at a time, so few that torch wakes none of its threads; on a GPU, all.

    >>> [len(part) for part in quiet_pieces(torch.zeros(5000, 10))]
    [3276, 1724]
    """
    if values.device.type != "cpu" or values.numel() <= GRAIN:
        return (values,)
    return values.split(max(1, GRAIN * len(values) // values.numel()))


def checked_values(values: Tensor, what: str, first: int = 0) -> Tensor:
    """What was found for each row of X, or an error that names the rows where it overflows.

    `first` is the number of the first row.

    >>> checked_values(torch.tensor([1.0, float("inf"), 2.0]), "Predictions")
    Traceback (most recent call last):
    mercer.core.errors.InputError: Predictions overflow float32 at 1 of 3 rows of X (first: row 1): ...
    """
    if _sum_is_finite(values.detach()):  # quick: NaN and infinities survive in a sum
        return values
    bad = ~torch.isfinite(values.detach()).reshape(len(values), -1).all(1)
    if not bool(bad.any()):
        return values
    rows = f"{int(bad.sum()):,} of {len(bad):,} rows of X (first: row {first + int(bad.nonzero()[0])})"
    raise InputError(
        f"{what} overflow {str(values.dtype).removeprefix('torch.')} at {rows}: the kernel is too large there. "
        "Check these rows for wrong units, or scale the columns of X before fitting."
    )


def promote(*tensors: Tensor) -> list[Tensor]:
    """The tensors in their common dtype, on the device of the first."""
    dtype = tensors[0].dtype
    for t in tensors[1:]:
        dtype = torch.promote_types(dtype, t.dtype)
    return [t.to(device=tensors[0].device, dtype=dtype) for t in tensors]


def _frame(X: Any, name: str) -> nw.DataFrame[Any] | None:
    """X as a narwhals frame when it is a pandas, polars or arrow table."""
    if isinstance(X, np.ndarray | Tensor | list | tuple):
        return None
    refuse_lazy(X, name)
    labels = list(getattr(X, "column_names", getattr(X, "columns", ())))
    twice = next((c for c in labels if isinstance(c, str) and labels.count(c) > 1), None)
    if twice is not None:
        raise InputError(f"{name} has more than one column named {twice!r}; column names must differ.")
    frame = nw.from_native(X, pass_through=True, eager_only=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def _frame_array(frame: nw.DataFrame[Any], name: str) -> np.ndarray:
    """The columns of a frame side by side, in float32 when all are, else float64."""
    columns = list(frame.iter_columns())
    for column in columns:
        if not _is_number(column):
            raise InputTypeError(
                f"{name} has a column {column.name!r} of type {column.dtype}; expected numbers. "
                "Encode text, dates and categories first."
            )
    if not columns:
        raise InputError(f"{name} has no columns: give at least one.")
    dtype = np.float32 if all(column.dtype == nw.Float32 for column in columns) else np.float64
    return np.column_stack([column_numbers(column).astype(dtype, copy=False) for column in columns])


def column_numbers(column: Any) -> np.ndarray:
    """A column of numbers in float64; gaps are NaN, and integers that float64 does not hold are rounded.

    >>> column_numbers(nw.new_series("a", [1, None, 2**62 + 1], nw.Int64, backend="pyarrow"))
    array([1.00000000e+00,            nan, 4.61168602e+18])
    """
    try:
        found = column.cast(nw.Float64).to_numpy()
    except Exception:  # arrow casts no integer that is rounded
        values = zip(column.to_list(), column.is_null().to_list(), strict=True)
        found = [np.nan if gap else float(value) for value, gap in values]
    return np.asarray(found, dtype=np.float64)


def _is_number(column: Any) -> bool:
    return bool(column.dtype.is_numeric() or column.dtype == nw.Boolean)


def refuse_lazy(X: Any, name: str) -> None:
    """Raise `InputTypeError` for a table that has not been computed, such as polars' LazyFrame."""
    if hasattr(X, "collect") and not isinstance(X, type):
        raise InputTypeError(f"{name} is a {type(X).__name__}, which is not computed yet: pass {name}.collect().")


def refuse_tensor(values: Any, name: str) -> None:
    """Raise `InputTypeError` for a tensor that does not hold its numbers as they are."""
    if not isinstance(values, Tensor):
        return
    if values.layout is not torch.strided:
        raise InputTypeError(f"{name} is a sparse tensor; mercer needs dense data: pass {name}.to_dense().")
    if values.is_meta:
        raise InputTypeError(f"{name} is a tensor on the device 'meta', which has a shape but no numbers.")
    if values.is_quantized:
        raise InputTypeError(f"{name} is a quantized tensor: pass {name}.dequantize().")


def refuse_masked(values: Any, name: str) -> None:
    """Raise `InputTypeError` for an array with masked entries, whose numbers have no meaning."""
    if isinstance(values, np.ma.MaskedArray) and bool(np.ma.getmaskarray(values).any()):
        raise InputTypeError(f"{name} is an array with masked entries; fill or remove them first.")


def plain_array(X: Any, name: str) -> np.ndarray:
    """X as an array, where its rows have one length."""
    refuse_masked(X, name)
    try:
        return np.asarray(X)
    except ValueError:
        raise InputError(f"{name} must be a matrix of numbers, but its rows differ in length.") from None


def _is_table(X: Any, frame: nw.DataFrame[Any] | None) -> bool:
    """Whether X is a table of real numbers, rather than a collection of objects."""
    if frame is not None:
        return all(map(_is_number, frame.iter_columns()))
    if isinstance(X, Tensor):
        return X.ndim == 2
    return isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub"


def _object_list(X: Any, frame: nw.DataFrame[Any] | None, name: str) -> list[Any]:
    if frame is not None:
        return list(frame.to_numpy())
    if isinstance(X, str | bytes):
        raise InputTypeError(f"{name} is one string, {X[:20]!r}; pass a list of them.")
    if isinstance(X, set | frozenset | dict):
        raise InputTypeError(f"{name} is a {type(X).__name__}, which has no order; pass a list of objects.")
    try:
        return list(X)
    except TypeError:
        raise InputTypeError(f"{name} must be a list of objects or a table, got {type(X).__name__}.") from None


def _tensor_from_numpy(array: np.ndarray, name: str) -> Tensor:
    if array.dtype.kind == "c":
        raise InputTypeError(f"{name} is complex ({array.dtype}); mercer takes real numbers.")
    if array.dtype.kind not in "fiub":
        raise InputTypeError(
            f"{name} has dtype {array.dtype}; expected numbers (float32, float64 or integers). "
            "Encode text and categories first."
        )
    if array.dtype == np.float16:
        raise InputTypeError(f"{name} has dtype float16; convert it to float32 or float64 first.")
    native = array.dtype.newbyteorder("=")
    dtype = native if native in (np.float32, np.float64) else np.dtype(np.float64)
    array = array.astype(dtype, copy=not array.flags.writeable or any(s < 0 for s in array.strides))
    return torch.from_numpy(array)


def checked_tensor(X: Tensor, name: str) -> Tensor:
    """A dense tensor of real numbers in float32 or float64."""
    refuse_tensor(X, name)
    if X.is_complex():
        raise InputTypeError(f"{name} is complex ({X.dtype}); mercer takes real numbers.")
    if X.is_floating_point() and X.dtype not in FLOATS:
        raise InputTypeError(f"{name} has dtype {X.dtype}; convert it to float32 or float64 first.")
    return X if X.dtype in FLOATS else X.to(torch.float64)


def _check_matrix(values: Tensor, name: str, names: Sequence[str] | None = None) -> Tensor:
    if values.ndim != 2:
        hint = f" Reshape it with {name}.reshape(-1, 1) if it is one feature." if values.ndim == 1 else ""
        hint = f" Make images rows by {name}.reshape(len({name}), -1)." if values.ndim > 2 else hint
        raise InputError(f"{name} must be a matrix of shape (rows, features), got shape {tuple(values.shape)}.{hint}")
    if values.shape[1] == 0:
        raise InputError(f"{name} has no columns: give at least one.")
    check_finite(values, name, names, IMPUTE_ROWS)
    return values


Warp = Callable[[Points], Points]


@dataclass(frozen=True)
class Columns:
    """The warp that keeps some columns, by position or by name."""

    columns: tuple[int | str, ...]

    def __call__(self, points: Points) -> Points:
        if not points.is_tensor:
            raise InputTypeError("Columns can be selected from a table of numbers only, not from objects.")
        index = self.positions(points.values.shape[1], points.names)
        names = None if points.names is None else tuple(points.names[i] for i in index)
        return Points(points.values[:, index], names)

    def positions(self, n_columns: int, names: Sequence[str] | None) -> list[int]:
        return [self._position(c, n_columns, names) for c in self.columns]

    @staticmethod
    def _position(column: int | str, n_columns: int, names: Sequence[str] | None) -> int:
        if isinstance(column, str):
            if names is None:
                raise InputError(f"Column {column!r} is asked for by name but the data have no column names.")
            if column not in names:
                raise InputError(f"Column {column!r} is not in the data; its columns are {list(names)}.")
            return names.index(column)
        if not -n_columns <= column < n_columns:
            raise InputError(f"Column {column} is asked for but the data have {n_columns} columns.")
        return column % n_columns
