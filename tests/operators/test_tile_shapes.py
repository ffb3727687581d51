"""How matrices are cut into tiles on a CPU."""

from __future__ import annotations

import pytest
import torch

from mercer.core.arrays import as_points
from mercer.kernels import Gaussian
from mercer.operators.backends.cuts import even_width
from mercer.operators.backends.traced import TracedTiles

PLACES = 4096
"""Bytes after which most caches of the first level have the same few places."""


def tiles_of(n: int, m: int | None, dtype: torch.dtype) -> TracedTiles:
    """Tiles of n rows, and of m columns or of one sample."""
    x = as_points(torch.zeros(n, 1, dtype=dtype))
    z = x if m is None else as_points(torch.zeros(m, 1, dtype=dtype))
    return TracedTiles(Gaussian().program(x), x, z, dtype, torch.device("cpu"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("m", [256, 512, 1000, 1024, 2000, 2048, 4096, 50_000])
@pytest.mark.parametrize("one_sample", [False, True])
def test_rows_of_a_tile_do_not_lie_where_a_cache_has_one_place_for_all(dtype, m, one_sample):
    source = tiles_of(m, None, dtype) if one_sample else tiles_of(100, m, dtype)
    for size in (2**18, 2**20, 2**22):
        for layout in source._cuts(size, True, 2, 1):
            assert layout.columns * dtype.itemsize % PLACES != 0


def test_widths_cover_all_columns_in_parts_of_about_one_size():
    for m in (1, 31, 512, 513, 1024, 2048, 5000, 12_345):
        width = even_width(m, 1000, 4)
        parts = [min(width, m - start) for start in range(0, m, width)]
        assert min(parts) >= 0.7 * max(parts)
