"""The greedy choice of Stein thinning."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.kernels.pair import DiagonalPair
from mercer.stats.base_formula import BaseFormula, at, base_formula
from mercer.stats.sharing import SharedPair
from mercer.stats.stein_kernel import NEAR, SteinKernel

AT_ONCE = 2**14
"""Rows whose values are made together, so that they stay in the caches."""


def stein_greedy(
    kernel: SteinKernel, scored: Points, m: int, target: float, added: Tensor | None
) -> tuple[np.ndarray, np.ndarray]:
    """Places of m rows, fewer where the discrepancy reaches the target, and the discrepancy after each.

    `added` is a further cost of each row.
    """
    diagonal = kernel.on(DiagonalPair(scored.double())).double()
    cost = diagonal.clone() if added is None else diagonal + added.to(diagonal)
    plain = torch.zeros_like(diagonal)
    row = SteinRows(kernel, scored)
    chosen: list[int] = []
    path: list[float] = []
    inside = 0.0
    for j in range(m):
        i = int(cost.argmin())
        inside += float(diagonal[i]) + 2.0 * float(plain[i])
        chosen.append(i)
        path.append(math.sqrt(max(inside, 0.0)) / (j + 1))
        if path[-1] <= target or j == m - 1:
            break
        values = row(i)
        plain += values
        cost.add_(values, alpha=2.0)
    return np.array(chosen), np.array(path)


class SteinRows:
    """Rows k_p(x_i, .) of one scored sample: each column is kept together, since sums over few columns are slow.

    >>> from mercer.kernels import InverseMultiquadric
    >>> scored = Points(torch.tensor([[0.0, 0.0], [1.0, -1.0]], dtype=torch.float64))
    >>> SteinRows(SteinKernel(InverseMultiquadric(1.0)), scored)(0).round(decimals=4)[1]
    tensor(-0.5303, dtype=torch.float64)
    """

    def __init__(self, kernel: SteinKernel, scored: Points) -> None:
        values = scored.values
        d = values.shape[1] // 2
        self.kernel, self.scored = kernel, scored
        self.formula: BaseFormula = base_formula(kernel.base, d)
        self.plain = len(self.formula.terms) == 1 and self.formula.terms[0].is_distance
        if self.plain:
            weights = torch.tensor(self.formula.terms[0].weights, dtype=values.dtype, device=values.device)
            self.parts = [(p[:, :d].T.contiguous(), p[:, d:].T.contiguous()) for p in values.split(AT_ONCE)]
            self.weights, self.uniform = weights, float(weights[0]) if bool((weights == weights[0]).all()) else None

    def __call__(self, i: int) -> Tensor:
        """One row."""
        if not self.plain:
            here = self.scored.take(slice(i, i + 1))
            return SharedPair(here, self.scored, dtype=torch.float64).value(self.kernel)[0]
        part, place = divmod(i, AT_ONCE)
        x, s = (side[:, place : place + 1] for side in self.parts[part])
        return torch.cat([self._values(*rows, x, s) for rows in self.parts])

    def _values(self, X: Tensor, S: Tensor, x: Tensor, s: Tensor) -> Tensor:
        """k_p of one row (x, s), as columns, and some others."""
        difference = X - x
        if self.uniform is not None:
            squared = difference.square().sum(0)
            u, crossed = squared * self.uniform, squared * self.uniform**2
            slant = (S - s).mul_(difference).sum(0).mul_(self.uniform)
        else:
            weighted = difference * self.weights.unsqueeze(1)
            u, crossed = (difference * weighted).sum(0), weighted.square().sum(0)
            slant = (S - s).mul_(weighted).sum(0)
        if self.formula.has_roots:
            u = u + NEAR
        values = {self.formula.terms[0].statistic: u}
        total = (s[:, 0] @ S) * at(self.formula.value, values)
        total -= 2.0 * at(self.formula.slopes[0], values) * (slant + float(self.weights.sum()))
        if (0, 0) in self.formula.seconds:
            total -= 4.0 * at(self.formula.seconds[0, 0], values) * crossed
        return total
