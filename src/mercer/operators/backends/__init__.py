"""Back ends that multiply with a Gram matrix without storing it."""

from __future__ import annotations

from typing import Any

import torch

from mercer.core.arrays import Points
from mercer.core.errors import NotTraceable
from mercer.core.memory import readable, require, resolve_budget
from mercer.formula.symbols import Program
from mercer.kernels.base import Kernel
from mercer.kernels.pair import DensePair
from mercer.operators.backends.dense import DenseTiles, HeldMatrix
from mercer.operators.backends.fused import FusedTiles, supports
from mercer.operators.backends.tiles import Tiles
from mercer.operators.backends.traced import TracedTiles

FUSED_DEVICES = ("cuda",)
"""Devices on which fused products are tried first."""


def choose_backend(
    kernel: Kernel, x: Points, z: Points, dtype: torch.dtype, device: torch.device, memory_budget: Any = None
) -> Tiles:
    """The back end for a kernel and its data.

    On a GPU the fused products, on a CPU and for what cannot be fused traced tiles, and dense tiles where the formula
    cannot be traced.
    """
    if kernel.domain == "matrix":
        return _held(kernel, x, z, dtype, device, resolve_budget(memory_budget, device))
    try:
        program = kernel.program(x.take(slice(0, 2)))
    except NotTraceable as reason:
        return DenseTiles(kernel, x, z, dtype, device, str(reason))
    if device.type not in FUSED_DEVICES:
        return TracedTiles(program, x, z, dtype, device)
    fused = _fused(program, x, z, resolve_budget(memory_budget, device))
    if isinstance(fused, FusedTiles):
        return fused
    tiles = TracedTiles(program, x, z, dtype, device)
    tiles.notes = (f"tiles: {fused}", *tiles.notes)
    return tiles


def _fused(program: Program, x: Points, z: Points, budget: int) -> FusedTiles | str:
    """The fused back end, or the reason against it."""
    declined = supports(program, x, z)
    if declined is not None:
        return declined
    fused = FusedTiles.of(program, x, z)
    if fused.least_bytes > budget:
        return f"fused products need {readable(fused.least_bytes)} but the memory budget is {readable(budget)}"
    return fused


def _held(kernel: Kernel, x: Points, z: Points, dtype: torch.dtype, device: torch.device, budget: int) -> HeldMatrix:
    """Precomputed kernels see whole samples, so their matrix is evaluated once."""
    require(len(x) * len(z) * dtype.itemsize, budget, f"the {len(x):,} x {len(z):,} matrix of a precomputed kernel")
    matrix = kernel.on(DensePair(x, None if z is x else z))
    return HeldMatrix(matrix.to(device=device, dtype=dtype), one_sample=z is x)
