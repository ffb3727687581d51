"""Kernel values of rows with their partners, k(x_i, z_i), without a matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points, Warp
from mercer.core.errors import InputTypeError
from mercer.kernels import Kernel
from mercer.kernels.pair import Pair, as_scale, row_values, vectors
from mercer.stats.dials import ROWS_AT_ONCE


class RowwisePair(Pair):
    """The pair of row i of one sample and row i of another: values are (n,) tensors.

    >>> from mercer.kernels import Linear
    >>> a, b = Points(torch.tensor([[1.0], [2.0]])), Points(torch.tensor([[3.0], [4.0]]))
    >>> Linear().of(RowwisePair(a, b))
    tensor([3., 8.])
    """

    def __init__(self, x: Points, z: Points) -> None:
        self.x, self.z = x, z

    def warped(self, warp: Warp) -> RowwisePair:
        return RowwisePair(warp(self.x), warp(self.z))

    def squared_distance(self, length_scale: Any = 1.0, *, exact: bool = False) -> Tensor:
        return self._scaled(length_scale).square().sum(1)

    def squared_sum(self) -> Tensor:
        return (vectors(self.x) + vectors(self.z)).square().sum(1)

    def l1_distance(self, length_scale: Any = 1.0) -> Tensor:
        return self._scaled(length_scale).abs().sum(1)

    def inner(self) -> Tensor:
        return (vectors(self.x) * vectors(self.z)).sum(1)

    def same(self) -> Tensor:
        return vectors(self.x).new_zeros(len(self.x))

    def ends(self, function: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
        return row_values(function, self.x), row_values(function, self.z)

    def columns(self) -> int:
        return vectors(self.x).shape[1]

    def matrix(self, gram: Callable[..., Tensor], diag: Callable[..., Tensor]) -> Tensor:
        from mercer.kernels.pair import DensePair

        rows = [gram(DensePair(self.x.take(s), self.z.take(s))) for s in (slice(i, i + 1) for i in range(len(self.x)))]
        return torch.cat(rows).reshape(-1)

    def _scaled(self, length_scale: Any) -> Tensor:
        difference = vectors(self.x) - vectors(self.z)
        return difference / as_scale(length_scale, difference)


def paired_values(kernel: Kernel, points: Points, i: Tensor, j: Tensor) -> Tensor:
    """k(x_i, x_j) for pairs of places, in float64."""
    if kernel.domain == "matrix":
        raise InputTypeError("A ready Gram matrix has no rows to pair.")
    width = points.values.shape[1] if points.is_tensor else 1
    step = max(1, ROWS_AT_ONCE // max(1, width))
    return torch.cat(
        [_paired(kernel, points.take(a), points.take(b)) for a, b in zip(i.split(step), j.split(step), strict=True)]
    )


def _paired(kernel: Kernel, x: Points, z: Points) -> Tensor:
    value = kernel.of(RowwisePair(x, z))
    if not isinstance(value, Tensor):
        value = torch.tensor(float(value))
    return value.double().expand(len(x))
