"""How inner products get into the fused loops: a factor for each sample, and the precision that its rows ask for.

Rows are not centred: the rounding of x.z is then a share of |x| |z|, and a row of zeros gives zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from mercer.operators.backends.fused.dials import LARGEST_NORM, LEAST_SQUARE, LOOKED_AT, NUMBERS_AT_ONCE
from mercer.operators.backends.fused.layout import layout


@dataclass(frozen=True)
class InnerScales:
    """Factors of both samples, powers of two, the longest row after that, and the precision of products (see `layout`).

    "featurewise" multiplies the features one by one in float32, where rows differ too much for fp16.
    """

    left: float
    right: float
    longest: float
    precision: str
    note: str = ""


def inner_scales(x: Tensor, z: Tensor) -> InnerScales:
    """Decide for two samples, from the lengths of their rows."""
    d = x.shape[1]
    short, long = zip(_lengths(x), _lengths(z), strict=True)
    if not math.isfinite(max(long)):
        return InnerScales(1.0, 1.0, math.inf, "featurewise", "inner products feature by feature, since rows overflow")
    left, right = (_power_of_two(LARGEST_NORM / length) for length in long)
    longest = max(left * long[0], right * long[1])
    if min(left * short[0], right * short[1]) ** 2 < LEAST_SQUARE * d:
        unequal = max(a / b for a, b in zip(long, short, strict=True))
        note = f"inner products feature by feature, since rows differ in length by a factor of {unequal:.2g}"
        left, right = (_power_of_two(1.0 / math.sqrt(a * b)) for a, b in zip(long, short, strict=True))
        return InnerScales(left, right, longest, "featurewise", note)
    if layout(d, "bare").resident:
        return InnerScales(left, right, longest, "bare")
    return InnerScales(left, right, longest, "deep", f"three-term products, since inner products have {d:,} columns")


def _lengths(rows: Tensor) -> tuple[float, float]:
    """Of a short row, which a twentieth of those that are not zero fall below (of some of many), and of the longest."""
    parts = rows.split(max(1, NUMBERS_AT_ONCE // rows.shape[1]))
    lengths = torch.cat([torch.linalg.vector_norm(part, dim=1, dtype=torch.float64) for part in parts])
    lengths = lengths[lengths > 0]
    if len(lengths) == 0:
        return 1.0, 1.0
    some = lengths[:: max(1, len(lengths) // LOOKED_AT)]
    return float(some.kthvalue(1 + len(some) // 20)[0]), float(lengths.max())


def _power_of_two(number: float) -> float:
    """The largest one that is not larger."""
    return 2.0 ** math.floor(math.log2(number))
