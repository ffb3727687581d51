"""A sample: rows, targets and weights, checked once, and what is remembered of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.data.equal import Kinds

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Seen:
    """What is remembered of a sample once it is gone.

    `torch_in` remembers that rows came as a tensor, so that fitted attributes are tensors too; `dtype` is that of the
    rows, None for objects.
    """

    n_rows: int
    n_targets: int
    total_weight: float
    one_target: bool
    torch_in: bool
    dtype: torch.dtype | None
    device: torch.device = CPU

    def given_back(self, values: Tensor) -> Any:
        """A result as the caller's kind of array, one-dimensional when the targets were."""
        if self.one_target:
            values = values.reshape(len(values))
        return values.to(self.device) if self.torch_in else values.detach().cpu().numpy()

    def rows_given_back(self, points: Points) -> Any:
        """Rows as the caller's kind of array, or the list of objects."""
        values = points.values
        return values if self.torch_in or not isinstance(values, Tensor) else values.numpy()

    def with_more(self, other: Seen) -> Seen:
        """The same after more rows."""
        if other.n_targets != self.n_targets:
            raise InputError(f"y has {other.n_targets} target(s) but the model was started with {self.n_targets}.")
        return replace(self, n_rows=self.n_rows + other.n_rows, total_weight=self.total_weight + other.total_weight)


@dataclass(frozen=True)
class Sample:
    """Rows, float64 targets of shape (n, t) and float64 weights, or None for equal ones.

    The rows of a `square` sample are those of a ready Gram matrix, whose columns are the same points. `units` are what
    one row weighs, (n,), or None for one: rows of a heavy class are heavy, not repeated.
    """

    rows: Points
    targets: Tensor
    weights: Tensor | None
    one_target: bool
    torch_in: bool = False
    square: bool = False
    units: Tensor | None = None

    def __len__(self) -> int:
        return len(self.targets)

    @cached_property
    def seen(self) -> Seen:
        """What is remembered when the rows are not."""
        n, values = len(self.targets), self.rows.values
        total = float(n) if self.weights is None else float(self.weights.sum())
        dtype, device = (values.dtype, values.device) if self.rows.is_tensor else (None, torch.device("cpu"))
        return Seen(n, self.targets.shape[1], total, self.one_target, self.torch_in, dtype, device)

    @cached_property
    def kinds(self) -> Kinds:
        """Which rows are equal."""
        return Kinds.of(self.rows)

    @property
    def n_positive(self) -> int:
        """The number of rows of positive weight."""
        return len(self.targets) if self.weights is None else int((self.weights > 0).sum())

    def positive(self) -> tuple[Sample, Tensor | None]:
        """The rows of positive weight and their places, or all rows and None."""
        if self.weights is None or bool((self.weights > 0).all()):
            return self, None
        index = self.weights.nonzero().squeeze(1)
        return self.take(index), index

    def take(self, index: Tensor) -> Sample:
        """The rows at `index` as a sample of their own."""
        rows = self.rows.take(index)
        if self.square:
            rows = Points(rows.values[:, index])
        weights, units = (None if given is None else given[index] for given in (self.weights, self.units))
        return replace(self, rows=rows, targets=self.targets[index], weights=weights, units=units)


def spread(values: Tensor, places: Tensor | None, n_rows: int) -> Tensor:
    """Values of the rows of positive weight, with zeros for the others.

    >>> spread(torch.ones(1), torch.tensor([1]), 3), spread(torch.ones(1), None, 1)
    (tensor([0., 1., 0.]), tensor([1.]))
    """
    if places is None:
        return values
    full = values.new_zeros(n_rows, *values.shape[1:])
    full[places.to(values.device)] = values
    return full
