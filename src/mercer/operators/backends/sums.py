"""Sums of products of tiles: some in the precision of the tiles, all of them in float64."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.operators.backends.costs import costs
from mercer.operators.dials import FEW_COLUMNS, TILES_AT_ONCE

Array = np.ndarray[Any, np.dtype[Any]]


class Sum:
    """A sum of products of tiles with some rows of V in `total`, in float64 or the dtype of the tiles.

    `empty` where the total may hold anything yet: what comes first is written there, not added.
    """

    def __init__(self, total: Tensor, dtype: torch.dtype, at_once: int = TILES_AT_ONCE, *, empty: bool = True) -> None:
        self.total, self.at_once, self.empty, self.count = total, at_once, empty, 0
        self.part = total if total.dtype == dtype else torch.empty_like(total, dtype=dtype)

    def add(self, tile: Tensor, V: Tensor, place: slice | None = None) -> None:
        """Add ``tile @ V``, to the rows at `place`."""
        nothing = self.count == 0 and (self.empty or self.part is not self.total)
        part = self.part if place is None else self.part[place]
        if nothing and len(part) == len(self.part):
            torch.matmul(tile, V, out=part)
        else:
            if nothing:
                self.part.zero_()
            part.addmv_(tile, V) if V.ndim == 1 else part.addmm_(tile, V)
        self.count += 1
        if self.count == self.at_once:
            self.finish()

    def finish(self) -> None:
        """Add what is missing to the total."""
        if self.count == 0 and self.empty:
            self.total.zero_()
        elif self.count and self.part is not self.total:
            self.total.copy_(self.part) if self.empty else self.total.add_(self.part)
        self.count, self.empty = 0, False


class VectorSum:
    """The same for a vector, in arrays of numpy: its products are quicker on some processors, and its calls on all."""

    def __init__(self, total: Array, at_once: int = TILES_AT_ONCE, *, empty: bool = True) -> None:
        self.total, self.at_once, self.empty, self.count = total, at_once, empty, 0
        self.part: Array | None = None

    def add(self, tile: Array, v: Array, place: slice | None = None) -> None:
        """Add ``tile @ v``, to the rows at `place`."""
        found = np.dot(tile, v)
        if place is not None and len(found) < len(self.total):
            if self.part is None:
                self.part = np.zeros(len(self.total), found.dtype)
            self.part[place] += found
        elif self.part is None:
            self.part = found
        else:
            self.part += found
        self.count += 1
        if self.count == self.at_once:
            self.finish()

    def finish(self) -> None:
        """Add what is missing to the total."""
        if self.part is None:
            if self.empty:
                self.total[...] = 0.0
        elif self.empty:
            self.total[...] = self.part
        else:
            self.total += self.part
        self.part, self.count, self.empty = None, 0, False


def ways(V: Tensor, dtype: torch.dtype) -> tuple[Callable[[Tensor], Any], Callable[..., Any]]:
    """How tiles, V and totals are looked at to be added up, and what does it: numpy where it is quicker."""
    if V.ndim == 1 and V.device.type == "cpu" and costs().vectors_by_openblas:
        return Tensor.numpy, VectorSum
    return _itself, partial(Sum, dtype=dtype)


def _itself(values: Tensor) -> Tensor:
    return values


def empty_by_columns(V: Tensor, n: int, dtype: torch.dtype, copies: int = 1) -> Tensor:
    """Room for products of n rows with V, some copies of it: each column in one piece.

    >>> empty_by_columns(torch.ones(3, 2), 5, torch.float64).stride()
    (10, 1, 5)
    """
    room = torch.empty(copies, *V.shape[1:], n, dtype=dtype, device=V.device)
    return room.mT if V.ndim == 2 else room


def few_columns(V: Tensor) -> bool:
    """Whether the columns of a product with V should lie in one piece each."""
    return V.ndim == 2 and V.device.type == "cpu" and 2 <= V.shape[1] <= FEW_COLUMNS.get(V.dtype, 0)
