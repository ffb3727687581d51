"""Resamples: which rows make the first sample, orders of rows, and random signs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.core.rules import is_flag, is_integer


def labels(N: int, m: int, count: int, seed: int, blocks: Tensor | None = None) -> Tensor:
    """Columns of 0/1 that say which rows make the first sample: the data first, then `count` random ones.

    Where there are no more than `count` + 1 ways to choose m of the rows, all of them, each once. With `blocks`, the
    number of the block of each row, blocks change sides as a whole.

    >>> labels(3, 1, 100, 0).T.tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    if blocks is not None:
        return _block_labels(blocks, m, count, seed)
    if math.comb(N, m) <= count + 1:
        chosen = list(itertools.combinations(range(N), m))
    else:
        rng = np.random.default_rng(seed)
        chosen = [range(m), *(rng.permutation(N)[:m] for _ in range(count))]  # type: ignore[list-item]
    A = np.zeros((len(chosen), N), dtype=np.float32)
    for row, places in zip(A, chosen, strict=True):
        row[list(places) if isinstance(places, range | tuple) else places] = 1.0
    return torch.from_numpy(A).T.contiguous()


def _block_labels(blocks: Tensor, m: int, count: int, seed: int) -> Tensor:
    """As many blocks as the first sample has change sides at random."""
    first = blocks[:m].unique()
    n_blocks = int(blocks.max()) + 1
    of_blocks = torch.zeros(n_blocks)
    of_blocks[first] = 1.0
    order = torch.cat([first, (of_blocks == 0).nonzero().squeeze(1)])
    chosen = labels(n_blocks, len(first), count, seed)
    placed = torch.empty_like(chosen)
    placed[order] = chosen
    return placed[blocks]


def group_blocks(groups: Any, m: int, N: int) -> Tensor:
    """The number of the group of each pooled row; a group lies in one of the samples."""
    if isinstance(groups, tuple) and len(groups) == 2:
        groups = np.concatenate([np.asarray(g).reshape(-1) for g in groups])
    values = np.asarray(groups).reshape(-1)
    if len(values) != N:
        raise InputError(f"groups has {len(values)} entries but X and Y have {N} rows together.")
    _, place = np.unique(values, return_inverse=True)
    shared = np.intersect1d(place[:m], place[m:])
    if len(shared):
        name = values[place == shared[0]].tolist()[0]
        raise InputError(f"groups: {name!r} occurs in both X and Y; each group must belong to one sample.")
    _need_blocks(len(np.unique(place[:m])), len(np.unique(place[m:])), "groups")
    return torch.from_numpy(place.reshape(-1))


def order_blocks(m: int, N: int, length: int) -> Tensor:
    """Blocks of `length` consecutive rows in each sample; the last one may be shorter."""
    first, second = torch.arange(m) // length, torch.arange(N - m) // length
    _need_blocks(int(first[-1]) + 1, int(second[-1]) + 1, "blocks of consecutive rows")
    return torch.cat([first, int(first[-1]) + 1 + second])


def _need_blocks(a: int, b: int, what: str) -> None:
    if math.comb(a + b, a) < 2:
        raise InputError(f"There are {a} + {b} {what}; at least two must be exchangeable.")


def signs(n: int, count: int, seed: int, flip: float = 0.5) -> Tensor:
    """`count` columns of random signs; each differs from the one above with probability `flip`.

    >>> signs(1000, 2, 0).abs().min(), float(signs(1000, 1, 0, flip=0.01).mean().abs()) > 0
    (tensor(1.), True)
    """
    rng = np.random.default_rng(seed)
    changes = np.where(rng.random((n, count)) < flip, -1.0, 1.0)
    changes[0] = np.where(rng.random(count) < 0.5, -1.0, 1.0)
    return torch.from_numpy(np.cumprod(changes, axis=0).astype(np.float32))


def is_ordered(order: Any) -> bool:
    """Whether rows are said to follow each other in time."""
    return not (order is None or (is_flag(order) and not order))


def exchanged_blocks(
    groups: Any,
    order: Any,
    samples: Sequence[Points],
    by_group: Callable[[Any], Tensor],
    by_length: Callable[[int], Tensor],
) -> tuple[Tensor | None, str]:
    """The number of the block of each row, which is exchanged as a whole, and words for it; None for single rows."""
    if groups is not None and is_ordered(order):
        raise InputError("Give groups or order, not both.")
    if groups is not None:
        blocks = by_group(groups)
        return blocks, f" of {int(blocks.max()) + 1:,} groups"
    if not is_ordered(order):
        return None, ""
    length = rows_of_block(order, lambda: max(map(_correlated_rows, samples)))
    return by_length(length), f" of blocks of {length:,} rows"


def rows_of_block(order: Any, measured: Callable[[], int]) -> int:
    """The number that `order` is, or what is measured where it is True.

    >>> rows_of_block(7, lambda: 3), rows_of_block(True, lambda: 3)
    (7, 3)
    """
    if is_flag(order):
        return measured()
    if not is_integer(order) or order < 1:
        raise InputError(f"order={order!r:.60}: give True, or the number of rows of a block.")
    return int(order)


def _correlated_rows(points: Points) -> int:
    if not points.is_tensor:
        raise InputError("order=True needs rows of numbers to see how they are correlated; give a block length.")
    return block_length(points.values)


def autocorrelation_time(values: Tensor) -> float:
    """The integrated autocorrelation time, the largest over the columns, with Geyer's initial positive sequence.

    >>> autocorrelation_time(torch.randn(4000, 1, generator=torch.Generator().manual_seed(0))) < 1.5
    True
    """
    x = values.double().cpu().numpy()
    x = x - x.mean(0)
    n = len(x)
    size = 2 ** math.ceil(math.log2(2 * n))
    spectrum = np.abs(np.fft.rfft(x, size, axis=0)) ** 2
    covariance = np.fft.irfft(spectrum, size, axis=0)[: n // 2]
    variance = covariance[0]
    keep = variance > 0
    if not keep.any() or n < 8:
        return 1.0
    rho = covariance[:, keep] / variance[keep]
    even = rho[: 2 * (len(rho) // 2)]
    pairs = even[0::2] + even[1::2]
    positive = np.cumprod(pairs > 0, axis=0)
    return float(max(1.0, (2.0 * (pairs * positive).sum(0) - 1.0).max()))


def block_length(values: Tensor) -> int:
    """Rows of a block that hold most of what rows have in common with those after them.

    >>> block_length(torch.randn(4000, 1, generator=torch.Generator().manual_seed(0))) < 12
    True
    """
    time = autocorrelation_time(values)
    return max(
        1, min(len(values) // 4, round(2.0 * time ** (2 / 3) * len(values) ** (1 / 3) / 3) if time > 1.05 else 1)
    )
