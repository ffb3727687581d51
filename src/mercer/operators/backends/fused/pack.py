"""Triton kernels that turn rows of float32 into packed half-precision columns (see `layout`), through float64."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import triton
import triton.language as tl

HI: tl.constexpr = tl.constexpr(0)
LO: tl.constexpr = tl.constexpr(1)
LOWEST: tl.constexpr = tl.constexpr(2)
NORM: tl.constexpr = tl.constexpr(3)
DIGIT: tl.constexpr = tl.constexpr(4)
LARGEST_HALF: tl.constexpr = tl.constexpr(65504.0)


@triton.jit
def _terms(y, grid, ON_GRID: tl.constexpr):
    """The leading term of y, a multiple of the grid or an fp16 number, and the fp16 term of what it leaves."""
    if ON_GRID:
        hi = tl.floor(y / grid + 0.5) * grid
    else:
        hi = y.to(tl.float16).to(tl.float64)
    return hi, (y - hi).to(tl.float16).to(tl.float64)


@triton.jit(do_not_specialize=["n"])
def norms(
    X, SHIFT, SCALE, OUT, DIGITS, n, count, d, stride, grid,
    ON_GRID: tl.constexpr, THIRD: tl.constexpr, R: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """OUT[i] = |y|^2 of the row y = (x - SHIFT) SCALE as it is packed.

    With ON_GRID also DIGITS[i], the squares of the leading terms in units of the grid; OUT is then without them.
    """
    row = tl.program_id(0) * R + tl.arange(0, R)
    source = X + tl.minimum(row, n - 1).to(tl.int64)[:, None] * stride
    total = tl.zeros((R,), tl.float64)
    digits = tl.zeros((R,), tl.float64)
    for start in range(0, d, D):
        f = start + tl.arange(0, D)
        inside = f < d
        x = tl.load(source + f[None, :], mask=inside[None, :], other=0.0).to(tl.float64)
        shift = tl.load(SHIFT + f, mask=inside, other=0.0)
        scale = tl.load(SCALE + f, mask=inside, other=0.0)
        y = (x - shift[None, :]) * scale[None, :]
        hi, lo = _terms(y, grid, ON_GRID)
        if ON_GRID:
            whole = hi / grid
            digits += tl.sum(whole * whole, 1)
            if THIRD:
                lo = y - hi
            square = lo * (2.0 * hi + lo)
        else:
            square = tl.where(tl.abs(y) < LARGEST_HALF, (hi + lo) * (hi + lo), y * y)
        total += tl.sum(square, 1)
    tl.store(OUT + row, total, mask=row < count)
    if ON_GRID:
        tl.store(DIGITS + row, digits, mask=row < count)


@triton.jit(do_not_specialize=["n"])
def columns(
    X, SHIFT, SCALE, NORMS, DIGITS, KIND, WHICH, VALUE, OUT,
    n, count, stride, width, start, out_stride, multiple, grid,
    ON_GRID: tl.constexpr, R: tl.constexpr, W: tl.constexpr,
):  # fmt: skip
    """OUT[i, start + c]: what column c holds (KIND, WHICH, VALUE) for row i; rows past the last repeat it."""
    row = tl.program_id(0) * R + tl.arange(0, R)
    present = row < count
    c = tl.program_id(1) * W + tl.arange(0, W)
    inside = c < width
    kind = tl.load(KIND + c, mask=inside, other=5)
    which = tl.load(WHICH + c, mask=inside, other=0)
    constant = tl.load(VALUE + c, mask=inside, other=0.0)
    feature = kind <= LOWEST
    source = X + tl.minimum(row, n - 1).to(tl.int64)[:, None] * stride + which[None, :]
    x = tl.load(source, mask=feature[None, :], other=0.0).to(tl.float64)
    shift = tl.load(SHIFT + which, mask=feature, other=0.0)
    scale = tl.load(SCALE + which, mask=feature, other=0.0)
    y = (x - shift[None, :]) * scale[None, :]
    hi, lo = _terms(y, grid, ON_GRID)
    out = tl.where(kind[None, :] == HI, hi, tl.where(kind[None, :] == LO, lo, y - hi - lo)) * multiple
    norm = tl.load(NORMS + row, mask=present, other=0.0)
    n0 = norm.to(tl.float16).to(tl.float64)
    n1 = ((norm - n0) * 1024.0).to(tl.float16).to(tl.float64)
    n2 = (norm - n0) * 1048576.0 - n1 * 1024.0
    lower = tl.where(which[None, :] == 1, n1[:, None], n2[:, None])
    out = tl.where(kind[None, :] == NORM, tl.where(which[None, :] == 0, n0[:, None], lower), out)
    if ON_GRID:
        square = tl.load(DIGITS + row, mask=present, other=0.0)
        high = tl.floor(square * (1.0 / 2048.0))
        digit = tl.where(which[None, :] == 0, (high * 32.0)[:, None], (square - 2048.0 * high)[:, None]) * grid
        out = tl.where(kind[None, :] == DIGIT, digit, out)
    out = tl.where(kind[None, :] > DIGIT, constant[None, :].to(tl.float64), out)
    place = OUT + row.to(tl.int64)[:, None] * out_stride + (start + c)[None, :]
    tl.store(place, out.to(tl.float16), mask=inside[None, :] & present[:, None])
