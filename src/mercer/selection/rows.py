"""Rows for tuning: equal ones merged, so that integer weights and repeated rows are the same sample."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.data.equal import Kinds
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
        raise InputError("All sample weights are zero: there are no rows to learn from.")
    Y = Y.to(torch.float64).reshape(len(Y), -1)
    w = positive_weights(weights, Y)
    if X.is_tensor:
        X = Points(X.values.to(device=Y.device, dtype=torch.float64), X.names)
    kinds = Kinds.of(X, Y)
    return replace(Rows(X, Y, w, square).take(kinds.first.to(Y.device)), weights=kinds.sums(w))


def subsample(rows: Rows, size: int, seed: int) -> Rows:
    """At most `size` of the rows, drawn without replacement, in random order."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(rows), generator=generator)[:size]
    return rows.take(order.to(rows.Y.device))
