"""Rows for tuning: equal ones merged, so that integer weights and repeated rows are the same sample."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.selection.weights import positive_weights


@dataclass(frozen=True, eq=False)
class Rows:
    """A weighted sample: points, targets (n, t) and weights (n,).

    The points of a `square` sample are the rows of a ready Gram matrix, whose columns are the same points.
    """

    X: Points
    Y: Tensor
    weights: Tensor
    square: bool = False

    def __len__(self) -> int:
        return len(self.Y)

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return float(self.weights.sum())

    def take(self, index: Tensor | slice) -> Rows:
        """The rows at `index`."""
        X = self.X.take(index)
        if self.square:
            X = Points(X.values[:, index], X.names)
        return Rows(X, self.Y[index], self.weights[index], self.square)


def merged_rows(X: Points, Y: Tensor, weights: Tensor | None = None, *, square: bool = False) -> Rows:
    """Rows equal in X and in every target become one with their weights added, in an order that is always the same.

    Rows with the same x and different targets stay separate.

    >>> rows = merged_rows(Points(torch.tensor([[2.0], [1.0], [2.0]])), torch.tensor([5.0, 6.0, 5.0]))
    >>> rows.X.values, rows.weights
    (tensor([[1.],
            [2.]], dtype=torch.float64), tensor([1., 2.], dtype=torch.float64))
    """
    if not len(Y):
        raise InputError("There are no rows with weight to learn from.")
    Y = Y.to(torch.float64).reshape(len(Y), -1)
    w = positive_weights(weights, Y)
    if X.is_tensor:
        X = Points(X.values.to(device=Y.device, dtype=torch.float64), X.names)
        _, group = ranks([*X.values.T, *Y.T]).to(Y.device).unique(return_inverse=True)
    else:
        group = _object_groups(X, Y)
    n_groups = int(group.max()) + 1
    total = torch.zeros(n_groups, dtype=torch.float64, device=Y.device).index_add_(0, group, w)
    place = torch.arange(len(Y), device=Y.device)
    first = torch.full_like(group[:n_groups], len(Y)).scatter_reduce_(0, group, place, "amin")
    kept = Rows(X, Y, w, square).take(first)
    return replace(kept, weights=total)


def ranks(columns: list[Tensor]) -> Tensor:
    """For each row how many come before it, in the order of the first column, then of the second, and so on.

    Equal rows have equal ranks.

    >>> ranks([torch.tensor([2.0, 1.0, 2.0]), torch.tensor([5.0, 6.0, 4.0])])
    tensor([2, 0, 1])
    """
    rank = np.zeros(len(columns[0]), dtype=np.int64)
    tied = np.arange(len(rank))
    for column in columns:
        if not len(tied):
            break
        values = column.detach().cpu().numpy()[tied]
        order = np.lexsort((values, rank[tied]))
        rows, values = tied[order], values[order]
        before = rank[rows]
        block = np.append(True, before[1:] != before[:-1])
        first = block | np.append(True, values[1:] != values[:-1])
        place = np.arange(len(rows))
        since = (np.maximum.accumulate(np.where(start, place, 0)) for start in (first, block))
        rank[rows] = before + next(since) - next(since)
        alone = first & np.append(first[1:], True)
        tied = rows[~alone]
    return torch.from_numpy(rank)


def _object_groups(X: Points, Y: Tensor) -> Tensor:
    """The number of the group of equal objects with equal targets that each row belongs to."""
    keys = [
        (item if _hashable(item) else i, tuple(y)) for i, (item, y) in enumerate(zip(X.values, Y.tolist(), strict=True))
    ]
    distinct: list[Any] = list(dict.fromkeys(keys))
    with contextlib.suppress(TypeError):  # objects without an order keep that of their first appearance
        distinct.sort()
    number = {key: g for g, key in enumerate(distinct)}
    return torch.tensor([number[key] for key in keys], device=Y.device)


def _hashable(item: Any) -> bool:
    try:
        hash(item)
    except TypeError:
        return False
    return True


def subsample(rows: Rows, size: int, seed: int) -> Rows:
    """At most `size` of the rows, drawn without replacement, in random order."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(rows), generator=generator)[:size]
    return rows.take(order.to(rows.Y.device))
