"""Rows for tuning: equal ones merged, so that integer weights and repeated rows are the same sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.selection.weights import positive_weights


@dataclass(frozen=True, eq=False)
class Rows:
    """A weighted sample: points, targets (n, t) and weights (n,)."""

    X: Points
    Y: Tensor
    weights: Tensor

    def __len__(self) -> int:
        return len(self.Y)

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return float(self.weights.sum())

    def take(self, index: Tensor | slice) -> Rows:
        """The rows at `index`."""
        return Rows(self.X.take(index), self.Y[index], self.weights[index])


def merged_rows(X: Points, Y: Tensor, weights: Tensor | None = None) -> Rows:
    """Rows equal in X and in every target become one with their weights added, in an order that is always the same.

    Rows with the same x and different targets stay separate.

    >>> rows = merged_rows(Points(torch.tensor([[2.0], [1.0], [2.0]])), torch.tensor([5.0, 6.0, 5.0]))
    >>> rows.X.values, rows.weights
    (tensor([[1.],
            [2.]], dtype=torch.float64), tensor([1., 2.], dtype=torch.float64))
    """
    Y = Y.to(torch.float64).reshape(len(Y), -1)
    w = positive_weights(weights, Y)
    if not X.is_tensor:
        return _merged_objects(X, Y, w)
    values = X.values.to(device=Y.device, dtype=torch.float64)
    table, group = torch.unique(torch.cat([values, Y], dim=1), dim=0, return_inverse=True)
    total = torch.zeros(len(table), dtype=torch.float64, device=Y.device).index_add_(0, group, w)
    d = values.shape[1]
    return Rows(Points(table[:, :d].contiguous(), X.names), table[:, d:].contiguous(), total)


def _merged_objects(X: Points, Y: Tensor, w: Tensor) -> Rows:
    first: dict[Any, int] = {}
    total: dict[Any, float] = {}
    for i, (item, targets) in enumerate(zip(X.values, Y.tolist(), strict=True)):
        key = (item if _hashable(item) else i, tuple(targets))
        first.setdefault(key, i)
        total[key] = total.get(key, 0.0) + float(w[i])
    try:
        keys = sorted(first)
    except TypeError:  # objects without an order keep that of their first appearance
        keys = list(first)
    index = torch.tensor([first[key] for key in keys])
    return Rows(X.take(index), Y[index], torch.tensor([total[key] for key in keys], dtype=torch.float64))


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
