"""Equal rows: what they are is said here alone, for length scales, landmarks, tuning, copies, folds and functions.

Numbers are equal as numbers are: 0.0 and -0.0 are, two that differ in the last digit are not, and float32 numbers equal
themselves in float64. Objects are equal with their types; those that cannot be hashed equal themselves alone.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points


@dataclass(frozen=True, eq=False)
class Kinds:
    """The different rows of a sample.

    Attributes
    ----------
    group : Tensor
        The number of the kind of each row, (n,).
    first : Tensor
        The first place of each kind, (k,).
    """

    group: Tensor
    first: Tensor

    @classmethod
    def of(cls, *parts: Points | Tensor) -> Kinds:
        """Rows are of a kind where they are equal in all parts; kinds are in the order of their values.

        Objects without an order keep that of their first appearance.

        >>> kinds = Kinds.of(torch.tensor([[2.0], [0.0], [2.0], [-0.0]]))
        >>> kinds.group, kinds.first
        (tensor([1, 0, 1, 0]), tensor([1, 0]))
        """
        columns = [column for part in parts for column in _columns(part)]
        number, group = ranks(columns).unique(return_inverse=True)
        places = torch.arange(len(group))
        first = torch.full((len(number),), len(group)).scatter_reduce_(0, group, places, "amin")
        return cls(group, first)

    def __len__(self) -> int:
        return len(self.first)

    def sums(self, values: Tensor | None = None) -> Tensor:
        """The sum over each kind, of ones where no values are given."""
        values = torch.ones(len(self.group), dtype=torch.float64) if values is None else values
        return values.new_zeros(len(self), *values.shape[1:]).index_add_(0, self.group.to(values.device), values)

    def as_they_come(self) -> Kinds:
        """The same, numbered in the order in which they come first."""
        order = self.first.argsort()
        return Kinds(order.argsort()[self.group], self.first[order])


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


def mixed_keys(X: Points) -> Tensor:
    """One integer per row, of its values' ranks among those of the sample; distinct rows share one with probability
    1e-19. Neither the order nor repetitions of rows nor the units of columns change it, and its own order is as good as
    random: for draws and folds that only the content of rows decides.
    """
    if not X.is_tensor:
        return _mixed(_numbers(X.values))
    key = torch.zeros(len(X), dtype=torch.int64)
    for column in X.values.detach().cpu().T:
        key = _mixed(key ^ column.unique(return_inverse=True)[1])
    return key


def distinct_rows(X: Points, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The place of one row of each kind that has weight, in the order of `mixed_keys`, and their weights.

    >>> distinct_rows(Points(torch.tensor([[1.0], [2.0], [1.0]])))[1].sort().values
    tensor([1., 2.], dtype=torch.float64)
    """
    weight = None if weights is None else weights.detach().cpu().to(torch.float64)
    used = torch.arange(len(X)) if weight is None else (weight > 0).nonzero().squeeze(1)
    rows = X if weight is None else X.take(used)
    kinds = Kinds.of(rows)
    order = mixed_keys(rows.take(kinds.first)).argsort()
    return used[kinds.first[order]], kinds.sums(None if weight is None else weight[used])[order]


def _columns(part: Points | Tensor) -> list[Tensor]:
    if isinstance(part, Tensor):
        return list(part.reshape(len(part), -1).T)
    return list(part.values.T) if part.is_tensor else [_numbers(part.values)]


def _numbers(items: list[Any]) -> Tensor:
    """A number for each object, by their order where they have one."""
    places: dict[int, int] = {}
    keys = [
        (type(item), item) if _hashable(item) else (object, places.setdefault(id(item), i))
        for i, item in enumerate(items)
    ]
    kinds: list[Any] = list(dict.fromkeys(keys))
    with contextlib.suppress(TypeError):
        kinds.sort(key=lambda key: key[1])
    number = {key: i for i, key in enumerate(kinds)}
    return torch.tensor([number[key] for key in keys], dtype=torch.long)


def _hashable(item: Any) -> bool:
    try:
        hash(item)
    except TypeError:
        return False
    return True


def _mixed(key: Tensor) -> Tensor:
    """A bijection of 64-bit integers that spreads every bit; Steele, Lea and Flood, 2014."""
    key = key + -0x61C8864680B583EB
    key = (key ^ ((key >> 30) & (2**34 - 1))) * -0x40A7B892E31B1A47
    key = (key ^ ((key >> 27) & (2**37 - 1))) * -0x6B2FB644ECCEEE15
    return key ^ ((key >> 31) & (2**33 - 1))
