"""Back ends that multiply with a Gram matrix without storing it."""

from __future__ import annotations

import torch

from mercer.core.arrays import Points
from mercer.core.errors import NotTraceable
from mercer.core.memory import require
from mercer.kernels.base import Kernel
from mercer.kernels.pair import DensePair
from mercer.operators.backends.dense import DenseTiles, HeldMatrix
from mercer.operators.backends.tiles import Tiles
from mercer.operators.backends.traced import TracedTiles


def choose_backend(
    kernel: Kernel, x: Points, z: Points, dtype: torch.dtype, device: torch.device, budget: int
) -> Tiles:
    """The back end for a kernel and its data: traced tiles, or dense tiles where the formula cannot be traced."""
    if kernel.domain == "matrix":
        return _held(kernel, x, z, dtype, device, budget)
    try:
        program = kernel.program(x.take(slice(0, 2)))
    except NotTraceable as reason:
        return DenseTiles(kernel, x, z, dtype, device, str(reason))
    return TracedTiles(program, x, z, dtype, device)


def _held(kernel: Kernel, x: Points, z: Points, dtype: torch.dtype, device: torch.device, budget: int) -> HeldMatrix:
    """Precomputed kernels see whole samples, so their matrix is evaluated once."""
    require(len(x) * len(z) * dtype.itemsize, budget, f"the {len(x):,} x {len(z):,} matrix of a precomputed kernel")
    matrix = kernel.on(DensePair(x, None if z is x else z))
    return HeldMatrix(matrix.to(device=device, dtype=dtype), one_sample=z is x)
