"""The loops over tiles, in Triton: products with one column and with many, dense blocks and the diagonal.

ROWS, COLS and TILE are functions written for one formula (see `source`): ROWS and COLS read what belongs to a block of
rows or columns, TILE computes the kernel on both, times a number for each row, and says whether it met nearly
coincident points that it could not resolve. Such tiles are left out and marked in FLAGS (FLAGGED = WRITE), or known
from an earlier product (SKIP); a second launch with a TILE that takes differences adds just these (ONLY), in smaller
tiles where these are quicker: a mark is for FM rows and FN columns.

Samples are padded to whole tiles and the padding of V is zero. Each program sums a span into its own slice of Y;
neighbouring programs share what they keep, so that wide rows are found in the cache. Counts that vary with the data are
not specialised: Triton would compile anew for a count of one and for multiples of 16.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import triton
import triton.language as tl

from mercer.operators.backends.fused.tiles import interpreted

NO: tl.constexpr = tl.constexpr(0)
WRITE: tl.constexpr = tl.constexpr(1)
SKIP: tl.constexpr = tl.constexpr(2)
ONLY: tl.constexpr = tl.constexpr(3)


@triton.jit(do_not_specialize=["spans"])
def product(
    A, B, P, Q, C, FLAGS, V, Y, n, m, span, spans,
    ROWS: tl.constexpr, COLS: tl.constexpr, TILE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    STAGES: tl.constexpr, INNER: tl.constexpr, POLY: tl.constexpr, FOLD: tl.constexpr,
    FLAGGED: tl.constexpr, FM: tl.constexpr, FN: tl.constexpr,
):  # fmt: skip
    """Y[s, j] = sum over the rows i of span s of k(x_i, z_j) V[i]: a program keeps columns and passes over rows.

    A thread holds few rows of a tile and many columns, so it needs few numbers of V. FOLD rows share a running sum.
    """
    n, m = tl.cast(n, tl.int64), tl.cast(m, tl.int64)
    place = tl.cast(tl.program_id(0) % spans, tl.int64)
    col = tl.cast(tl.program_id(0) // spans, tl.int64) * BN
    first = place * span
    last = tl.minimum(first + span, n)
    flags = FLAGS + col // FN * (n // FM)
    there = COLS(B, Q, col, m, BN)
    totals = tl.zeros((BM // FOLD, BN), tl.float32)
    for row in tl.range(first, last, BM, num_stages=STAGES):
        wanted = True
        if FLAGGED == ONLY:
            wanted = tl.load(flags + row // FM) != 0
        if wanted:
            here = ROWS(A, P, C, row, n, BM)
            v = tl.load(V + row + tl.arange(0, BM))
            if FLAGGED == SKIP:
                v = tl.where(tl.load(flags + row // FM) != 0, 0.0, v)
            k, near = TILE(A, B, P, Q, C, here, there, v[:, None], row, col, n, m, BM, BN, INNER, POLY)
            if FLAGGED == WRITE:
                tl.store(flags + row // FM, near.to(tl.int8))
                k = tl.where(near, 0.0, k)
            if FOLD == 2:
                top, bottom = _eights(k, BM, BN)
                totals += top
                totals += bottom
            else:
                totals += k
    tl.store(Y + place * m + col + tl.arange(0, BN), tl.sum(totals, 0))


@triton.jit
def _eights(k, BM: tl.constexpr, BN: tl.constexpr):
    """The first and the last eight of every sixteen rows: on tensor cores a thread holds a row of each."""
    top, bottom = tl.split(tl.permute(tl.reshape(k, (BM // 16, 2, 8, BN)), (0, 2, 3, 1)))
    return tl.reshape(top, (BM // 2, BN)), tl.reshape(bottom, (BM // 2, BN))


@triton.jit(do_not_specialize=["spans"])
def product_wide(
    A, B, P, Q, C, FLAGS, V, Y, n, m, span, spans,
    ROWS: tl.constexpr, COLS: tl.constexpr, TILE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    STAGES: tl.constexpr, INNER: tl.constexpr, POLY: tl.constexpr,
    FLAGGED: tl.constexpr, FM: tl.constexpr, FN: tl.constexpr,
):  # fmt: skip
    """Y[s, i] = sum over the columns j of span s of k(x_i, z_j) V[j], where features are read in chunks.

    Nothing stays on the chip then. Programs pass over wide tiles of columns, which many of them read at a time.
    """
    n, m = tl.cast(n, tl.int64), tl.cast(m, tl.int64)
    place = tl.cast(tl.program_id(0) % spans, tl.int64)
    row = tl.cast(tl.program_id(0) // spans, tl.int64) * BM
    first = place * span
    last = tl.minimum(first + span, m)
    flags = FLAGS + row // FM * (m // FN)
    here = ROWS(A, P, C, row, n, BM)
    totals = tl.zeros((BM, BN // 2), tl.float32)
    for col in tl.range(first, last, BN, num_stages=STAGES):
        wanted = True
        if FLAGGED == ONLY:
            wanted = tl.load(flags + col // FN) != 0
        if wanted:
            there = COLS(B, Q, col, m, BN)
            k, near = TILE(A, B, P, Q, C, here, there, 1.0, row, col, n, m, BM, BN, INNER, POLY)
            if FLAGGED == WRITE:
                tl.store(flags + col // FN, near.to(tl.int8))
            if FLAGGED == SKIP:
                near = tl.load(flags + col // FN) != 0
            left, right = _halves(k, BM, BN)
            totals += left * _values(V, col, near, FLAGGED, BN // 2)
            totals += right * _values(V, col + BN // 2, near, FLAGGED, BN // 2)
    tl.store(Y + place * n + row + tl.arange(0, BM), tl.sum(totals, 1))


@triton.jit
def _values(V, col, near, FLAGGED: tl.constexpr, COUNT: tl.constexpr):
    """Some right-hand sides as a row, zero for a tile that is left out."""
    v = tl.load(V + col + tl.arange(0, COUNT))
    if (FLAGGED == WRITE) | (FLAGGED == SKIP):
        v = tl.where(near, 0.0, v)
    return v[None, :]


@triton.jit
def _halves(k, BM: tl.constexpr, BN: tl.constexpr):
    """The left and the right half of a tile."""
    return tl.split(tl.permute(tl.reshape(k, (BM, 2, BN // 2)), (0, 2, 1)))


@triton.jit(do_not_specialize=["count"])
def product_mirrored(
    A, B, P, Q, C, FLAGS, V, Y, n, count,
    ROWS: tl.constexpr, COLS: tl.constexpr, TILE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    STAGES: tl.constexpr, INNER: tl.constexpr, POLY: tl.constexpr, FOLD: tl.constexpr,
    FLAGGED: tl.constexpr, FM: tl.constexpr, FN: tl.constexpr,
):  # fmt: skip
    """Y[i] += sum over j of k(x_i, x_j) V[j] for one sample; a tile above the diagonal is used twice.

    A program owns a block of columns and passes over `count` blocks of rows, up to the one that holds its columns.
    Each tile adds to its rows at once and to its columns at the end, where the mirror image would; sums of a tile and
    of a pass are float32, and Y is float64, so that the order of the additions leaves no trace in float32. Programs
    begin at different rows, so that few add to the same ones.
    """
    n = tl.cast(n, tl.int64)
    col = tl.program_id(0).to(tl.int64) * BN
    own = (col // BM).to(tl.int32)
    first = tl.program_id(1) * count
    passed = tl.minimum(count, own + 1 - first)
    if passed > 0:
        there = COLS(B, Q, col, n, BN)
        v0 = tl.load(V + col + tl.arange(0, BN // 4))[None, :]
        v1 = tl.load(V + col + BN // 4 + tl.arange(0, BN // 4))[None, :]
        v2 = tl.load(V + col + BN // 2 + tl.arange(0, BN // 4))[None, :]
        v3 = tl.load(V + col + 3 * BN // 4 + tl.arange(0, BN // 4))[None, :]
        sums = tl.zeros((BM // FOLD, BN), tl.float32)
        begin = tl.program_id(0) % passed
        for step in tl.range(0, passed, num_stages=STAGES):
            block = first + begin + step - tl.where(begin + step < passed, 0, passed)
            row = block.to(tl.int64) * BM
            flag = FLAGS + row // FM * (n // FN) + col // FN
            wanted = True
            if FLAGGED == ONLY:
                wanted = tl.load(flag) != 0
            if wanted:
                here = ROWS(A, P, C, row, n, BM)
                k, near = TILE(A, B, P, Q, C, here, there, 1.0, row, col, n, n, BM, BN, INNER, POLY)
                if FLAGGED == WRITE:
                    tl.store(flag, near.to(tl.int8))
                if FLAGGED == SKIP:
                    near = tl.load(flag) != 0
                a, b = _halves(k, BM, BN)
                a0, a1 = _halves(a, BM, BN // 2)
                b0, b1 = _halves(b, BM, BN // 2)
                across = tl.sum(a0 * v0 + a1 * v1 + b0 * v2 + b1 * v3, 1)
                w = tl.load(V + row + tl.arange(0, BM))
                w = tl.where(block == own, 0.0, w)
                if (FLAGGED == WRITE) | (FLAGGED == SKIP):
                    across = tl.where(near, 0.0, across)
                    w = tl.where(near, 0.0, w)
                tl.atomic_add(Y + row + tl.arange(0, BM), across.to(tl.float64), sem="relaxed")
                if FOLD == 2:
                    top, bottom = _upper_and_lower(k * w[:, None], BM, BN)
                    sums += top
                    sums += bottom
                else:
                    sums += k * w[:, None]
        tl.atomic_add(Y + col + tl.arange(0, BN), tl.sum(sums, 0).to(tl.float64), sem="relaxed")


@triton.jit
def _upper_and_lower(k, BM: tl.constexpr, BN: tl.constexpr):
    """The upper and the lower half of a tile."""
    return tl.split(tl.permute(tl.reshape(k, (2, BM // 2, BN)), (1, 2, 0)))


@triton.jit(do_not_specialize=["spans"])
def product_many(
    A, B, P, Q, C, FLAGS, V, Y, n, m, span, spans,
    ROWS: tl.constexpr, COLS: tl.constexpr, TILE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    STAGES: tl.constexpr, INNER: tl.constexpr, POLY: tl.constexpr, T: tl.constexpr, TERM: tl.constexpr,
    FLAGGED: tl.constexpr, FM: tl.constexpr, FN: tl.constexpr,
):  # fmt: skip
    """Y[s, i, t] = sum over the columns j of span s of k(x_i, z_j) V[j, t], V given as a sum of three terms.

    The tile is cut into three terms of 8 bits as well, of type TERM (bf16, which keeps the range of float32); six
    products on the tensor cores give float32 accuracy. Tensor cores truncate, so tiles are added up on the FMA units.

    V is read before the tile: read after it, it may take the place of columns in shared memory that are laid out
    otherwise, whose address the assembler ptxas 12.8 (Triton 3.6 and 3.7) then loses.
    """
    n, m = tl.cast(n, tl.int64), tl.cast(m, tl.int64)
    place = tl.cast(tl.program_id(0) % spans, tl.int64)
    row = tl.cast(tl.program_id(0) // spans, tl.int64) * BM
    first = place * span
    last = tl.minimum(first + span, m)
    flags = FLAGS + row // FM * (m // FN)
    here = ROWS(A, P, C, row, n, BM)
    columns = tl.arange(0, T)
    total = tl.zeros((BM, T), tl.float32)
    term = m * T
    for col in tl.range(first, last, BN, num_stages=STAGES):
        wanted = True
        if FLAGGED == ONLY:
            wanted = tl.load(flags + col // FN) != 0
        if wanted:
            there = COLS(B, Q, col, m, BN)
            v = V + (col + tl.arange(0, BN))[:, None] * T + columns[None, :]
            v1 = tl.load(v)
            v2 = tl.load(v + term)
            v3 = tl.load(v + 2 * term)
            k, near = TILE(A, B, P, Q, C, here, there, 1.0, row, col, n, m, BM, BN, INNER, POLY)
            if FLAGGED == WRITE:
                tl.store(flags + col // FN, near.to(tl.int8))
                k = k * tl.where(near, 0.0, 1.0)
            if FLAGGED == SKIP:
                k = k * tl.where(tl.load(flags + col // FN) != 0, 0.0, 1.0)
            k1 = _upper_half(k)
            rest = k - k1
            k2 = _upper_half(rest)
            k3 = (rest - k2).to(TERM)
            k1 = k1.to(TERM)
            k2 = k2.to(TERM)
            small = tl.dot(k3, v1)
            small = tl.dot(k2, v2, small)
            small = tl.dot(k1, v3, small)
            small = tl.dot(k2, v1, small)
            small = tl.dot(k1, v2, small)
            total += tl.dot(k1, v1, small)
    out = Y + (place * n + row) * T
    tl.store(out + tl.arange(0, BM)[:, None] * T + columns[None, :], total)


@triton.jit
def _upper_half(x):
    """x with the lower half of its bits zero: exactly a bf16 number."""
    return (x.to(tl.int32, bitcast=True) & -65536).to(tl.float32, bitcast=True)


@triton.jit(do_not_specialize=["spans"])
def added_up(Y, OUT, size, spans, COUNT: tl.constexpr):
    """OUT = the sum of the spans of Y in float64, of `size` numbers each."""
    size = tl.cast(size, tl.int64)
    at = tl.program_id(0).to(tl.int64) * COUNT + tl.arange(0, COUNT)
    total = tl.zeros((COUNT,), tl.float64)
    for span in range(spans):
        total += tl.load(Y + span * size + at, mask=at < size, other=0.0).to(tl.float64)
    tl.store(OUT + at, total, mask=at < size)


@triton.jit(do_not_specialize=["rows"])
def dense(
    A, B, P, Q, C, FLAGS, Y, n, m, rows, columns, factor,
    ROWS: tl.constexpr, COLS: tl.constexpr, TILE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    INNER: tl.constexpr, POLY: tl.constexpr,
    FLAGGED: tl.constexpr, FM: tl.constexpr, FN: tl.constexpr,
):  # fmt: skip
    """Y[i, j] = factor k(x_i, z_j) for so many rows and columns."""
    n, m = tl.cast(n, tl.int64), tl.cast(m, tl.int64)
    tiles = m // BN
    row = (tl.program_id(0) // tiles) * BM
    col = (tl.program_id(0) % tiles) * BN
    flag = FLAGS + row // FM * (m // FN) + col // FN
    wanted = True
    if FLAGGED == ONLY:
        wanted = tl.load(flag) != 0
    if wanted:
        here = ROWS(A, P, C, row, n, BM)
        there = COLS(B, Q, col, m, BN)
        k, near = TILE(A, B, P, Q, C, here, there, 1.0, row, col, n, m, BM, BN, INNER, POLY)
        if FLAGGED == WRITE:
            tl.store(flag, near.to(tl.int8))
        i = row + tl.arange(0, BM)[:, None]
        j = col + tl.arange(0, BN)[None, :]
        tl.store(Y + i * columns + j, factor * k, mask=(i < rows) & (j < columns))


@triton.jit
def diagonal(
    A, B, P, Q, C, Y, n,
    ROWS: tl.constexpr, COLS: tl.constexpr, TILE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
    INNER: tl.constexpr, POLY: tl.constexpr,
):  # fmt: skip
    """Y[i] = k(x_i, z_i), from square tiles."""
    n = tl.cast(n, tl.int64)
    row = tl.program_id(0).to(tl.int64) * BM
    here = ROWS(A, P, C, row, n, BM)
    there = COLS(B, Q, row, n, BN)
    k, _near = TILE(A, B, P, Q, C, here, there, 1.0, row, row, n, n, BM, BN, INNER, POLY)
    same = tl.arange(0, BM)[:, None] == tl.arange(0, BN)[None, :]
    tl.store(Y + row + tl.arange(0, BM), tl.sum(tl.where(same, k, 0.0), 1))


def term_type() -> tl.dtype:
    """bf16, or float32 in the interpreter, whose products of bf16 are wrong."""
    return tl.float32 if interpreted() else tl.bfloat16
