"""Sums over all pairs of different rows, for many kernels at once: what every test with resampling needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import NotFiniteError
from mercer.core.memory import require, resolve_budget
from mercer.kernels import Kernel
from mercer.operators.backends.cuts import slices
from mercer.stats.dials import EXACT_ROWS, LEAST_ROWS, LEAST_TILES, TILE_NUMBERS, TILES
from mercer.stats.sharing import SharedPair


@dataclass(frozen=True, eq=False)
class PairSums:
    r"""For each kernel, with :math:`K_0` its Gram matrix without the diagonal:

    Attributes
    ----------
    rows : Tensor
        (k, N), the sums of the rows of K_0.
    squares : Tensor
        (k,), the sum of the squares of K_0.
    diagonal : Tensor
        (k, N), what was left out.
    forms : Tensor
        (k, B), v_b^T K_0 v_b for the columns of V.
    dtype : torch.dtype
        In which products were made.
    """

    rows: Tensor
    squares: Tensor
    diagonal: Tensor
    forms: Tensor
    dtype: torch.dtype

    @property
    def totals(self) -> Tensor:
        """(k,), the sums over all pairs."""
        return self.rows.sum(1)


def pair_sums(
    kernels: Sequence[Kernel],
    points: Points,
    V: Tensor | None = None,
    *,
    memory_budget: Any = None,
    dtype: torch.dtype | None = None,
) -> PairSums:
    r"""Sums over the pairs of different rows, tile by tile; no matrix of N x N or N x B numbers is formed.

    Row sums and totals are accumulated in float64. The forms multiply in `dtype`: float64 for few rows and for kernels
    that are not bounded by one, else float32. They lose no digits to a constant in K where the columns of V have mean
    zero.

    >>> from mercer.kernels import Linear
    >>> x = Points(torch.tensor([[1.0], [2.0], [4.0]]).double())
    >>> sums = pair_sums([Linear()], x, torch.ones(3, 1))
    >>> sums.forms.tolist(), sums.rows.tolist(), sums.squares.tolist()
    ([[28.0]], [[6.0, 10.0, 12.0]], [168.0])
    """
    n = len(points)
    device = points.values.device if points.is_tensor else torch.device("cpu")
    dtype = precision(kernels, n) if dtype is None else dtype
    V = torch.empty(n, 0) if V is None else V
    if dtype == torch.float32 and V.shape[1]:
        return _shuffled(kernels, points, V, memory_budget)
    return _summed(kernels, points, V, memory_budget, dtype, device)


def _shuffled(kernels: Sequence[Kernel], points: Points, V: Tensor, memory_budget: Any) -> PairSums:
    """The sums of the same rows in random order: a column of V whose signs are sorted would have large partial sums."""
    order = torch.randperm(len(points), generator=torch.Generator().manual_seed(0))
    device = points.values.device if points.is_tensor else torch.device("cpu")
    found = _summed(kernels, points.take(order), V[order.to(V.device)], memory_budget, torch.float32, device)
    back = order.argsort()
    return replace(found, rows=found.rows[:, back], diagonal=found.diagonal[:, back])


def _summed(
    kernels: Sequence[Kernel], points: Points, V: Tensor, memory_budget: Any, dtype: torch.dtype, device: torch.device
) -> PairSums:
    n = len(points)
    V = V.to(device=device, dtype=dtype)
    rows = _rows_of_tile(n, V.shape[1], len(kernels), dtype, resolve_budget(memory_budget, device))
    sums = torch.zeros(len(kernels), n, dtype=torch.float64, device=device)
    squares = torch.zeros(len(kernels), dtype=torch.float64, device=device)
    diagonal = torch.zeros_like(sums)
    forms = torch.zeros(len(kernels), V.shape[1], dtype=torch.float64, device=device)
    places = torch.arange(n, device=device)
    for part in slices(0, n, rows):
        rest = slice(part.start, n)
        pair = _pair(points, part, rest, places, dtype)
        size = part.stop - part.start
        for k, kernel in enumerate(kernels):
            tile = pair.value(kernel)
            square = tile[:, :size]
            diagonal[k, part] = square.diagonal().double()
            square.fill_diagonal_(0.0)
            sums[k, part] += tile.sum(1, dtype=torch.float64)
            sums[k, part.stop :] += tile[:, size:].sum(0, dtype=torch.float64)
            tile[:, size:] *= 2.0
            squares[k] += 0.5 * float(tile[:, size:].square().sum(dtype=torch.float64)) + float(
                square.square().sum(dtype=torch.float64)
            )
            if V.shape[1]:
                forms[k] += (tile @ V[rest]).mul_(V[part]).sum(0, dtype=torch.float64)
    if not bool(torch.isfinite(sums.sum() + diagonal.sum())):
        raise NotFiniteError("Kernel values overflow; scale the columns, or use a bounded kernel such as Gaussian.")
    return PairSums(sums.cpu(), squares.cpu(), diagonal.cpu(), forms.cpu(), dtype)


def _pair(points: Points, part: slice, rest: slice, places: Tensor, dtype: torch.dtype) -> SharedPair:
    ids = (places[part], places[rest])
    return SharedPair(points.take(part), points.take(rest), ids, dtype=dtype)


def precision(kernels: Sequence[Kernel], n: int) -> torch.dtype:
    """In what products of so many rows are made: float32 for many rows and kernels that are bounded by one."""
    bounded = all(kernel.properties.is_normalised for kernel in kernels)
    return torch.float32 if bounded and n > EXACT_ROWS else torch.float64


def _rows_of_tile(n: int, columns: int, kernels: int, dtype: torch.dtype, budget: int) -> int:
    """Rows of a tile, of at most `TILE_NUMBERS` numbers, that fit the budget; pairs within a tile are made twice."""
    rows = max(LEAST_ROWS, min(math.ceil(n / LEAST_TILES), TILE_NUMBERS // max(1, n)))
    fixed = 8 * kernels * (2 * n + columns)
    each = (TILES * n + columns) * max(8, dtype.itemsize)
    while rows > LEAST_ROWS and fixed + rows * each > budget:
        rows //= 2
    rows = min(rows, n)
    require(fixed + rows * each, budget, f"sums over the pairs of {n:,} rows with {columns:,} resamples")
    return rows
