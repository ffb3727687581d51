"""The labels of a source: which there are, what their rows weigh, and where each comes first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.data.dials import MOST_KINDS
from mercer.data.engines.engine import Arrays, Engine, grouped
from mercer.data.engines.sample import most_rows
from mercer.data.engines.serial import SerialEngine
from mercer.data.rows.source import Part, RowSource
from mercer.data.rows.stream import read_ahead


@dataclass(frozen=True, eq=False)
class Labels:
    """The sorted `values` that targets have, what they stand for, the weight of each and the first row that has it."""

    values: Tensor
    classes: np.ndarray
    weights: Tensor
    first: Tensor


def labels_of(source: RowSource, engine: Engine | None) -> Labels:
    """The labels of the rows that have weight, found in one pass over the targets.

    >>> from mercer.data.rows.arrays import ArrayRows
    >>> source = ArrayRows(np.zeros((4, 1)), np.array(["b", "a", "b", "b"]), rows_at_once=2)
    >>> found = labels_of(source, None)
    >>> found.classes, found.weights, found.first
    (array(['a', 'b'], dtype=object), tensor([1., 3.], dtype=torch.float64), tensor([1, 0]))
    """
    if source.n_targets != 1:
        raise InputError(f"y has {source.n_targets} columns; a classifier has one target.")
    engine = SerialEngine() if engine is None else engine
    groups = grouped(source.parts(), engine.group_rows or most_rows(source))
    found = engine.reduce(_joined, engine.map_groups(_counted, source, groups))
    values = found["values"]
    if source.labels is not None:
        classes = source.labels[values.long().numpy()]
    else:
        whole = bool((values == values.floor()).all()) and float(values.abs().max()) < 2**53
        classes = values.numpy().astype(np.int64) if whole else values.numpy()
    return Labels(values, classes, found["weights"], found["first"])


def _counted(rows: RowSource, parts: list[Part]) -> Arrays:
    total: Arrays | None = None
    for part, (_, targets, weights) in read_ahead(rows.targets_of, parts):
        assert targets is not None
        y = targets[:, 0]
        w = torch.ones_like(y) if weights is None else weights
        places = torch.arange(part.before, part.before + len(y))
        if weights is not None:
            y, w, places = y[w > 0], w[w > 0], places[w > 0]
        here = _merged(y, w, places)
        total = here if total is None else _joined(total, here)
    assert total is not None
    return total


def _joined(a: Arrays, b: Arrays) -> Arrays:
    return _merged(*(torch.cat([a[name], b[name]]) for name in ("values", "weights", "first")))


def _merged(values: Tensor, weights: Tensor, places: Tensor) -> Arrays:
    kinds, which = torch.unique(values, return_inverse=True)
    if len(kinds) > MOST_KINDS:
        raise InputError(
            f"y has more than {MOST_KINDS:,} different values, which are numbers rather than labels: use "
            "KernelRidge or KernelRegressor."
        )
    first = torch.full((len(kinds),), torch.iinfo(torch.int64).max).scatter_reduce(0, which, places, "amin")
    return {"values": kinds, "weights": weights.new_zeros(len(kinds)).index_add(0, which, weights), "first": first}
