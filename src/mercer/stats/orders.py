"""Orders of rows under which one side of paired samples changes its partners."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.stats.dials import ORDERS_AT_ONCE


def orders(n: int, count: int, seed: int, blocks: Tensor | None = None) -> Iterator[Tensor]:
    """Rows of places (b, n): the data first, then `count` random orders; all of them where there are no more.

    With `blocks`, the number of the block of each row, blocks of equally many rows take each other's places.

    >>> next(orders(3, 100, 0)).tolist()[:2]
    [[0, 1, 2], [0, 2, 1]]
    >>> torch.cat(list(orders(4, 5, 0, torch.tensor([0, 0, 1, 1])))).tolist()
    [[0, 1, 2, 3], [2, 3, 0, 1]]
    """
    places = np.arange(n)
    units = [[np.array([i]) for i in range(n)]] if blocks is None else _exchangeable(blocks)
    if math.prod(math.factorial(len(u)) for u in units) <= count + 1:
        chosen = itertools.product(*(itertools.permutations(range(len(u))) for u in units))
        yield torch.from_numpy(np.stack([_placed(places, units, order) for order in chosen]))
        return
    rng = np.random.default_rng(seed)
    yield torch.from_numpy(places.reshape(1, -1))
    for start in range(0, count, ORDERS_AT_ONCE):
        size = min(ORDERS_AT_ONCE, count - start)
        if blocks is None:
            yield torch.from_numpy(rng.permuted(np.tile(places, (size, 1)), axis=1))
        else:
            drawn = [_placed(places, units, [rng.permutation(len(u)) for u in units]) for _ in range(size)]
            yield torch.from_numpy(np.stack(drawn))


def row_blocks(groups: Any, n: int) -> Tensor:
    """The number of the group of each row; some groups must have equally many rows."""
    values = np.asarray(groups).reshape(-1)
    if len(values) != n:
        raise InputError(f"groups has {len(values)} entries but there are {n} rows.")
    _, place, sizes = np.unique(values, return_inverse=True, return_counts=True)
    _, alike = np.unique(sizes, return_counts=True)
    if alike.max() < 2:
        raise InputError(
            f"groups: no two of the {len(sizes)} groups have the same number of rows, so they cannot be exchanged. "
            f"Use groups of equal size."
        )
    return torch.from_numpy(place.reshape(-1))


def consecutive_blocks(n: int, length: int) -> Tensor:
    """Blocks of `length` rows that follow each other; a shorter rest stays where it is.

    >>> consecutive_blocks(5, 2).tolist()
    [0, 0, 1, 1, 2]
    """
    if n // length < 2:
        raise InputError(f"Blocks of {length:,} consecutive rows: {n:,} rows hold fewer than two of them.")
    return torch.arange(n) // length


def _exchangeable(blocks: Tensor) -> list[list[np.ndarray]]:
    """The places of the rows of each block, blocks of one size together."""
    of_block = [np.flatnonzero(blocks.numpy() == b) for b in np.unique(blocks.numpy())]
    sizes = sorted({len(rows) for rows in of_block})
    return [[rows for rows in of_block if len(rows) == size] for size in sizes]


def _placed(places: np.ndarray, units: list[list[np.ndarray]], order: Any) -> np.ndarray:
    out = places.copy()
    for blocks, moved in zip(units, order, strict=True):
        for here, there in zip(blocks, moved, strict=True):
            out[here] = blocks[there]
    return out
