"""Predictions for rows by fits to others: by folds, and forecasts of blocks of ordered rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.data.given import Order
from mercer.data.sample import Sample
from mercer.estimators.dials import BLOCKS, FOLDS, FORECAST
from mercer.selection.loss_alpha import fold_numbers

OTHER_FOLDS, FORECASTS = "fits to other folds", "forecasts of blocks from the rows before"
"""How rows were left out, in words."""

Refit = Callable[[Sample], Callable[[Points], Tensor]]
"""A fit to some rows, as a function that predicts."""


def seen_from(sample: Sample, index: Tensor, fitted: Tensor) -> Points:
    """The rows at `index` as a fit to those at `fitted` sees them."""
    rows = sample.rows.take(index)
    return Points(rows.values[:, fitted]) if sample.square else rows


def cross_fitted(refit: Refit, sample: Sample, folds: int = FOLDS) -> Tensor:
    """For each row the prediction of a fit to the rows of other folds, (n, t); equal rows share a fold."""
    numbers = fold_numbers(sample.rows, sample.targets, folds=folds)
    if int(numbers.max()) == 0:
        raise InputError("All rows are equal, so no row can be predicted from the others.")
    found: list[tuple[Tensor, Tensor]] = []
    for k in numbers.unique():
        kept, out = (numbers != k).nonzero().squeeze(1), (numbers == k).nonzero().squeeze(1)
        found.append((out, refit(sample.take(kept))(seen_from(sample, out, kept)).cpu()))
    return _joined(found, len(sample))


def forecast(refit: Refit, sample: Sample, order: Tensor) -> tuple[Tensor, Tensor]:
    """The places of the rows of later blocks, and their predictions from all rows before the block, (m, t)."""
    places, found = [], []
    for kept, out in later_blocks(order):
        places.append(out)
        found.append(_columns(refit(sample.take(kept))(seen_from(sample, out, kept)).cpu()))
    return torch.cat(places), torch.cat(found)


def later_blocks(order: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Places of earlier rows and of a block that follows: the last five tenths, one after the other.

    `order` are the ranks of the rows; equal ranks stay together.

    >>> [len(earlier) for earlier, block in later_blocks(torch.arange(100))]
    [50, 60, 70, 80, 90]
    """
    distinct = order.unique()
    if len(distinct) < 2 * BLOCKS:
        raise InputError(f"order= has {len(distinct)} different values; forecasts need at least {2 * BLOCKS}.")
    starts = [int(block[0]) for block in np.array_split(distinct.numpy(), BLOCKS)][-FORECAST:]
    for start, end in zip(starts, [*starts[1:], int(distinct[-1]) + 1], strict=True):
        yield (order < start).nonzero().squeeze(1), ((order >= start) & (order < end)).nonzero().squeeze(1)


def checked_order(order: Order, n_rows: int) -> Tensor | None:
    """The ranks of rows in time, from numbers, dates or text that can be sorted; equal ones share a rank.

    >>> checked_order(["2024-02", "2024-01", "2024-02"], 3)
    tensor([1, 0, 1])
    """
    if order is None:
        return None
    values = np.asarray(order)
    if values.shape != (n_rows,):
        raise InputError(f"order has shape {values.shape} but there are {n_rows} rows: give one value for each.")
    try:
        ranks = np.unique(values, return_inverse=True)[1]
    except TypeError as error:
        raise InputError(f"order cannot be sorted: {error}") from error
    if bool(np.any(values != values)):  # neither NaN nor NaT equals itself
        raise InputError("order contains missing values.")
    return torch.from_numpy(ranks.astype(np.int64))


def _joined(found: list[tuple[Tensor, Tensor]], n_rows: int) -> Tensor:
    columns = [(out, _columns(values)) for out, values in found]
    joined = torch.empty(n_rows, columns[0][1].shape[1], dtype=torch.float64)
    for out, values in columns:
        joined[out] = values.to(torch.float64)
    return joined


def _columns(values: Tensor) -> Tensor:
    return values.reshape(len(values), -1)
