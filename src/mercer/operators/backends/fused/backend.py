"""`FusedTiles`: the fused products as a back end of `gram`."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import NotTraceable
from mercer.core.memory import readable, require
from mercer.formula.symbols import Program
from mercer.operators.backends.fused.dials import MOST_COLUMNS
from mercer.operators.backends.fused.gradient import gradient
from mercer.operators.backends.fused.gram import FusedGram
from mercer.operators.backends.fused.launch import bytes_of_product
from mercer.operators.backends.tiles import Layout, Rows, Strip, Tiles

COLUMNS_AT_ONCE = MOST_COLUMNS, 64, 32, 16, 1


class FusedTiles(Tiles):
    """Products run in one fused loop, on data that are packed once; dense rows are tiles of the same formula."""

    cell_bytes = 5

    def __init__(self, gram: FusedGram) -> None:
        super().__init__(gram.shape, torch.float32, gram.device, one_sample=gram.same)
        self.gram = gram
        self.row_bytes = gram.samples.row_bytes
        self.notes = ("fused on the GPU", *gram.notes)

    @classmethod
    def of(cls, program: Program, x: Points, z: Points) -> FusedTiles:
        """The back end for a program and its data; one sample when z is x."""
        return cls(FusedGram(program, x, z, same=z is x, symmetric=z is x))

    def transposed(self) -> FusedTiles:
        return self if self.one_sample else FusedTiles(self.gram.T)

    @property
    def least_bytes(self) -> int:
        """Memory that a product takes with one column."""
        return self._needed(1, 1)

    def product(self, V: Tensor, budget: int) -> Tensor:
        return self.gram.product(V, self._columns_at_once(V, budget))

    def quadratic(self, U: Tensor, V: Tensor, budget: int) -> Tensor:
        at_once = self._columns_at_once(V[:, :1], budget)
        parts = zip(U.split(at_once, 1), V.split(at_once, 1), strict=True)
        return torch.cat([(u.double() * self.product(v, budget)).sum(0) for u, v in parts])

    def gradients(self, V: Tensor, W: Tensor) -> tuple[Tensor, Tensor] | None:
        try:
            found = gradient(self.gram.program, self.gram.x, self.gram.z, V, W, same=self.gram.same)
        except NotTraceable:  # the derivative of the formula has no fused form
            return None
        return found.x, found.z

    def rows_product(self, index: Tensor, V: Tensor, budget: int) -> Tensor:
        return self.gram.rows_product(index, V, self._columns_at_once(V, budget))

    def _columns_at_once(self, V: Tensor, budget: int) -> int:
        t = V[:1].numel()
        for at_once in COLUMNS_AT_ONCE:
            if self._needed(t, min(t, at_once)) <= budget:
                return at_once
        n, m = self.shape
        needed = self._needed(t, 1)
        what = f"a product of the {n:,} x {m:,} Gram matrix with {t:,} columns"
        require(needed, budget, what, f"Give it a memory_budget of at least {readable(needed)}, or fewer columns.")
        raise AssertionError("unreachable")

    def strips(self, layout: Layout) -> Callable[[Rows], Strip]:
        places = torch.arange(max(self.shape), device=self.device)
        return lambda rows: lambda columns: self.gram.block(places[rows], places[columns])

    def _layout(self, t: int, budget: int) -> Layout:
        return super()._layout(t, budget - self.gram.samples.bytes)

    def _needed(self, t: int, at_once: int) -> int:
        """Memory of the packed data, the result and the work of a product with t columns."""
        return self.gram.samples.bytes + 4 * self.shape[0] * t + bytes_of_product(self.shape, at_once)
