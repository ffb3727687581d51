"""Tables with text, categories, dates and gaps become numbers: the one place where that is done for all tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.data.table import Table, first_text
from mercer.estimators.tabular.encoder import TableEncoder


def is_mixed(X: Any) -> bool:
    """Whether X is a data frame with text, categories or dates.

    >>> is_mixed([["a"], ["b"]]), is_mixed(np.ones((2, 1)))
    (False, False)
    """
    return hasattr(X, "columns") and first_text(X) is not None


def encoded(frames: Sequence[Any]) -> list[Points]:
    """The rows of data frames with the same columns as numbers, encoded together: blind to which row is whose."""
    tables = [Table.of(frame) for frame in frames]
    for table in tables[1:]:
        if table.names != tables[0].names:
            raise InputError(f"The columns of X are {list(tables[0].names)} but those of Y are {list(table.names)}.")
    columns = {name: np.concatenate([table.columns[name] for table in tables]) for name in tables[0].names}
    whole = Table(columns, sum(map(len, tables)))
    encoder = TableEncoder.looking_at(whole)
    values = torch.from_numpy(np.ascontiguousarray(encoder.encode(whole), dtype=np.float64))
    return [Points(part, encoder.columns) for part in values.split([len(table) for table in tables])]
