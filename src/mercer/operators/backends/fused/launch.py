"""Launches of the fused loops: tile sizes, spans, right-hand sides as the loops read them, and a second look at tiles
with nearly coincident points.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from mercer.operators.backends.fused.dials import ADDED, CHUNKED_PAD, MIRRORED_COLUMNS, PROGRAMS, SPAN
from mercer.operators.backends.fused.operands import Flags, Operands
from mercer.operators.backends.fused.tiles import COMPILED, Tile, interpreted, tile


def multiply(data: Operands, V: Tensor, *, mirror: bool = False) -> Tensor:
    """K V in float64 for V of shape (columns, t), at most `MOST_COLUMNS`, with the padded rows of `data`.

    `mirror` is for the symmetric matrix of one sample: with few columns each tile is used twice, for one at a time.
    """
    t = V.shape[1]
    resident = all(grid.resident for grid in data.layouts)
    mirror = mirror and t <= (MIRRORED_COLUMNS if resident else 1)
    if mirror and t > 1:
        return torch.cat([multiply(data, column, mirror=True) for column in V.split(1, 1)], 1)
    if mirror:
        launch = _launch_mirrored
    elif t == 1 and resident:
        launch, data = _launch_over_rows, data.transposed
    else:
        launch = _launch_over_columns
    chosen = _tile(data, t, mirror)
    if data.exact is None:
        return _times(launch(data, chosen, None, "NO", V), data.text.factor)
    size = chosen.BM, chosen.BN, launch.__name__
    known = size in data.flags
    flags = data.flags.setdefault(size, Flags(data, chosen))
    mode = "WRITE" if not known else "SKIP" if flags.any else "NO"
    total = launch(data, chosen, flags, mode, V)
    if flags.any:
        again = chosen.with_differences(data.exact.looped, t, mirror=mirror)
        total += launch(data.exact, again, flags, "ONLY", V)
    return _times(total, data.text.factor)


def _launch_over_rows(data: Operands, chosen: Tile, flags: Flags | None, mode: str, V: Tensor) -> Tensor:
    """One column: V belongs to the rows of `data`, the transposed matrix, and the result to its columns."""
    from mercer.operators.backends.fused import kernels

    n, m = data.shape
    inside, outside = data.weights or (None, None)
    column = V[:, 0] if inside is None else (inside[: len(V)] * V[:, 0]).float()
    span, spans = _spans(m // chosen.BN, n, chosen.BM, chosen.spans)
    out = torch.empty(spans, m, 1, device=V.device)
    options = _options(data, chosen, "STAGES", "FOLD") | _marks(chosen, flags, mode)
    arrays = *_arrays(data, flags), _zero_padded(column, n), out
    kernels.product[(m // chosen.BN * spans,)](*arrays, n, m, span, spans, **options)
    total = _added_up(out)
    return total if outside is None else total * outside.unsqueeze(1)


def _launch_over_columns(data: Operands, chosen: Tile, flags: Flags | None, mode: str, V: Tensor) -> Tensor:
    """Many columns of V, or many features."""
    from mercer.operators.backends.fused import kernels

    n, m = data.shape
    t = V.shape[1]
    left, right = data.weights or (None, None)
    if right is not None:
        V = (right[: len(V), None] * V).float()
    span, spans = _spans(n // chosen.BM, m, chosen.BN, chosen.spans)
    options = _options(data, chosen, "STAGES") | _marks(chosen, flags, mode)
    if t == 1:
        T, values, loop = 1, _zero_padded(V[:, 0], m), kernels.product_wide
    else:
        T = max(16, 1 << (t - 1).bit_length())
        values, loop = _three_terms(V, m, T), kernels.product_many
        options |= {"T": T, "TERM": kernels.term_type()}
    out = torch.empty(spans, n, T, device=V.device)
    arrays = *_arrays(data, flags), values, out
    loop[(n // chosen.BM * spans,)](*arrays, n, m, span, spans, **options)
    total = _added_up(out)[:, :t]
    return total if left is None else total * left.unsqueeze(1)


def _added_up(sums: Tensor) -> Tensor:
    """The sum of the spans in float64."""
    from mercer.operators.backends.fused import kernels

    total = torch.empty(sums.shape[1:], dtype=torch.float64, device=sums.device)
    kernels.added_up[(-(-total.numel() // ADDED),)](sums, total, total.numel(), len(sums), ADDED, **COMPILED)
    return total


def _launch_mirrored(data: Operands, chosen: Tile, flags: Flags | None, mode: str, V: Tensor) -> Tensor:
    from mercer.operators.backends.fused import kernels

    n = data.shape[0]
    left, right = data.weights or (None, None)
    column = V[:, 0] if right is None else (right[: len(V)] * V[:, 0]).float()
    values = _zero_padded(column, n)
    out = torch.zeros(n, dtype=torch.float64, device=V.device)
    count = max(1, min(SPAN // chosen.BM, n**2 // (2 * chosen.BM * chosen.BN * PROGRAMS)))
    grid = n // chosen.BN, -(-n // (chosen.BM * count))
    options = _options(data, chosen, "STAGES") | _marks(chosen, flags, mode) | {"FOLD": 1 if chosen.BM < 128 else 2}
    arrays = *_arrays(data, flags), values, out
    kernels.product_mirrored[grid](*arrays, n, count, **options)
    return (out if left is None else out.mul_(left)).unsqueeze(1)


def bytes_of_product(shape: tuple[int, int], t: int) -> int:
    """Memory that `multiply` takes with t columns at once, at most: sums of all spans, their totals, V and flags."""
    n, m = (length + CHUNKED_PAD for length in shape)
    T = 1 if t == 1 else max(16, 1 << (t - 1).bit_length())
    spans = max(8, -(-m // SPAN), min(m // 64 + 1, PROGRAMS * 256 // n + 1))
    return 4 * spans * n * T + 24 * n * t + 10 * m * T + n * m // 1024


def dense(data: Operands, rows: Tensor, columns: Tensor) -> Tensor:
    """The matrix of some rows and columns."""
    from mercer.operators.backends.fused import kernels

    size = _tile(data, 0)
    data = data.taken(padded(rows, size.BM), padded(columns, size.BN))
    n, m = data.shape
    flags = None if data.exact is None else Flags(data, size)
    out = torch.empty(len(rows), len(columns), device=data.P.device)
    launches = [(data, size, "NO" if data.exact is None else "WRITE")]
    if data.exact is not None:
        launches.append((data.exact, size.with_differences(data.exact.looped, 0), "ONLY"))
    for operands, chosen, mode in launches:
        options = _options(operands, chosen) | _marks(chosen, flags, mode)
        grid = (n // chosen.BM * (m // chosen.BN),)
        kernels.dense[grid](*_arrays(operands, flags), out, n, m, *out.shape, data.text.factor, **options)
        if operands.weights is not None:
            left, right = operands.weights
            out.mul_(left[: len(rows), None].float()).mul_(right[: len(columns)].float())
    return out


def diagonal(data: Operands) -> Tensor:
    """What products add for a row of one sample with itself; tiles there are taken from differences, if any are."""
    from mercer.operators.backends.fused import kernels

    data = data.exact or data
    chosen = replace(_tile(data, 0), BM=64, BN=64, warps=4)
    out = torch.empty(data.shape[0], device=data.P.device)
    arrays = data.A, data.B, data.P, data.Q, data.C, out
    kernels.diagonal[(len(out) // chosen.BM,)](*arrays, len(out), **_options(data, chosen))
    values = out.double() * data.text.factor
    return values if data.weights is None else values * data.weights[0] * data.weights[1]


def _times(total: Tensor, factor: float) -> Tensor:
    return total if factor == 1.0 else total.mul_(factor)


def _zero_padded(v: Tensor, length: int) -> Tensor:
    return v.contiguous() if len(v) == length else torch.cat([v, v.new_zeros(length - len(v))])


def padded(places: Tensor, unit: int) -> Tensor:
    """The last place repeated, up to a multiple of `unit`."""
    return torch.cat([places, places[-1:].expand(-len(places) % unit)])


def _tile(data: Operands, t: int, mirror: bool = False) -> Tile:
    if (known := data.tiles.get((t, mirror))) is not None:
        return known
    text = data.text
    longer = len(text.lines) > 2
    chosen = tile(data.layouts, t, roots=text.takes_roots, longer=longer, looped=data.looped, mirror=mirror)
    data.tiles[t, mirror] = chosen if data.small_exponents else replace(chosen, POLY=min(0, chosen.POLY))
    return data.tiles[t, mirror]


def _arrays(data: Operands, flags: Flags | None) -> tuple[Tensor, ...]:
    return data.A, data.B, data.P, data.Q, data.C, data.C if flags is None else flags.tiles


def _marks(chosen: Tile, flags: Flags | None, mode: str) -> dict[str, Any]:
    from mercer.operators.backends.fused import kernels

    size = chosen if flags is None else flags.size
    return {"FLAGGED": getattr(kernels, mode), "FM": size.BM, "FN": size.BN}


def _options(data: Operands, chosen: Tile, *more: str) -> dict[str, Any]:
    sizes = {name: getattr(chosen, name) for name in ("BM", "BN", "INNER", "POLY", *more)}
    return data.functions | sizes | {"num_warps": chosen.warps, "maxnreg": chosen.registers} | COMPILED


def _spans(tiles: int, length: int, unit: int, least: int) -> tuple[int, int]:
    """How a length, in units, is cut into spans for each of so many tiles: (length of a span, number of spans).

    Enough programs to fill the chip, and no sum longer than `SPAN`.
    """
    fill = min(length // (4 * unit) or 1, -(-PROGRAMS // tiles))
    spans = max(-(-length // SPAN), least, fill)
    span = -(-length // (spans * unit)) * unit
    return span, -(-length // span)


def _three_terms(V: Tensor, m: int, T: int) -> Tensor:
    """V as a sum of three bf16 terms, zero-padded to (3, m, T)."""
    out = torch.zeros(3, m, T, dtype=torch.float32 if interpreted() else torch.bfloat16, device=V.device)
    rest = V
    for term in out:
        term[: V.shape[0], : V.shape[1]] = rest
        rest = rest - term[: V.shape[0], : V.shape[1]].float()
    return out
