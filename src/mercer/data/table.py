"""`Table`: columns by name, as people have them: numbers, text, booleans and moments in time, with gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from torch import Tensor

from mercer.core.arrays import checked_tensor, column_numbers, plain_array, refuse_lazy, refuse_masked
from mercer.core.errors import InputError, InputTypeError, MercerError
from mercer.data.texts import as_number

Column = np.ndarray
"""float64 with NaN, bool, datetime64[us] with NaT, or objects: text, with None for a gap."""


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length by name.

    >>> table = Table.of({"size": [80, None], "city": ["Oslo", "Rome"]})
    >>> table.columns["size"], table.columns["city"]
    (array([80., nan]), array(['Oslo', 'Rome'], dtype=object))
    """

    columns: Mapping[str, Column]
    n_rows: int
    named: bool = True

    @classmethod
    def of(cls, X: Any) -> Table:
        """A table from a data frame of pandas, polars or another library that narwhals reads, or from an array."""
        if isinstance(X, Table):
            return X
        if hasattr(X, "toarray"):
            raise InputTypeError("X is a sparse matrix, and sparse data are not supported: pass X.toarray().")
        if isinstance(X, Mapping):
            return cls._of_columns({str(name): plain_column(np.asarray(v), name) for name, v in X.items()})
        frame = None if isinstance(X, np.ndarray | Tensor | list | tuple) else _frame(X)
        if frame is not None:
            return cls._of_columns({str(column.name): _of_series(column) for column in frame.iter_columns()})
        refuse_masked(X, "X")
        return cls._of_array(checked_tensor(X, "X").detach().cpu().numpy() if isinstance(X, Tensor) else X)

    @classmethod
    def _of_columns(cls, columns: dict[str, Column]) -> Table:
        lengths = {len(column) for column in columns.values()}
        if len(lengths) > 1:
            raise InputError(f"The columns of X differ in length: {sorted(lengths)}.")
        return cls(columns, lengths.pop() if lengths else 0)

    @classmethod
    def _of_array(cls, X: Any) -> Table:
        array = plain_array(X, "X")
        if array.dtype.kind in "US" and isinstance(X, list | tuple):
            array = np.asarray(X, dtype=object)
        if array.ndim != 2:
            hint = " Reshape your data with X.reshape(-1, 1) if it is one feature." if array.ndim == 1 else ""
            raise InputError(f"X must be a table of rows and columns, got shape {array.shape}.{hint}")
        if array.dtype.kind == "c":
            raise InputError("X is complex. Complex data not supported.")
        columns = {f"x{j}": plain_column(array[:, j], j) for j in range(array.shape[1])}
        return cls(columns, len(array), named=False)

    @classmethod
    def joined(cls, tables: Sequence[Table]) -> Table:
        """The rows of tables with the same columns, one after the other; a column without values fits any kind.

        >>> Table.joined([Table.of({"city": ["Oslo"]}), Table.of({"city": [None]})]).columns["city"]
        array(['Oslo', None], dtype=object)
        """
        names, first = tables[0].names, tables[0]
        columns = {name: _joined([table.columns[name] for table in tables]) for name in names}
        return cls(columns, sum(map(len, tables)), first.named)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.columns)

    def __len__(self) -> int:
        return self.n_rows

    def take(self, rows: np.ndarray | slice) -> Table:
        """Some of the rows."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        n_rows = len(next(iter(columns.values()))) if columns else 0
        return Table(columns, n_rows, self.named)

    def only(self, names: Sequence[str]) -> Table:
        """Some of the columns."""
        return Table({name: self.columns[name] for name in names}, self.n_rows, self.named)

    def without(self, names: Sequence[str]) -> Table:
        """The other columns."""
        return self.only([name for name in self.columns if name not in names])


def plain_column(values: np.ndarray, name: Any = "") -> Column:
    """An array as one of the kinds of columns; objects are numbers where all of them are, and else text."""
    kind = values.dtype.kind
    if values.ndim != 1:
        raise InputTypeError(f"Column {name!r} holds arrays; expected one value for each row.")
    if kind == "b":
        return values
    if kind in "iuf":
        return values.astype(np.float64)
    if kind == "M":
        return values.astype("datetime64[us]")
    if kind == "m":
        return _seconds(values)
    return _of_objects(values.tolist() if kind in "US" else list(values), name)


def _joined(columns: Sequence[Column]) -> Column:
    """Columns one after the other, of the kind that all of them fit."""
    known = {column.dtype.kind for column in columns if not _is_empty(column)}
    if len(known | {column.dtype.kind for column in columns}) == 1:
        return np.concatenate(columns)
    if known <= {"f", "b"}:
        return np.concatenate([column.astype(np.float64) for column in columns])
    if known == {"M"}:
        gaps = np.datetime64("NaT", "us")
        return np.concatenate([np.full(len(c), gaps) if _is_empty(c) else c for c in columns])
    texts = [np.array([None if _is_gap(v) else str(v) for v in column.tolist()], dtype=object) for column in columns]
    return np.concatenate(texts)


def _is_empty(column: Column) -> bool:
    return column.dtype.kind in "fO" and all(_is_gap(value) for value in column.tolist())


def _of_objects(values: list[Any], name: Any) -> Column:
    gaps = [_is_gap(value) for value in values]
    known = [value for value, gap in zip(values, gaps, strict=True) if not gap]
    if known and all(isinstance(value, bool | np.bool_) for value in known) and len(known) == len(values):
        return np.array(values, dtype=bool)
    if all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in known):
        return _floats([np.nan if gap else value for value, gap in zip(values, gaps, strict=True)], name)
    if known and all(isinstance(value, date) for value in known):
        moments = [None if gap else value for value, gap in zip(values, gaps, strict=True)]
        return np.array(moments, dtype="datetime64[us]")
    strange = next((v for v in known if isinstance(v, dict | list | tuple | set | np.ndarray)), None)
    if strange is not None:
        raise InputTypeError(
            f"Column {name!r} holds a {type(strange).__name__}; argument must be a string or a real number."
        )
    column = np.empty(len(values), dtype=object)
    column[:] = [None if gap else str(value) for value, gap in zip(values, gaps, strict=True)]
    return column


def _floats(values: list[Any], name: Any) -> Column:
    try:
        return np.array([float(value) for value in values])
    except OverflowError:
        raise InputError(f"Column {name!r} has a number beyond what float64 can hold; rescale it.") from None


def _is_gap(value: Any) -> bool:
    """None, NaN, the missing values of data frames, and text without a letter."""
    if value is None:
        return True
    if isinstance(value, str):
        return not value.strip()
    return bool(type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value))


def _frame(X: Any) -> nw.DataFrame[Any] | None:
    refuse_lazy(X, "X")
    labels = list(map(str, getattr(X, "column_names", getattr(X, "columns", ()))))
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise InputError(f"X has more than one column named {twice!r}; column names must differ.")
    frame = nw.from_native(X, pass_through=True, eager_only=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def _of_series(column: Any) -> Column:
    kind = column.dtype
    if kind == nw.Boolean:
        return plain_column(np.asarray(column.to_numpy()), column.name)
    if kind.is_numeric():
        return column_numbers(column)
    if kind in (nw.Datetime, nw.Date):
        moments = column.cast(nw.Datetime("us")) if kind == nw.Date else column
        if getattr(kind, "time_zone", None) is not None:
            moments = moments.dt.replace_time_zone(None)
        return np.asarray(moments.to_numpy()).astype("datetime64[us]")
    if kind == nw.Duration:
        return _seconds(np.asarray(column.to_numpy()))
    if kind in (nw.String, nw.Categorical, nw.Enum):
        column = column.cast(nw.String)
    return _of_objects(column.to_list(), column.name)


def _seconds(durations: np.ndarray) -> Column:
    whole = durations.astype("timedelta64[us]")
    return np.where(np.isnat(whole), np.nan, whole.astype(np.float64) / 1e6)


MOMENTS = (nw.Date, nw.Datetime, nw.Duration, nw.Time)
"""Kinds of columns that are counts of units since some day to numpy, in which a gap is a number too."""


def first_moment(X: Any) -> tuple[int, str | int, Any] | None:
    """Row, column and value of the first entry of a frame or an array that is a date or a duration; None without.

    >>> first_moment(np.array([["2024-05-01"]], dtype="datetime64[D]"))
    (0, 0, '2024-05-01')
    """
    if isinstance(X, list | tuple):
        with suppress(ValueError):
            X = np.asarray(X[:1])
    if isinstance(X, np.ndarray):
        return (0, 0, str(X.flat[0])) if X.dtype.kind in "Mm" and X.size else None
    frame = nw.from_native(X, pass_through=True, eager_only=True)
    columns = frame.iter_columns() if isinstance(frame, nw.DataFrame) else ()
    return next(((0, c.name, str(c.to_list()[0])) for c in columns if c.dtype in MOMENTS and len(c)), None)


def first_text(X: Any) -> tuple[int, str | int, Any] | None:
    """Row, column and value of the first entry of a table or an array that is text or a date; None where none is.

    >>> first_text(np.array([[1.0, "2"], [3.0, "Rome"]], dtype=object))
    (1, 1, 'Rome')
    """
    try:
        table = Table.of(X)
    except MercerError:
        return None
    for j, (name, column) in enumerate(table.columns.items()):
        label = name if table.named else j
        if column.dtype.kind == "M":
            return 0, label, str(column[0])
        if column.dtype.kind == "O":
            texts = enumerate(column.tolist())
            row = next((i for i, text in texts if text is not None and as_number(text, ".") is None), None)
            if row is not None:
                return row, label, column[row]
    return None
