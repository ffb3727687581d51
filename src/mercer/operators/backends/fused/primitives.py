"""Functions of a tile, in Triton: exponentials shared between two units of the chip, accurate logarithms, angles."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import triton
import triton.language as tl


def _exponentials(by_polynomial: int) -> tl.constexpr:
    """PTX for 2^-x of eight neighbouring values, the last ones by polynomial on the FMA units.

    2^x = 2^n p(f) with f = x - n in [-1/2, 1/2]: adding 1.5 * 2^23 rounds x to n and leaves n in the low bits, which
    an integer multiply-add moves to the exponent; p is the minimax polynomial of degree 5 with p(0) = 1 (error 1e-7).
    """
    lines = []
    for i in range(8):
        lines.append(f"neg.f32 x, ${8 + i};")
        if i < 8 - by_polynomial:
            lines.append(f"ex2.approx.ftz.f32 ${i}, x;")
            continue
        lines += [
            "add.rn.f32 t, x, 0f4B400000;",
            "add.rn.f32 f, t, 0fCB400000;",
            "sub.rn.f32 f, x, f;",
            "fma.rn.f32 p, f, 0f3AADDD0A, 0f3C1E7544;",
            "fma.rn.f32 p, p, f, 0f3D635BA9;",
            "fma.rn.f32 p, p, f, 0f3E75FCDE;",
            "fma.rn.f32 p, p, f, 0f3F317215;",
            "fma.rn.f32 p, p, f, 0f3F800000;",
            "mov.b32 n, t;",
            "mov.b32 b, p;",
            "mad.lo.s32 b, n, 8388608, b;",
            f"mov.b32 ${i}, b;",
        ]
    return tl.constexpr("{ .reg .f32 x, t, f, p; .reg .s32 n, b;\n" + "\n".join(lines) + "\n}")


_NONE = _exponentials(0)
_ONE = _exponentials(1)
_TWO = _exponentials(2)
_THREE = _exponentials(3)
_FOUR = _exponentials(4)
_IN_AND_OUT = tl.constexpr(",".join(["=f"] * 8 + ["f"] * 8))


@triton.jit
def exp2_of_minus(x, POLY: tl.constexpr):
    """2^-x; POLY (up to 4) of every eight neighbours by polynomial (for |x| <= 125), which frees the special units."""
    if POLY < 0:  # the interpreter knows no assembly
        return tl.exp2(-x)
    else:
        TEXT: tl.constexpr = (
            _NONE if POLY == 0 else _ONE if POLY == 1 else _TWO if POLY == 2 else _THREE if POLY == 3 else _FOUR
        )  # fmt: skip
        return tl.inline_asm_elementwise(TEXT, _IN_AND_OUT, [x], dtype=tl.float32, is_pure=True, pack=8)


_ROOT = tl.constexpr("{ .reg .f32 x; abs.f32 x, $1; sqrt.approx.ftz.f32 $0, x; }")


@triton.jit
def root(x, POLY: tl.constexpr):
    """Square root of |x|: rounding may leave a squared distance just below zero."""
    if POLY < 0:
        return tl.sqrt(tl.abs(x))
    else:
        return tl.inline_asm_elementwise(_ROOT, "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def _log_of_1_plus(f):
    """log(1 + f) for 1 + f in [1/sqrt 2, sqrt 2] to float32 accuracy (Cephes)."""
    p = 7.0376836292e-2
    p = p * f - 1.1514610310e-1
    p = p * f + 1.1676998740e-1
    p = p * f - 1.2420140846e-1
    p = p * f + 1.4249322787e-1
    p = p * f - 1.6668057665e-1
    p = p * f + 2.0000714765e-1
    p = p * f - 2.4999993993e-1
    p = p * f + 3.3333331174e-1
    f2 = f * f
    return f + (f * f2 * p - 0.5 * f2)


@triton.jit
def accurate_log2(x):
    """log2(x) for normal x > 0, accurate also near one."""
    bits = x.to(tl.int32, bitcast=True) - 0x3F3504F3
    n = bits >> 23
    mantissa = ((bits & 0x007FFFFF) + 0x3F3504F3).to(tl.float32, bitcast=True)
    return n.to(tl.float32) + 1.4426950408889634 * _log_of_1_plus(mantissa - 1.0)


@triton.jit
def log2_of_1_plus(w):
    """log2(1 + w) for w > -1: what rounding 1 + w lost comes back to first order."""
    u = 1.0 + w
    return accurate_log2(u) + 1.4426950408889634 * ((w - (u - 1.0)) / u)


@triton.jit
def arcsine(x, POLY: tl.constexpr):
    """asin(x) to float32 accuracy (Cephes), held beyond -1 and 1."""
    size = tl.minimum(tl.abs(x), 1.0)
    large = size > 0.5
    z = tl.where(large, 0.5 * (1.0 - size), size * size)
    small = tl.where(large, root(z, POLY), size)
    p = 4.2163199048e-2
    p = p * z + 2.4181311049e-2
    p = p * z + 4.5470025998e-2
    p = p * z + 7.4953002686e-2
    p = p * z + 1.6666752422e-1
    found = small + small * z * p
    found = tl.where(large, 1.5707963267948966 - 2.0 * found, found)
    return tl.where(x < 0.0, -found, found)


@triton.jit
def angle(h, POLY: tl.constexpr):
    """The angle of the versine h = 1 - cos t."""
    return 2.0 * arcsine(root(0.5 * tl.maximum(h, 0.0), POLY), POLY)


@triton.jit
def versine_sine(h, POLY: tl.constexpr):
    """sin t of the versine h = 1 - cos t."""
    return root(tl.maximum(h * (2.0 - h), 0.0), POLY)
