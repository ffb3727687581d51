"""Packed half-precision columns of a sample: the host side of the `pack` kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from mercer.operators.backends.fused.layout import CONSTANT, Layout
from mercer.operators.backends.fused.tiles import COMPILED, interpreted


@dataclass(frozen=True)
class Scaling:
    """Rows become y = (x - shift) scale, and a pair's statistic `right` y.y', with the squared norms of both if any.

    The columns of the right operand are multiplied by `right`, a power of two, and by `gain`, one number or one for
    each feature, before they are rounded; `step` is the grid of the leading terms, 0 for plain fp16 numbers.
    """

    shift: Tensor
    scale: Tensor
    right: float
    gain: float | Tensor = 1.0
    step: float = 0.0


def norms(scaling: Scaling, rows: Tensor, count: int, *, third: bool = False) -> tuple[Tensor, Tensor]:
    """|y|^2 of each row as it is packed, padded to `count` rows, in float64; what lies on the grid comes apart."""
    from mercer.operators.backends.fused import pack as kernels

    out = torch.empty(2, count, dtype=torch.float64, device=rows.device)
    n, d = rows.shape
    at_once = _rows_at_once()
    kernels.norms[(-(-count // at_once),)](
        rows, scaling.shift, scaling.scale, out[0], out[1], n, count, d, rows.stride(0), scaling.step or 1.0,
        ON_GRID=bool(scaling.step), THIRD=third, R=at_once, D=min(64, _power_of_two(d)), **COMPILED,
    )  # fmt: skip
    return out[0], out[1]


def pack(
    layout: Layout, scaling: Scaling, rows: Tensor, squares: tuple[Tensor, Tensor], side: int, out: Tensor, start: int
) -> None:
    """Write the packed columns of one sample to columns `start`... of `out`; side 0 is left, 1 is right."""
    from mercer.operators.backends.fused import pack as kernels

    kind, which, value = _tables(layout, scaling.step, side, rows.device)
    block = min(64, _power_of_two(layout.width))
    at_once = _rows_at_once()
    kernels.columns[(-(-len(out) // at_once), -(-layout.width // block))](
        rows, scaling.shift, scaling.scale * scaling.gain if side else scaling.scale, *squares, kind, which, value,
        out, len(rows), len(out), rows.stride(0), layout.width, start, out.stride(0), scaling.right if side else 1.0,
        scaling.step or 1.0, ON_GRID=bool(scaling.step), R=at_once, W=block, **COMPILED,
    )  # fmt: skip


@lru_cache(maxsize=256)
def _tables(layout: Layout, step: float, side: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Kind, index and value of every column; constants -1 and -2 stand for the weights of the two digits."""
    columns = [column for block in layout.blocks for column in (block.right if side else block.left)]
    weights = {-1.0: 64.0 * step, -2.0: step}
    kind = torch.tensor([kind for kind, _ in columns], dtype=torch.int32, device=device)
    which = torch.tensor([0 if kind == CONSTANT else int(i) for kind, i in columns], dtype=torch.int32, device=device)
    value = [weights.get(v, v) if kind == CONSTANT else 0.0 for kind, v in columns]
    return kind, which, torch.tensor(value, dtype=torch.float32, device=device)


def _rows_at_once() -> int:
    return 128 if interpreted() else 16


def _power_of_two(count: int) -> int:
    return 1 << max(0, count - 1).bit_length()
