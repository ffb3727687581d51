"""Tile sizes, measured on an H200; no search at run time."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from mercer.operators.backends.fused.layout import Layout

PAD = 256
"""Samples are padded to a multiple of this, which every tile size divides."""

INTERPRETED_PAD = 64
"""The same in Triton's interpreter."""


@dataclass(frozen=True)
class Tile:
    """Rows and columns, warps, pipeline depths over columns and over features, exponentials by polynomial (of 4).

    `spans` is the least number of parts that the columns are cut into.
    """

    BM: int
    BN: int
    warps: int = 4
    STAGES: int = 3
    INNER: int = 3
    POLY: int = 0
    spans: int = 1

    def with_differences(self) -> Tile:
        """The same tile for direct differences, which need registers."""
        return replace(self, warps=min(16, max(self.warps, self.BM * self.BN // 1024)), STAGES=1)


def interpreted() -> bool:
    """Whether Triton runs in its interpreter, on the CPU."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def tile(layouts: list[Layout], t: int, *, roots: bool) -> Tile:
    """The tile for matrix products of these layouts and t columns of V (0 for dense rows).

    More sums take registers, more columns shared memory; `roots` need the units of the exponentials.
    """
    if interpreted():
        return Tile(64, 64, POLY=-1)
    sums = sum(grid.sums for grid in layouts)
    if not all(grid.resident for grid in layouts):
        return _chunked(sums, t)
    if t > 1:
        return _many(sum(grid.width for grid in layouts), t)
    products = sum(grid.products for grid in layouts)
    if sums == 0:
        return Tile(32, 128, STAGES=1)
    if sums > 1:
        return Tile(64, 64, STAGES=2, POLY=2)
    if products > 200:
        return Tile(128, 64, STAGES=2, POLY=1 if roots else 0)
    if roots:
        return Tile(64, 64, STAGES=2, POLY=2) if products <= 64 else Tile(128, 64, STAGES=2, POLY=2)
    return Tile(64, 128, STAGES=3, POLY=1) if products <= 64 else Tile(128, 128, STAGES=2, POLY=1)


def _many(width: int, t: int) -> Tile:
    if t <= 16 or width > 256:
        return Tile(64, 64, STAGES=2 if width <= 256 else 1)
    return Tile(128, 64, warps=8, STAGES=2 if width <= 128 else 1)


def _chunked(sums: int, t: int) -> Tile:
    if sums > 2 or (sums > 1 and t > 1):
        return Tile(64, 64, STAGES=1, INNER=2)
    if t > 1:
        return Tile(128, 128 if t <= 32 else 64, warps=8, STAGES=1)
    return Tile(128, 256, warps=8, STAGES=1, INNER=4) if sums == 1 else Tile(128, 128, warps=8, STAGES=1)
