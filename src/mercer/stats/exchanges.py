"""Permutations that exchange the rows of pairs: sums over N = 2n rows are forms of n columns, a quarter of the work."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import NotFiniteError
from mercer.core.memory import require, resolve_budget
from mercer.kernels import Kernel
from mercer.operators.backends.cuts import slices
from mercer.stats.dials import LEAST_ROWS, LEAST_TILES, TILE_NUMBERS, TILES
from mercer.stats.pair_sums import precision
from mercer.stats.sharing import SharedPair


@dataclass(frozen=True, eq=False)
class ExchangedSums:
    r"""For each kernel and n pairs of rows :math:`x_i, y_i`, sums over :math:`i \ne j`:

    Attributes
    ----------
    forms : Tensor
        (k, B), :math:`\sum s_i s_j (k(x_i, x_j) + k(y_i, y_j) - k(x_i, y_j) - k(y_i, x_j))` for columns s of signs.
    totals : Tensor
        (k,), the same with four plus signs.
    squares : Tensor
        (k,), the sum of the squares of these kernel values.
    within : Tensor
        (k,), the sum of :math:`k(x_i, y_i)`.
    dtype : torch.dtype
        In which products were made.
    n : int
        Pairs.
    """

    forms: Tensor
    totals: Tensor
    squares: Tensor
    within: Tensor
    dtype: torch.dtype
    n: int

    @property
    def unbiased(self) -> Tensor:
        r""":math:`\mathrm{MMD}^2_U` of each kernel and column: signs of -1 exchange the rows of a pair.

        >>> from mercer.kernels import Linear
        >>> x, y = [[0.0], [1.0]], [[2.0], [5.0]]
        >>> sums = exchanged_sums([Linear()], Points(torch.tensor(x + y).double()), torch.tensor([[1.0, 1], [1, -1]]))
        >>> sums.unbiased.tolist()  # 0 + 10 - (2 + 5 + 2 + 5 - 7) / 2, and with 1 and 5 exchanged
        [[6.5, -5.5]]
        """
        n = self.n
        form, total = 0.5 * self.forms, 0.5 * self.totals.unsqueeze(1)
        crossed = 0.5 * (total - form) + self.within.unsqueeze(1)
        return (form + total) / (n * (n - 1)) - 2.0 * crossed / n**2


def exchanged_sums(
    kernels: Sequence[Kernel], points: Points, signs: Tensor, *, memory_budget: Any = None
) -> ExchangedSums:
    """The sums over the pairs of rows i and n + i, tile by tile; no matrix of n x n numbers is formed."""
    n, count = signs.shape
    device = points.values.device if points.is_tensor else torch.device("cpu")
    dtype = precision(kernels, 2 * n)
    S = signs.to(device=device, dtype=dtype)
    forms = torch.zeros(len(kernels), count, dtype=torch.float64, device=device)
    totals, squares, within = (torch.zeros(len(kernels), dtype=torch.float64, device=device) for _ in range(3))
    places = torch.arange(2 * n, device=device)
    for part in slices(0, n, _pairs_of_tile(n, count, len(kernels), dtype, resolve_budget(memory_budget, device))):
        here, rest = slice(part.start, part.stop), slice(part.start, n)
        left, right = (torch.cat([places[s], places[s] + n]) for s in (here, rest))
        pair = SharedPair(points.take(left), points.take(right), (left, right), dtype=dtype)
        size = part.stop - part.start
        for k, kernel in enumerate(kernels):
            blocks = pair.value(kernel).view(2, size, 2, n - part.start)
            same = blocks[:, :, :, :size].diagonal(dim1=1, dim2=3)
            within[k] += same[0, 1].sum(dtype=torch.float64)
            same.zero_()
            of_rows = blocks.sum((0, 1, 2), dtype=torch.float64)
            of_squares = blocks.square().sum((0, 1, 2), dtype=torch.float64)
            totals[k] += 2.0 * of_rows.sum() - of_rows[:size].sum()
            squares[k] += 2.0 * of_squares.sum() - of_squares[:size].sum()
            H = blocks[0, :, 0] - blocks[0, :, 1]
            H.add_(blocks[1, :, 1]).sub_(blocks[1, :, 0])
            H[:, size:] *= 2.0
            forms[k] += (H @ S[rest]).mul_(S[here]).sum(0, dtype=torch.float64)
    if not bool(torch.isfinite(totals + within).all()):
        raise NotFiniteError("Kernel values overflow; scale the columns, or use a bounded kernel such as Gaussian.")
    return ExchangedSums(forms.cpu(), totals.cpu(), squares.cpu(), within.cpu(), dtype, n)


def _pairs_of_tile(n: int, columns: int, kernels: int, dtype: torch.dtype, budget: int) -> int:
    """Pairs of a tile, whose four blocks have at most `TILE_NUMBERS` numbers, that fit the budget."""
    pairs = max(LEAST_ROWS, min(math.ceil(n / LEAST_TILES), TILE_NUMBERS // (4 * n)))
    fixed = 8 * kernels * columns
    each = (4 * TILES * n + columns) * max(8, dtype.itemsize)
    while pairs > LEAST_ROWS and fixed + pairs * each > budget:
        pairs //= 2
    pairs = min(pairs, n)
    require(fixed + pairs * each, budget, f"sums over the pairs of {2 * n:,} rows with {columns:,} resamples")
    return pairs
