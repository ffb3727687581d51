"""Tile sizes, measured on an H200; no search at run time."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from mercer.operators.backends.fused.dials import CHUNK, CHUNKED_PAD, INTERPRETED_PAD, PAD, SHARED_MEMORY
from mercer.operators.backends.fused.layout import Layout

COMPILED = {"enable_fp_fusion": True}
"""What every loop asks of Triton's compiler: a * b + c in one instruction, rounded once. All errors and speeds were
measured so, and versions of Triton differ in what they do unasked.
"""


@dataclass(frozen=True)
class Tile:
    """Rows and columns, warps, pipeline depths over columns and over features, exponentials by polynomial (of 8).

    `FOLD` rows (1 or 2) share a running sum, `spans` is the least number of parts that a sum is cut into, and
    `registers` the most that a thread may have.
    """

    BM: int
    BN: int
    warps: int = 4
    STAGES: int = 3
    INNER: int = 3
    POLY: int = 0
    FOLD: int = 2
    spans: int = 1
    registers: int | None = None

    def with_differences(self, looped: bool, t: int, *, mirror: bool = False) -> Tile:
        """The same tile for direct differences, which need registers; a part of it where a loop adds up features."""
        if not looped:
            return replace(self, warps=min(16, max(self.warps, self.BM * self.BN // 1024)), STAGES=1)
        columns = 32 if mirror or t == 0 else min(64, self.BN)
        part = Tile(16, columns, warps=1) if t == 1 and not mirror else Tile(64, columns)
        return replace(part, STAGES=1, INNER=self.INNER, POLY=self.POLY, FOLD=1, spans=self.spans)


def pad_of(*, chunked: bool) -> int:
    """What samples are padded to a multiple of."""
    return INTERPRETED_PAD if interpreted() else CHUNKED_PAD if chunked else PAD


def interpreted() -> bool:
    """Whether Triton runs in its interpreter, on the CPU."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def tile(
    layouts: list[Layout], t: int, *, roots: bool, longer: bool = False, looped: bool = False, mirror: bool = False
) -> Tile:
    """The tile for matrix products of these layouts and t columns of V (0 for dense rows).

    More sums take registers, more columns shared memory; `roots` need the units of the exponentials, `longer` formulas
    have steps besides, and `looped` ones add up features one by one. With `mirror` a tile is used twice; its columns
    divide its rows.
    """
    if interpreted():
        return Tile(64, 64, POLY=-1)
    sums = sum(grid.sums for grid in layouts)
    if looped:
        return _looped(layouts, sums, t, mirror)
    if mirror:
        return _mirrored(layouts, sums, roots)
    if not all(grid.resident for grid in layouts):
        return _chunked(sums, sum(len(grid.blocks) for grid in layouts), t)
    if t > 1:
        return _many(sum(grid.held for grid in layouts), t)
    if sums == 0:
        return Tile(16, 128, warps=2, STAGES=1, FOLD=1, spans=8)
    if sums > 1:
        return Tile(64, 64, STAGES=2, POLY=2, spans=8, registers=128)
    products = sum(grid.products for grid in layouts)
    few, some = products <= 64, products <= 200
    if roots:
        by_polynomial = (3 if few else 2 if some else 1) + longer
        registers = 112 if some and not (few or longer) else 128
        return Tile(64, 128, STAGES=2, POLY=by_polynomial, spans=8 if some else 4, registers=registers)
    return Tile(64, 128, STAGES=2, POLY=2 if few else 0, spans=8 if few else 4, registers=112 if some else 128)


def _looped(layouts: list[Layout], sums: int, t: int, mirror: bool) -> Tile:
    """Nothing is on the way ahead of a loop over features, and its sums take registers."""
    if sums == 0 and t == 1 and not mirror:
        return Tile(16, 64, warps=1, STAGES=1, FOLD=1, spans=8)
    if not all(grid.resident for grid in layouts):
        return _fitting(Tile(64, 64, STAGES=1), sum(len(grid.blocks) for grid in layouts), t)
    small = mirror if sums == 0 else sums == 1
    return Tile(64, 32 if small else 64, STAGES=1, spans=8)


def _mirrored(layouts: list[Layout], sums: int, roots: bool) -> Tile:
    if not all(grid.resident for grid in layouts):
        size = Tile(128, 128, warps=8, STAGES=1) if sums <= 2 else Tile(64, 64, STAGES=1)
        return _fitting(size, sum(len(grid.blocks) for grid in layouts), 1)
    if sums == 0:
        return Tile(64, 64, STAGES=1)
    products = sum(grid.products for grid in layouts)
    if sums > 1 or products > 200:
        return Tile(64, 64, STAGES=2, POLY=2 if roots else 1)
    if products <= 64:
        return Tile(128, 64, STAGES=2, POLY=3, registers=128) if roots else Tile(128, 64, STAGES=3, POLY=2)
    return Tile(128, 64, STAGES=2, POLY=2 if roots else 1, registers=128)


def _many(held: int, t: int) -> Tile:
    sizes = [Tile(64, 64, STAGES=2), Tile(64, 32, STAGES=2)]
    if t > 16 and held <= 256:
        sizes.insert(0, Tile(128, 64, warps=8, STAGES=2))
    return next(size for size in sizes if _shared_by_many(size, held, t) <= SHARED_MEMORY)


def _shared_by_many(size: Tile, held: int, t: int) -> int:
    """Bytes of a tile's rows, of its columns and of their part of V, the last two for each stage."""
    return 2 * size.BM * held + 2 * size.STAGES * size.BN * (held + _columns_of_v(t))


def _chunked(sums: int, blocks: int, t: int) -> Tile:
    if sums > 2 or (sums > 1 and t > 1):
        size = Tile(64, 64, STAGES=1)
    elif t > 1:
        size = Tile(128, 128 if t <= 32 else 64, warps=8, STAGES=1)
    elif sums > 1:
        size = Tile(128, 128, warps=8, STAGES=1)
    else:
        size = Tile(128, 256, warps=8, STAGES=1)
    return _fitting(size, blocks, t)


def _fitting(size: Tile, blocks: int, t: int) -> Tile:
    """The same with no more chunks under way than shared memory holds beside V."""
    chunk = 2 * blocks * CHUNK * (size.BM + size.BN)
    room = SHARED_MEMORY - (2 * size.BN * _columns_of_v(t) if t > 1 else 0)
    return replace(size, INNER=max(1, min(size.INNER, room // chunk)))


def _columns_of_v(t: int) -> int:
    """Of V in three terms, on the chip."""
    return 3 * max(16, 1 << (t - 1).bit_length())
