"""Centred Gram matrices as low-rank factors where the kernel is smooth, else whole; and all their permutations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.memory import require, resolve_budget
from mercer.kernels import Kernel
from mercer.kernels.pair import DensePair
from mercer.operators import gram
from mercer.solvers.decompose import eigh
from mercer.solvers.pivoted_cholesky import pivoted_cholesky
from mercer.stats.dials import FEW_ROWS, LEFT_OUT, PART_NUMBERS, RANK_SHARE
from mercer.stats.hsic import centred


@dataclass(frozen=True, eq=False)
class CentredGram:
    """H K H of one kernel and sample: `factor` C (n, r) with H K H = C C^T, or the whole `matrix`; one of both.

    >>> C = CentredGram(factor=torch.tensor([[1.0], [-1.0]], dtype=torch.float64))
    >>> C.trace, C.squares, C.fourth
    (2.0, 4.0, 2.0)
    """

    factor: Tensor | None = None
    matrix: Tensor | None = None

    @cached_property
    def diagonal(self) -> Tensor:
        return self.whole.diagonal() if self.factor is None else self.factor.square().sum(1)

    @property
    def whole(self) -> Tensor:
        """The matrix, made where it is not there."""
        if self.matrix is not None:
            return self.matrix
        assert self.factor is not None
        return self.factor @ self.factor.T

    @cached_property
    def trace(self) -> float:
        return float(self.diagonal.sum())

    @cached_property
    def squares(self) -> float:
        """The sum of the squared entries."""
        inner = self.whole if self.factor is None else self.factor.T @ self.factor
        return float(inner.square().sum())

    @property
    def fourth(self) -> float:
        """The sum of the squares of the diagonal."""
        return float(self.diagonal.square().sum())


def centred_gram(kernel: Kernel, points: Points, memory_budget: Any = None) -> CentredGram:
    """The smaller of both forms, decided before the larger one is made."""
    n = len(points)
    if kernel.domain == "matrix":
        return CentredGram(matrix=centred(points.values.double().cpu()))
    budget = resolve_budget(memory_budget)
    if n <= FEW_ROWS:
        return _smaller(_whole(kernel, points))
    most = max(1, min(n // 2, math.isqrt(RANK_SHARE * n)))
    if points.is_tensor and n > 2:
        require(3 * 8 * n * most, budget, f"a low-rank factor of the Gram matrix of {n:,} rows")
        operator = gram(kernel, points, memory_budget=memory_budget, dtype="float64")
        enough = LEFT_OUT * float(torch.as_tensor(operator.diag()).sum())
        found = pivoted_cholesky(operator, most, how="greedy", enough=enough)
        if float(found.left.sum()) <= enough or found.rank < most:
            F = found.F.cpu()
            return CentredGram(factor=F - F.mean(0))
    require(
        3 * 8 * n * n,
        budget,
        f"{kernel!r:.80} of {n:,} rows, which has no low-rank factor; a smoother kernel has one, and",
    )
    return CentredGram(matrix=_whole(kernel, points))


def _whole(kernel: Kernel, points: Points) -> Tensor:
    n = len(points)
    return centred(torch.as_tensor(kernel.on(DensePair(points))).double().expand(n, n).cpu())


def _smaller(matrix: Tensor) -> CentredGram:
    """A factor from eigenvectors, for few rows."""
    values, vectors = eigh(matrix, "The centred Gram matrix")
    kept = values > 1e-14 * max(float(values[-1]), 1e-300)
    return CentredGram(factor=vectors[:, kept] * values[kept].sqrt())


def permuted_sums(
    x: Sequence[CentredGram], y: Sequence[CentredGram], orders: Iterator[Tensor], dtype: torch.dtype
) -> Tensor:
    r"""tr(K_i P L_j P^T) for each pair of kernels and each order of the rows, of shape (pairs, orders).

    With factors K = C C^T and L = F F^T it is :math:`\|C^\top F_\pi\|^2`; all pairs of factors are one product. The
    other pairs are gathered.

    >>> one = CentredGram(factor=torch.tensor([[1.0], [0.0], [-1.0]], dtype=torch.float64))
    >>> permuted_sums([one], [one], iter([torch.tensor([[0, 1, 2], [1, 0, 2]])]), torch.float64).tolist()
    [[4.0, 1.0]]
    """
    cut = _Pairs(x, y, dtype)
    return torch.cat([cut.sums(part) for chunk in orders for part in chunk.split(cut.at_once)], 1)


class _Pairs:
    """The pairs of factors side by side, and those that are gathered."""

    def __init__(self, x: Sequence[CentredGram], y: Sequence[CentredGram], dtype: torch.dtype) -> None:
        self.shape = len(x), len(y)
        self.smooth_x, self.smooth_y = ([i for i, g in enumerate(side) if g.factor is not None] for side in (x, y))
        self.C, self.of_x = _beside([x[i] for i in self.smooth_x], dtype)
        self.F, self.of_y = _beside([y[j] for j in self.smooth_y], dtype)
        rough_x = [i for i in range(len(x)) if i not in self.smooth_x]
        self.gathered = [(j, rough_x if j in self.smooth_y else list(range(len(x)))) for j in range(len(y))]
        self.gathered = [(j, rows) for j, rows in self.gathered if rows]
        wanted = sorted({i for _, rows in self.gathered for i in rows})
        self.K = {i: x[i].whole.to(dtype).reshape(-1) for i in wanted}
        self.L = {j: y[j].whole.to(dtype) for j, _ in self.gathered}
        n = len(x[0].factor if x[0].matrix is None else x[0].matrix)  # type: ignore[arg-type]
        each = n * n if self.gathered else n * max(1, self.F.shape[1])
        self.at_once = max(1, PART_NUMBERS // each)

    def sums(self, orders: Tensor) -> Tensor:
        out = torch.zeros(*self.shape, len(orders), dtype=torch.float64)
        if self.smooth_x and self.smooth_y:
            products = (self.C.T @ self.F[orders]).square_().to(torch.float64)
            both = self.of_x @ products @ self.of_y.T
            out[torch.tensor(self.smooth_x)[:, None], torch.tensor(self.smooth_y)[None, :]] = both.permute(1, 2, 0)
        for j, rows in self.gathered:
            K = torch.stack([self.K[i] for i in rows])
            for b, order in enumerate(orders):
                L = self.L[j].index_select(0, order).index_select(1, order)
                out[rows, j, b] = (K @ L.reshape(-1)).double()
        return out.reshape(-1, len(orders))


def _beside(grams: Sequence[CentredGram], dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The factors as columns of one matrix, and which columns belong to which."""
    if not grams:
        return torch.empty(0, 0, dtype=dtype), torch.empty(0, 0, dtype=torch.float64)
    factors = [g.factor.to(dtype) for g in grams if g.factor is not None]
    return torch.cat(factors, 1), torch.block_diag(*[torch.ones(1, f.shape[1], dtype=torch.float64) for f in factors])


def permutation_moments(x: CentredGram, y: CentredGram) -> tuple[float, float]:
    """The mean and the variance of tr(K P L P^T) over all orders of the rows.

    References: Kazi-Aoual et al., *Refined approximations to permutation tests for multivariate inference*, 1995.

    >>> one = CentredGram(factor=torch.tensor([[1.0], [0.0], [-1.0], [0.0]], dtype=torch.float64))
    >>> permutation_moments(one, one)[0]
    1.3333333333333333
    """
    n = len(x.diagonal)
    mean = x.trace * y.trace / (n - 1)
    if n < 4:
        return mean, 2.0 * x.squares * y.squares / (n - 1) ** 2
    spread = [(n - 1) * g.squares - g.trace**2 for g in (x, y)]
    peaks = [n * (n + 1) * g.fourth - (n - 1) * (g.trace**2 + 2 * g.squares) for g in (x, y)]
    first = 2 * spread[0] * spread[1] / ((n - 1) ** 2 * (n + 1) * (n - 2))
    second = peaks[0] * peaks[1] / ((n + 1) * n * (n - 1) * (n - 2) * max(1, n - 3))
    return mean, max(first + second, 0.0)
