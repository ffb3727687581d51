"""How a statistic becomes a matrix product of half-precision columns.

A number is kept as hi + lo, two fp16 terms, so that three products give float32 accuracy; the squared norms and the
ones that multiply them are columns too, and the sum of products *is* the scaled statistic. Tensor cores add up in
float32 and truncate, so the order of the columns matters. Five precisions:

- "fast": hi.lo + lo.hi + hi.hi and the norms last. The error is about 2^-24 of the largest squared norm;
- "bare": the same without the norms, for inner products, and for a Gaussian, where they are factors of rows and columns
  (a sum that lacks them stays small, and so does what truncation takes from it);
- "rounded": as "fast", for many columns, with the sum of each chunk added up apart, where sums are rounded;
- "split", for kernels not smooth at zero: hi lies on a grid so coarse that the sum of hi.hi with its share of the norms
  is exact in float32. It comes first and leaves |hi - hi'|^2, small for near points, to which the rest is added. The
  error near zero falls by several hundred;
- "deep": the same with a third term, for data that are wide compared with the length scale, and for inner products of
  many columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from mercer.operators.backends.fused.dials import (
    CHUNK,
    CONCATENATED_COLUMNS,
    LARGEST_PRODUCT,
    RESIDENT_COLUMNS,
)

# What a column holds: a term of a feature, a term of the squared norm (hi, middle, lo), the two integer digits of
# the norm on the grid, or a constant.
HI, LO, LOWEST, NORM, DIGIT, CONSTANT = range(6)

Column = tuple[int, float]  # what it holds, and which feature or term it is or, for a constant, its value

ZERO = (CONSTANT, 0.0)
NORMS = [(NORM, float(i)) for i in range(3)]
UNITS = [(CONSTANT, 2.0 ** (-10 * i)) for i in range(3)]  # the terms are stored larger, where fp16 is dense
DIGITS = [(DIGIT, float(i)) for i in range(2)]
GRID = [(CONSTANT, -1.0), (CONSTANT, -2.0)]  # negative: powers of the grid step that belong to the digits


@dataclass(frozen=True)
class Block:
    """Neighbouring columns of both operands that are multiplied with each other."""

    left: tuple[Column, ...]
    right: tuple[Column, ...]

    @property
    def width(self) -> int:
        return len(self.left)


@dataclass(frozen=True)
class Layout:
    """Blocks side by side, and the passes of products over them: each a list of (block of the left, of the right).

    A `resident` statistic is one sum over all passes, in this order; one read in chunks has a sum for each pass, and
    with `rounded` one more for the chunk.
    """

    blocks: tuple[Block, ...]
    passes: tuple[tuple[tuple[int, int], ...], ...]
    resident: bool = True
    rounded: bool = False

    @property
    def width(self) -> int:
        return sum(block.width for block in self.blocks)

    @property
    def products(self) -> int:
        """Columns multiplied per pair."""
        return sum(self.shared(a, b) for pairs in self.passes for a, b in pairs)

    @property
    def held(self) -> int:
        """Columns of a sample on the chip: a block lies there once for each of the ways in which products cut it.

        >>> layout(40, "split").width, layout(40, "split").held
        (112, 160)
        """
        parts = {(a, piece) for pairs in self.passes for a, b in pairs for piece in pieces(self.shared(a, b))}
        return sum(size for _, (_, size) in parts)

    @property
    def sums(self) -> int:
        """Tiles of float32 sums."""
        return 1 if self.resident else len(self.passes) + self.rounded

    @cached_property
    def sums_after(self) -> tuple[int, ...]:
        """For each feature read in chunks, the partial sums of 16 columns from that of its leading terms to the end.

        >>> layout(784, "bare").sums_after[::256]
        (139, 91, 43, 1)
        """
        found: dict[float, int] = {}
        done = 0
        for start in range(0, self.blocks[0].width, CHUNK):
            for a, b in (pair for pairs in self.passes for pair in pairs):
                for at in range(start, start + CHUNK, 16):
                    columns = self.blocks[a].left[at : at + 16], self.blocks[b].right[at : at + 16]
                    pairs = list(zip(*columns, strict=True))
                    found |= {left[1]: done for left, right in pairs if left[0] == right[0] == HI}
                    done += any(ZERO not in pair for pair in pairs)
        return tuple(done - found[i] for i in range(len(found)))

    def shared(self, a: int, b: int) -> int:
        """Columns that two blocks have in common; a wider one ends in columns that meet only zeros."""
        return min(self.blocks[a].width, self.blocks[b].width)

    def start(self, block: int) -> int:
        return sum(b.width for b in self.blocks[:block])


@lru_cache(maxsize=256)
def layout(d: int, precision: str, *, chunked: bool = False) -> Layout:
    """The layout of a statistic of d features; `chunked` ones are read in chunks whatever their width.

    >>> [layout(d, "fast").products for d in (3, 10, 32, 90)]
    [16, 48, 112, 288]
    """
    on_grid, deep = precision in ("split", "deep"), precision == "deep"
    hi, lo, lowest = ([(term, float(i)) for i in range(d)] for term in (HI, LO, LOWEST))
    norms = ([], []) if precision == "bare" else (NORMS + UNITS, UNITS + NORMS)
    digits = DIGITS + GRID, GRID + DIGITS
    if 3 * d + len(norms[0]) <= CONCATENATED_COLUMNS and not chunked:
        left, right = lo + hi + hi + norms[0], hi + lo + hi + norms[1]
        if on_grid:  # the exact part fills products of its own
            left, right = lo + lo + hi + norms[0], lo + hi + lo + norms[1]
            if deep:
                left, right = lowest + hi + left, hi + lowest + right
            left, right = _padded(hi + digits[0]) + left, _padded(hi + digits[1]) + right
        return Layout((_block(left, right, 16),), (((0, 0),),))
    resident = not chunked and (3 * (d + 10) if deep else 2 * (d + 6)) <= RESIDENT_COLUMNS
    unit = 16 if resident else -(-(d + 10) // CHUNK) * CHUNK  # one width for all that are read in chunks
    if not on_grid:
        blocks = _block(hi + norms[0], hi + norms[1], unit), _block(lo, lo, unit)
        return Layout(blocks, (((0, 1), (1, 0), (0, 0)),), resident, rounded=precision == "rounded")
    zeros = 4 * [ZERO]
    grid = _block(hi + digits[0], hi + digits[1], unit)
    rest = _block(lo + zeros + norms[0], lo + zeros + norms[1], unit)
    if not deep:
        return Layout((grid, rest), (((0, 0),), ((0, 1), (1, 0), (1, 1))), resident)
    last = _block(lowest, lowest, unit)
    return Layout((grid, rest, last), (((0, 0),), ((0, 2), (2, 0), (0, 1), (1, 0), (1, 1))), resident)


def _block(left: list[Column], right: list[Column], unit: int) -> Block:
    """A block padded with zeros to a multiple of `unit` columns."""
    zeros = [ZERO] * (-len(left) % unit)
    return Block(tuple(left + zeros), tuple(right + zeros))


def _padded(columns: list[Column]) -> list[Column]:
    return columns + [ZERO] * (-len(columns) % 16)


def pieces(width: int) -> list[tuple[int, int]]:
    """(start, size) of powers of two that make up a multiple of 16.

    >>> pieces(112)
    [(0, 64), (64, 32), (96, 16)]
    """
    found = []
    start = 0
    while start < width:
        size = min(LARGEST_PRODUCT, 1 << ((width - start).bit_length() - 1))
        found.append((start, size))
        start += size
    return found
