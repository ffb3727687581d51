"""Tables with text, categories, dates and gaps become numbers: the one place where that is done for all tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.data.table import Column, Table, first_text
from mercer.estimators.tabular.encoder import TableEncoder
from mercer.estimators.tabular.treatments import as_texts

KINDS = {"f": "numbers", "b": "booleans", "M": "dates", "O": "text"}
JOINED = {"": "f", "f": "f", "b": "b", "M": "M", "O": "O", "Ob": "O", "bf": "f"}
"""What kinds of columns become together."""


def is_mixed(X: Any) -> bool:
    """Whether X is a data frame with text, categories or dates.

    >>> is_mixed([["a"], ["b"]]), is_mixed(np.ones((2, 1)))
    (False, False)
    """
    return hasattr(X, "columns") and first_text(X) is not None


def encoded(frames: Sequence[Any]) -> list[Points]:
    """The rows of data frames with the same columns as numbers, encoded together: blind to which row is whose."""
    tables = [Table.of(frame) for frame in frames]
    whole = together(tables)
    points = as_numbers(TableEncoder.looking_at(whole), whole)
    return [Points(part, points.names) for part in points.values.split([len(table) for table in tables])]


def as_numbers(encoder: TableEncoder, table: Table) -> Points:
    """The rows of a table that the encoder knows."""
    values = np.ascontiguousarray(encoder.encode(table), dtype=np.float64)
    return Points(torch.from_numpy(values), encoder.columns)


def together(tables: Sequence[Table], names: tuple[str, str] = ("X", "Y")) -> Table:
    """The rows of all tables as one, where they have the same columns of the same kinds.

    >>> table = together([Table.of({"a": [True, False]}), Table.of({"a": ["False", None]})])
    >>> table.columns["a"].tolist()
    ['True', 'False', 'False', None]
    """
    first = tables[0]
    for table in tables[1:]:
        if table.names != first.names:
            raise InputError(
                f"The columns of {names[0]} are {list(first.names)} but those of {names[1]} are {list(table.names)}."
            )
    columns = {name: _one_kind(name, [table.columns[name] for table in tables], names) for name in first.names}
    return Table(columns, sum(map(len, tables)))


def _one_kind(name: str, parts: Sequence[Column], names: tuple[str, str]) -> Column:
    """Parts of a column as one. Booleans go with text and with numbers, and a part without values with all."""
    found = [str(part.dtype.kind) for part in parts if not _is_empty(part)]
    kind = JOINED.get("".join(sorted(set(found))))
    if kind is None:
        a, b = (KINDS[k] for k in found)
        raise InputError(f"Column {name!r} holds {a} in {names[0]} but {b} in {names[1]}.")
    return np.concatenate([_as_kind(part, kind) for part in parts])


def _as_kind(part: Column, kind: str) -> Column:
    if part.dtype.kind == kind:
        return part
    if kind == "O":
        return np.array([*as_texts(part), None], dtype=object)[:-1]
    if kind == "M":
        return np.full(len(part), np.datetime64("NaT", "us"))
    return part.astype(np.float64)


def _is_empty(part: Column) -> bool:
    """Whether a column has no values at all, so that its kind is not known."""
    return part.dtype.kind == "f" and bool(np.isnan(part).all())
