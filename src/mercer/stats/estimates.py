"""Unbiased estimates of MMD^2 and their standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.kernels import Kernel
from mercer.operators import gram
from mercer.stats.arguments import check
from mercer.stats.dials import PAIRS_EACH
from mercer.stats.pair_sums import pair_sums
from mercer.stats.rowwise import paired_values
from mercer.stats.samples import Pooled


def quadratic(kernel: Kernel, pooled: Pooled, a: Tensor, b: Tensor, unbiased: bool, memory_budget: Any) -> float:
    """The V-statistic, in which opposite signs cancel before they are summed, or the U-statistic."""
    N, m = len(pooled.points), pooled.m
    first = torch.cat([a, torch.zeros(N - m)])
    second = torch.cat([torch.zeros(m), b])
    if not unbiased:
        V = (first - second).unsqueeze(1)
        sums = pair_sums([kernel], pooled.points, V, memory_budget=memory_budget, dtype=torch.float64)
        return float(sums.forms[0, 0] + sums.diagonal[0] @ V[:, 0].square())
    for weights, name in ((a, "X"), (b, "Y")):
        if float(weights.square().sum()) >= 1.0:
            raise InputError(f'estimator="u" needs at least two rows of positive weight in {name}; "v" takes one.')
    V = torch.stack([first, second, first + second], 1)
    sums = pair_sums([kernel], pooled.points, V, memory_budget=memory_budget, dtype=torch.float64)
    xx, yy, both = sums.forms[0].tolist()
    cross = both - xx - yy
    return float(xx / (1.0 - float(a.square().sum())) + yy / (1.0 - float(b.square().sum())) - cross)


@dataclass(frozen=True, eq=False)
class Estimate:
    """An unbiased estimate of MMD^2 and the standard error it comes with."""

    value: float
    error: float


def shuffled(pooled: Pooled, seed: int) -> Pooled:
    """The rows of each sample in random order, since estimators that pair neighbours take them to be independent."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.cat(
        [torch.randperm(pooled.m, generator=generator), pooled.m + torch.randperm(pooled.n, generator=generator)]
    )
    return Pooled(pooled.points.take(order), pooled.m)


def linear_mmd(kernel: Kernel, pooled: Pooled, *_: Any) -> Estimate:
    """The mean of h over disjoint pairs of rows of both samples."""
    pairs = min(pooled.m, pooled.n) // 2
    if pairs < 1:
        raise InputError('estimator="linear" needs at least two rows in each sample.')
    even = torch.arange(0, 2 * pairs, 2)
    return mean_of(h_values(kernel, pooled, even, even + 1))


def incomplete_mmd(kernel: Kernel, pooled: Pooled, _: Any, budget: int | None, seed: int, __: Any) -> Estimate:
    """The mean of h over random pairs of different rows."""
    n = min(pooled.m, pooled.n)
    if n < 2:
        raise InputError('estimator="incomplete" needs at least two rows in each sample.')
    count = PAIRS_EACH * n if budget is None else budget
    check(budget=count)
    rng = np.random.default_rng(seed)
    i = rng.integers(n, size=count)
    j = (i + rng.integers(1, n, size=count)) % n
    return mean_of(h_values(kernel, pooled, torch.from_numpy(i), torch.from_numpy(j)))


def block_mmd(kernel: Kernel, pooled: Pooled, size: int | None, _: Any, __: Any, memory: Any) -> Estimate:
    """The mean of U-statistics of blocks."""
    n = min(pooled.m, pooled.n)
    size = max(2, math.isqrt(n)) if size is None else size
    check(block_size=size)
    if size > n:
        raise InputError(f"block_size={size!r}: must be an integer from 2 to the rows of the smaller sample, {n}.")
    uniform = torch.full((size,), 1.0 / size, dtype=torch.float64)
    values = [
        quadratic(kernel, _block(pooled, start, size), uniform, uniform, True, memory)
        for start in range(0, n - size + 1, size)
    ]
    return mean_of(torch.tensor(values, dtype=torch.float64))


def cross_mmd(kernel: Kernel, pooled: Pooled, *_: Any) -> Estimate:
    """The inner product of the differences of embeddings of two halves, with its standard error given one half."""
    if min(pooled.m, pooled.n) < 4:
        raise InputError('estimator="cross" needs at least four rows in each sample.')
    first, second = halves(pooled.first), halves(pooled.second)
    f = [witness_values(kernel, rows, first[1], second[1]) for rows in (first[0], second[0])]
    value = float(f[0].mean() - f[1].mean())
    variance = float(f[0].var() / len(f[0]) + f[1].var() / len(f[1]))
    return Estimate(value, math.sqrt(variance))


def witness_values(kernel: Kernel, rows: Points, x: Points, y: Points) -> Tensor:
    """The difference of the embeddings of x and y at some rows."""
    ones = [torch.full((len(z), 1), 1.0 / len(z), dtype=torch.float64) for z in (x, y)]
    values = [(gram(kernel, rows, z, dtype="float64").matmul(w))[:, 0] for z, w in zip((x, y), ones, strict=True)]
    return values[0] - values[1]


def halves(points: Points) -> tuple[Points, Points]:
    """The first and the second half of the rows."""
    cut = len(points) // 2
    return points.take(slice(0, cut)), points.take(slice(cut, None))


def h_values(kernel: Kernel, pooled: Pooled, i: Tensor, j: Tensor) -> Tensor:
    """k(x_i, x_j) + k(y_i, y_j) - k(x_i, y_j) - k(x_j, y_i)."""
    points, m = pooled.points, pooled.m

    def k(a: Tensor, b: Tensor) -> Tensor:
        return paired_values(kernel, points, a, b)

    return k(i, j) + k(m + i, m + j) - k(i, m + j) - k(j, m + i)


def mean_of(values: Tensor) -> Estimate:
    """The mean of some values and its standard error."""
    error = float(values.std()) / math.sqrt(len(values)) if len(values) > 1 else math.inf
    return Estimate(float(values.mean()), error)


def _block(pooled: Pooled, start: int, size: int) -> Pooled:
    here = torch.arange(start, start + size)
    return Pooled(pooled.points.take(torch.cat([here, pooled.m + here])), size)


ESTIMATES: dict[str, Callable[..., Estimate]] = {
    "linear": linear_mmd,
    "block": block_mmd,
    "incomplete": incomplete_mmd,
    "cross": cross_mmd,
}
