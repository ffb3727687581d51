"""Where matrices are cut into parts that a CPU is quick at."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from torch import Tensor

from mercer.operators.dials import LEAST_WIDTH, SAME_SETS, STEP, TRIANGLE_BLOCKS


def lower_blocks(V: Tensor) -> list[tuple[slice, slice]]:
    """Blocks, as rows and columns, that hold all of V; of a lower triangular V the zeros above them are left out.

    >>> import torch
    >>> lower_blocks(torch.ones(100, 100).tril())
    [(slice(0, None, None), slice(0, 48, None)), (slice(48, None, None), slice(48, 96, None)), ...]
    >>> lower_blocks(torch.ones(100, 100))
    [(slice(None, None, None), slice(None, None, None))]
    """
    if V.ndim == 2 and V.device.type == "cpu":
        n_columns = V.shape[1]
        count = max(1, min(TRIANGLE_BLOCKS, n_columns // LEAST_WIDTH))
        starts = range(0, n_columns, max(1, n_columns // count // 24) * 24) if count > 1 else [0]
        blocks = [(slice(a, None), slice(a, b)) for a, b in pairwise([*starts, n_columns])]
        if not any(bool(V[: inner.start, outer].any()) for inner, outer in blocks):
            return blocks
    return [(slice(None), slice(None))]


def even_width(m: int, most: int, itemsize: int) -> int:
    """The width of tiles that have about the same, at most about `most`, for m columns.

    >>> even_width(5000, 3000, 4), even_width(2048, 1024, 4)
    (2528, 1056)
    """
    for count in range(-(-m // min(m, most)), m + 1):
        width = min(m, rounded(-(-m // count)))
        if width * itemsize % SAME_SETS:
            return width
        if width < m:
            return width + STEP
    return m


def rounded(width: int) -> int:
    """The next multiple of what a product takes at a time.

    >>> rounded(500), rounded(512), rounded(1)
    (512, 512, 32)
    """
    return -(-width // STEP) * STEP


def shrinking(n: int, most: int, least: int, threads: int) -> Iterator[slice]:
    """Consecutive slices that cover n rows, shorter to the end, so that threads that take them in turn end together.

    >>> [part.stop - part.start for part in shrinking(5000, most=1024, least=256, threads=2)]
    [1024, 512, 512, 512, 512, 256, 256, 256, 256, 256, 256, 256, 136]
    """
    start, length = 0, most
    while start < n:
        while threads > 1 and length > max(least, STEP) and 2 * threads * length > n - start:
            length = rounded(length // 2)
        stop = min(start + length, n)
        yield slice(start, stop)
        start = stop


def slices(start: int, stop: int, step: int) -> Iterator[slice]:
    """Consecutive slices of at most `step` that cover start to stop.

    >>> list(slices(0, 5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return (slice(i, min(i + step, stop)) for i in range(start, stop, step))
