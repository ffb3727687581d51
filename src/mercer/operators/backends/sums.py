"""Sums of products of tiles: some in the precision of the tiles, all of them in float64."""

from __future__ import annotations

import torch
from torch import Tensor

from mercer.operators.dials import FEW_COLUMNS, TILES_AT_ONCE


class Sum:
    """A sum of products of tiles with some rows of V, added to `total`, in float64 or the dtype of the tiles."""

    def __init__(self, total: Tensor, dtype: torch.dtype, at_once: int = TILES_AT_ONCE) -> None:
        self.total, self.at_once, self.count = total, at_once, 0
        self.part = total if total.dtype == dtype else torch.zeros_like(total, dtype=dtype)

    def add(self, tile: Tensor, V: Tensor, place: slice | None = None) -> None:
        """Add ``tile @ V``, to the rows at `place`."""
        part = self.part if place is None else self.part[place]
        part.addmv_(tile, V) if V.ndim == 1 else part.addmm_(tile, V)
        self.count += 1
        if self.count == self.at_once:
            self.finish()

    def finish(self) -> None:
        """Add what is missing to the total."""
        if self.part is not self.total and self.count:
            self.total += self.part
            self.part.zero_()
        self.count = 0


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
