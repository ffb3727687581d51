"""Launches of the fused loops: tile sizes, spans, right-hand sides as the loops read them, and a second look at tiles
with nearly coincident points.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from mercer.operators.backends.fused.operands import Flags, Operands
from mercer.operators.backends.fused.tiles import Tile, interpreted, tile

MOST_COLUMNS = 128
"""Right-hand sides that share one evaluation of the kernel."""

SPAN = 16384
"""Most columns that one float32 sum runs over; longer sums are finished in float64."""

PROGRAMS = 132 * 16
"""Programs that fill the chip well."""


def multiply(data: Operands, V: Tensor) -> Tensor:
    """K V in float64 for V of shape (columns, t), with the padded rows of `data`."""
    blocks = [_multiply(data, block) for block in V.split(MOST_COLUMNS, 1)]
    return blocks[0] if len(blocks) == 1 else torch.cat(blocks, 1)


def _multiply(data: Operands, V: Tensor) -> Tensor:
    chosen = _tile(data, V.shape[1])
    if data.exact is None:
        return _launch(data, chosen, data.C, "NO", V) * data.text.factor
    known = (chosen.BM, chosen.BN) in data.flags
    flags = data.flags.setdefault((chosen.BM, chosen.BN), Flags(data, chosen))
    total = _launch(data, chosen, flags.tiles, "SKIP" if known else "WRITE", V)
    if flags.any:
        total += _launch(data.exact, chosen.with_differences(), flags.tiles, "ONLY", V)
    return total * data.text.factor


def _launch(data: Operands, chosen: Tile, flags: Tensor, flagged: str, V: Tensor) -> Tensor:
    from mercer.operators.backends.fused import kernels

    n, m = data.shape
    t = V.shape[1]
    span, spans = _spans(n // chosen.BM, m, chosen)
    arrays = data.A, data.B, data.P, data.Q, data.C, flags
    options = _options(data, chosen, "STAGES") | {"FLAGGED": getattr(kernels, flagged)}
    grid = (n // chosen.BM * spans,)
    if t == 1:
        out = torch.empty(spans, n, 1, device=V.device)
        padded = torch.zeros(m, device=V.device)
        padded[: len(V)] = V[:, 0]
        options["SUM_LAST"] = not data.layouts
        kernels.product[grid](*arrays, padded, out, n, m, span, **options)
    else:
        T = max(16, 1 << (t - 1).bit_length())
        out = torch.empty(spans, n, T, device=V.device)
        options |= {"T": T, "TERM": kernels.term_type()}
        kernels.product_many[grid](*arrays, _three_terms(V, m, T), out, n, m, span, **options)
    return out.sum(0, dtype=torch.float64)[:, :t]


def dense(data: Operands) -> Tensor:
    """The matrix of all padded rows and columns."""
    from mercer.operators.backends.fused import kernels

    n, m = data.shape
    chosen = _tile(data, 0)
    flags = data.C if data.exact is None else Flags(data, chosen).tiles
    out = torch.empty(n, m, device=data.P.device)
    launches = [(data, chosen, "NO" if data.exact is None else "WRITE")]
    if data.exact is not None:
        launches.append((data.exact, chosen.with_differences(), "ONLY"))
    for operands, size, flagged in launches:
        options = _options(operands, size) | {"FLAGGED": getattr(kernels, flagged)}
        arrays = operands.A, operands.B, operands.P, operands.Q, operands.C, flags
        kernels.dense[(n // size.BM * (m // size.BN),)](*arrays, out, n, m, data.text.factor, **options)
    return out


def _tile(data: Operands, t: int) -> Tile:
    chosen = tile(data.layouts, t, roots=data.text.takes_roots)
    return chosen if data.small_exponents else replace(chosen, POLY=min(0, chosen.POLY))


def _options(data: Operands, chosen: Tile, *more: str) -> dict[str, Any]:
    sizes = {name: getattr(chosen, name) for name in ("BM", "BN", "INNER", "POLY", *more)}
    return data.functions | sizes | {"num_warps": chosen.warps, "enable_fp_fusion": True}


def _spans(row_tiles: int, m: int, chosen: Tile) -> tuple[int, int]:
    """Columns per program and the number of spans: enough programs to fill the chip, no sum longer than `SPAN`."""
    fill = min(m // (4 * chosen.BN) or 1, -(-PROGRAMS // row_tiles))
    spans = max(-(-m // SPAN), chosen.spans, fill)
    span = -(-m // (spans * chosen.BN)) * chosen.BN
    return span, -(-m // span)


def _three_terms(V: Tensor, m: int, T: int) -> Tensor:
    """V as a sum of three bf16 terms, zero-padded to (3, m, T)."""
    out = torch.zeros(3, m, T, dtype=torch.float32 if interpreted() else torch.bfloat16, device=V.device)
    rest = V
    for term in out:
        term[: V.shape[0], : V.shape[1]] = rest
        rest = rest - term[: V.shape[0], : V.shape[1]].float()
    return out
