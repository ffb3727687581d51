"""The greedy choice of Stein thinning."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.kernels.pair import DiagonalPair
from mercer.stats.base_formula import BaseFormula, base_formula
from mercer.stats.dials import GREEDY_AT_ONCE, NEAR
from mercer.stats.shared_steps import SharedSteps
from mercer.stats.sharing import SharedPair
from mercer.stats.stein_kernel import SteinKernel


def stein_greedy(
    kernel: SteinKernel, scored: Points, m: int, target: float, added: Tensor | None
) -> tuple[np.ndarray, np.ndarray]:
    """Places of m rows, fewer where the discrepancy reaches the target, and the discrepancy after each.

    `added` is a further cost of each row.
    """
    diagonal = kernel.on(DiagonalPair(scored.double())).double()
    first = diagonal if added is None else diagonal + added.to(diagonal)
    cost = first.clone()
    rows = SteinRows(kernel, scored)
    chosen: list[int] = []
    path: list[float] = []
    inside = 0.0
    for j in range(m):
        i = int(cost.argmin())
        inside += float(diagonal[i]) + float(cost[i] - first[i])
        chosen.append(i)
        path.append(math.sqrt(max(inside, 0.0)) / (j + 1))
        if path[-1] <= target or j == m - 1:
            break
        rows.add_to(cost, i)
    return np.array(chosen), np.array(path)


class SteinRows:
    """Rows 2 k_p(x_i, .) of one scored sample. For a base that is a function of one distance, all inner products of a
    row with the others are one small matrix product.

    >>> from mercer.kernels import InverseMultiquadric
    >>> scored = Points(torch.tensor([[0.0, 0.0], [1.0, -1.0]], dtype=torch.float64))
    >>> cost = torch.zeros(2, dtype=torch.float64)
    >>> SteinRows(SteinKernel(InverseMultiquadric(1.0)), scored).add_to(cost, 0)
    >>> cost.round(decimals=4)
    tensor([ 2.0000, -1.0607], dtype=torch.float64)
    """

    def __init__(self, kernel: SteinKernel, scored: Points) -> None:
        d = scored.values.shape[1] // 2
        self.kernel, self.scored = kernel, scored
        self.formula: BaseFormula = base_formula(kernel.base, d)
        self.plain = len(self.formula.terms) == 1 and self.formula.terms[0].is_distance
        if self.plain:
            x, s = scored.values[:, :d], scored.values[:, d:]
            w = torch.tensor(self.formula.terms[0].weights, dtype=x.dtype, device=x.device)
            self.weights, self.x, self.s = w, x - x.mean(0), s
            sides = [self.x, s, (self.x.square() @ w)[:, None], ((self.x * s) @ w)[:, None]]
            self.uniform = float(w[0]) if bool((w == w[0]).all()) else None
            if self.uniform is None:
                sides.append((self.x.square() @ w.square())[:, None])
            self.near = self.formula.has_roots
            programs = [self.formula.value, self.formula.slopes[0], self.formula.seconds.get((0, 0))]
            self.programs = SharedSteps([program for program in programs if program is not None])
            self.parts = [part.T.contiguous() for part in torch.cat(sides, 1).split(GREEDY_AT_ONCE)]

    def add_to(self, cost: Tensor, i: int) -> None:
        """Add a row, twice, to the cost of each."""
        if not self.plain:
            here = self.scored.take(slice(i, i + 1))
            cost.add_(SharedPair(here, self.scored, dtype=torch.float64).value(self.kernel)[0], alpha=2.0)
            return
        M, fixed = self._products(self.x[i], self.s[i])
        start = 0
        for part in self.parts:
            self._add(cost[start : start + part.shape[1]], M @ part, fixed)
            start += part.shape[1]

    def _products(self, x: Tensor, s: Tensor) -> tuple[Tensor, list[float]]:
        """What gives s.S, u and (s - S).W(x - X) of one row, as a matrix for [X | S | X.WX | X.WS] and constants."""
        w, d = self.weights, len(x)
        M = x.new_zeros(3 if self.uniform is not None else 4, self.parts[0].shape[0])
        M[0, d : 2 * d] = s
        M[1, :d], M[1, 2 * d] = -2.0 * w * x, 1.0
        M[2, :d], M[2, d : 2 * d], M[2, 2 * d + 1] = -w * s, -w * x, 1.0
        fixed = [float(w @ x.square()), float(w @ (x * s)) + float(w.sum())]
        if self.uniform is None:
            M[3, :d], M[3, 2 * d + 2] = -2.0 * w.square() * x, 1.0
            fixed.append(float(w.square() @ x.square()))
        return M, fixed

    def _add(self, cost: Tensor, products: Tensor, fixed: list[float]) -> None:
        scores, u, slant = products[0], products[1].add_(fixed[0]).clamp_(min=0.0), products[2].add_(fixed[1])
        if self.uniform is None:
            crossed, scale = products[3].add_(fixed[2]).clamp_(min=0.0), 1.0
        else:
            crossed, scale = u, self.uniform
        if self.near:
            u = u + NEAR
        found = self.programs({self.formula.terms[0].statistic: u})
        for (size, value), factor, other in zip(
            found, (2.0, -4.0, -8.0 * scale), (scores, slant, crossed), strict=False
        ):
            if value is None:
                cost.add_(other, alpha=factor * size)
            else:
                cost.addcmul_(value, other, value=factor * size)
