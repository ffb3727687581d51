"""From a table to a regression problem: which columns, are they numbers, and which rows are for testing."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.cli.dials import SHOWN
from mercer.cli.tables import Table, is_index
from mercer.core.errors import InputError


@dataclass(frozen=True)
class Problem:
    """Rows X of shape (n, d), targets y, optional weights, and their names."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    features: tuple[str, ...]
    target: str
    source: str
    weight_column: str | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: np.ndarray) -> Problem:
        """The problem with some rows only."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, X=self.X[rows], y=self.y[rows], weights=weights)


def problem_from(table: Table, target: str, features: Sequence[str] | None, weights: str | None) -> Problem:
    """The problem of predicting one column of a table from others, every number checked."""
    target = find_column(table, target, "--target")
    weights = None if weights is None else find_column(table, weights, "--weights")
    chosen, notes = features_of(table, table.source, features, [target] if weights is None else [target, weights])
    y = numbers(table, target)
    problem = Problem(matrix(table, chosen), y, None, chosen, target, table.source, weights, notes)
    return checked_problem(problem, None if weights is None else checked_weights(table, weights))


def features_of(
    table: Table, source: str, features: Sequence[str] | None, used: Sequence[str], drop: Sequence[str] = ()
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns to learn from, all besides those `used` where none are named, and notes on those that are not."""
    if features is None:
        chosen = tuple(name for name in table.features if name not in (*used, *drop))
    else:
        chosen = tuple(find_column(table, name, "--features") for name in features)
        both = [name for name in chosen if name in used]
        if both:
            raise InputError(f"--features names {quoted(both)}, which is the target or the weights.")
    if not chosen:
        raise InputError(f"{source} has no column besides {quoted(used)} to learn from.")
    reject_text(table, (*chosen, *used))
    index = [name for name in table.columns if is_index(name) and name not in (*chosen, *used)]
    return chosen, tuple(f"Column {name!r} looks like a row index and is not used as a feature." for name in index)


def checked_problem(problem: Problem, weights: np.ndarray | None) -> Problem:
    """The problem with its weights, if there is anything to learn; rows of weight zero are as good as absent."""
    y = problem.y
    if len(y) > 1 and (y == y[0]).all():
        raise InputError(f"Every value of the target {problem.target!r} is {y[0]:g}: there is nothing to learn.")
    if weights is None:
        return problem
    return replace(problem, weights=weights).take(np.flatnonzero(weights > 0))


def find_column(table: Table, name: str, option: str) -> str:
    """The column called `name`, or at that place among the features; the error lists what there is."""
    if name in table.columns:
        return name
    if name.isdecimal() and int(name) < len(table.features):
        return table.features[int(name)]
    if name in table.left_out:
        raise InputError(f"{option} {name}: array {name!r} of {table.source} {table.left_out[name]}.")
    raise InputError(f"{option} {name}: {table.source} has no column {name!r}.{_advice(table, name)}")


def where_is(name: str, known: Sequence[str], usual: Sequence[str], option: str, source: str) -> str:
    """The column of that name, or at that place among the usual ones, -1 for the last; the error lists what there is.

    >>> where_is("-1", ("a", "b"), ("a", "b"), "--target", "f.csv")
    'b'
    """
    if name in known:
        return name
    if name.lstrip("-").isdecimal() and -len(usual) <= int(name) < len(usual):
        return usual[int(name)]
    like = closest(name, known)
    hint = f" Did you mean {like!r}?" if like else ""
    raise InputError(f"{option} {name}: {source} has no column {name!r}.{hint} Its columns: {listed(list(known))}.")


def missing_columns(table: Table, names: Sequence[str]) -> None:
    """Raise an error that lists the columns a model needs and a table does not have."""
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise InputError(
            f"{table.source} lacks {len(missing)} of the {len(names)} columns the model was fitted on: "
            f"{quoted(missing)}.{_advice(table, missing[0])}"
        )


def reject_text(table: Table, names: Iterable[str]) -> None:
    """Raise an error that names every column that does not hold numbers, and one value that is none."""
    text = [name for name in dict.fromkeys(names) if is_text(table.columns[name])]
    if not text:
        return
    row, value = _first_text(table.columns[text[0]])
    numeric = [name for name in table.features if not is_text(table.columns[name])]
    example = f" ({text[0]!r} has {value!r} in row {row + 1})" if row >= 0 else ""
    raise InputError(
        f"{'Columns' if len(text) > 1 else 'Column'} {quoted(text)} of {table.source} "
        f"{'do' if len(text) > 1 else 'does'} not hold numbers{example}. Choose columns with --features "
        f"(those with numbers: {listed(numeric) or 'none'}), or encode text as numbers first."
    )


def matrix(table: Table, names: Sequence[str]) -> np.ndarray:
    """The columns side by side as float64."""
    X = np.empty((table.n_rows, len(names)))
    for j, name in enumerate(names):
        X[:, j] = numbers(table, name)
    return X


def numbers(table: Table, name: str) -> np.ndarray:
    """A column as float64; the error points at the first value that is missing or infinite."""
    column = table.columns[name]
    array = np.asarray(column if isinstance(column, np.ndarray) else _arrow_to_numpy(column), dtype=np.float64)
    bad = ~np.isfinite(array)
    if bad.any():
        row = int(np.argmax(bad))
        what = "is infinite" if np.isinf(array[row]) else "is missing"
        more = f" ({int(bad.sum())} such values in this column)" if bad.sum() > 1 else ""
        raise InputError(
            f"Column {name!r} of {table.source}: the value in row {row + 1} {what}{more}. "
            "Rows count from 1 after the header. Remove such rows or fill the values in first."
        )
    return array


def checked_weights(table: Table, name: str) -> np.ndarray:
    """A column of weights: none negative, some positive."""
    weights = numbers(table, name)
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise InputError(f"Column {name!r} holds a negative weight ({weights[row]:g} in row {row + 1}).")
    if not weights.any():
        raise InputError(f"Every weight in column {name!r} is zero.")
    return weights


def quoted(names: Iterable[str]) -> str:
    """Names in quotes, for messages."""
    return listed([repr(name) for name in names])


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def closest(name: str, names: Iterable[str]) -> str | None:
    """The name most like `name`, whatever the case."""
    folded = {n.casefold(): n for n in names}
    found = difflib.get_close_matches(name.casefold(), folded, n=1)
    return folded[found[0]] if found else None


def _advice(table: Table, name: str) -> str:
    like = closest(name, table.columns)
    hint = f" Did you mean {like!r}?" if like else ""
    columns = list(table.columns)
    if all(_looks_numeric(column) for column in columns):
        hint += " The first line looks like data; it should name the columns."
    return f"{hint} Its columns: {listed(columns)}."


def _looks_numeric(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def is_text(column: Any) -> bool:
    """Whether a column holds words, not numbers."""
    if isinstance(column, np.ndarray):
        return column.dtype.kind not in "fiub"
    from pyarrow import types

    kind = column.type
    return not (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    )


def _first_text(column: Any) -> tuple[int, Any]:
    """Place and value of the first entry that is not a number, -1 where each could be one."""
    values = column if isinstance(column, np.ndarray) else (value.as_py() for value in column)
    for row, value in enumerate(values):
        shown = value.item() if isinstance(value, np.generic) else value
        if shown is not None and not (isinstance(shown, str) and _looks_numeric(shown)):
            return row, shown if isinstance(shown, str) else str(shown)
    return -1, None


def _arrow_to_numpy(column: Any) -> np.ndarray:
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
