"""Halving a sample so that both halves have nearly equal embeddings, and the exchange of rows one by one."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.kernels import Kernel
from mercer.kernels.pair import DiagonalPair
from mercer.stats.dials import OVERSAMPLING
from mercer.stats.sharing import SharedPair


def compressed(kernel: Kernel, points: Points, m: int, seed: int, compress: bool) -> Tensor:
    """Places of m rows, by halving all of them or, with `compress`, small sets on the way."""
    n = len(points)
    rng = np.random.default_rng(seed)
    order = torch.from_numpy(rng.permutation(n))
    if m >= n:
        return torch.arange(n)
    if compress:
        least = max(2 * m, 2**OVERSAMPLING * math.isqrt(n))
        order = _compress(kernel, points, order, least, rng)
    return _halved_to(kernel, points, order, m, rng)


def _compress(kernel: Kernel, points: Points, order: Tensor, size: int, rng: np.random.Generator) -> Tensor:
    """About `size` of the rows: four quarters are compressed each, put together and halved."""
    if len(order) <= 2 * size or len(order) < 64:
        return order if len(order) <= size else halve(kernel, points, order, rng)
    quarters = [_compress(kernel, points, part, max(8, size // 2), rng) for part in order.chunk(4)]
    return halve(kernel, points, torch.cat(quarters), rng)


def _halved_to(kernel: Kernel, points: Points, order: Tensor, m: int, rng: np.random.Generator) -> Tensor:
    """Halve until one more halving would leave fewer than m, then take off what is too many by one uneven halving."""
    while len(order) >= 2 * m:
        keep = len(order) // (2 * m) * 2 * m
        if keep == len(order) or len(order) >= 4 * m:
            order = halve(kernel, points, order, rng)
        else:
            return halve(kernel, points, order[:keep], rng)
    if len(order) == m:
        return order
    pairs = len(order) - m
    return torch.cat([order[2 * pairs :], halve(kernel, points, order[: 2 * pairs], rng)])


def halve(kernel: Kernel, points: Points, order: Tensor, rng: np.random.Generator) -> Tensor:
    """One row of each pair of neighbours, chosen by a self-balancing walk: the sum of the signed differences of their
    sections stays short.

    References: Dwivedi and Mackey, *Kernel thinning*, 2024, algorithm 1.
    """
    n = len(order) // 2 * 2
    rest = order[n:]
    sample = points.take(order[:n])
    K = SharedPair(sample, dtype=torch.float64).value(kernel).numpy()
    first, second = np.arange(0, n, 2), np.arange(1, n, 2)
    sections = K[first] - K[second]
    differences = sections[:, first] - sections[:, second]
    size = np.sqrt(np.maximum(differences.diagonal(), 0.0))
    pairs = n // 2
    uniform = rng.random(pairs)
    variance, reached = 0.0, np.zeros(pairs)
    signs = np.empty(pairs)
    bound = 2.0 * math.log(4.0 * pairs + 4.0)
    for i in range(pairs):
        b = size[i]
        most = max(b * math.sqrt(variance * bound), b * b)
        p = 0.5 * (1.0 - reached[i] / most) if most > 0 else 0.5
        signs[i] = 1.0 if uniform[i] < p else -1.0
        reached += signs[i] * differences[i]
        if most > 0:
            variance += b * b * max(0.0, 1.0 + (b * b - 2.0 * most) * variance / most**2)
    kept = np.where(signs > 0, first, second)
    if len(rest) and rng.random() < 0.5:
        return torch.cat([order[torch.from_numpy(kept)], rest])
    return order[torch.from_numpy(kept)]


def swapped(kernel: Kernel, points: Points, chosen: Tensor, mean: Tensor, norm: float) -> tuple[Tensor, float]:
    """Each chosen row is exchanged for the one, of those not chosen, that brings the embedding closest; and the
    discrepancy reached.
    """
    m = len(chosen)
    places = chosen.clone()
    diagonal = kernel.on(DiagonalPair(points.double())).double()
    total = torch.zeros_like(mean)
    for i in places.tolist():
        total += _row(kernel, points, i)
    for j in range(m):
        i = int(places[j])
        total -= _row(kernel, points, i)
        # with the row x for i: (2 total(x) + k(x, x)) / m^2 - 2 mean(x) / m
        change = (2.0 * total + diagonal) / m - 2.0 * mean
        change[places[:j]] = change[places[j + 1 :]] = torch.inf
        new = int(change.argmin())
        places[j] = new
        total += _row(kernel, points, new)
    squared = float(total[places].sum()) / m**2 - 2.0 * float(mean[places].mean()) + norm
    return places, math.sqrt(max(squared, 0.0))


def _row(kernel: Kernel, points: Points, i: int) -> Tensor:
    return SharedPair(points.take(slice(i, i + 1)), points, dtype=torch.float64).value(kernel)[0]
