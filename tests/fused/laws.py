"""What the laws of the fused products share: samples, references and errors.

The laws run in Triton's interpreter on the CPU, or compiled on a GPU where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mercer.core.arrays import Points, as_points
from mercer.kernels import Kernel
from mercer.operators.backends import fused
from mercer.operators.backends.fused.tiles import interpreted
from mercer.testing.programs import run_program
from mercer.testing.samples import sample_for

TOLERANCE = 2e-6
NEAR_TOLERANCE = 5e-5
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

if interpreted():
    from tensor_cores import stand_in

    stand_in()


def every_pair(*axes: Sequence[Any]) -> list[Any]:
    """All combinations; some hold every pair of values of two axes, and the others, which repeat these, are slow."""
    longest = max(map(len, axes))
    return [
        pytest.param(*case, marks=() if sum(places) % longest == 0 else pytest.mark.slow)
        for places, case in zip(product(*map(range, map(len, axes))), product(*axes), strict=True)
    ]


def points(rows: Any) -> Points:
    return Points(torch.as_tensor(np.asarray(rows), dtype=torch.float32, device=DEVICE))


def normal(n: int, d: int, seed: int, radius: float = 24.0) -> Tensor:
    """Normal rows whose largest squared norm is `radius`."""
    x = torch.from_numpy(np.random.default_rng(seed).normal(size=(n, d)))
    return (x - x.mean(0)) * (radius / float((x - x.mean(0)).square().sum(1).max())) ** 0.5


def samples(kernel: Kernel, n: int, m: int, seed: int = 0) -> tuple[Points, Points]:
    rng = np.random.default_rng(seed)
    return points(sample_for(kernel, n, rng)), points(sample_for(kernel, m, rng))


def reference(kernel: Kernel, x: Points, z: Points | None = None) -> Tensor:
    """The Gram matrix in float64, from differences."""
    x64, z64 = (None if p is None else as_points(p.values.double().cpu()) for p in (x, z))
    assert x64 is not None
    return run_program(kernel.program(x64), x64, z64)


def columns(n: int, *t: int, seed: int = 1) -> Tensor:
    """Right-hand sides that do not sum to almost nothing."""
    values = 0.3 + np.random.default_rng(seed).normal(size=(n, *t))
    return torch.as_tensor(values, dtype=torch.float32, device=DEVICE)


def gram(kernel: Kernel, x: Points, z: Points, *, same: bool = False, symmetric: bool = False) -> fused.FusedGram:
    program = kernel.program(x)
    assert fused.supports(program, x, z) is None
    return fused.FusedGram(program, x, z, same=same, symmetric=symmetric)


def error(found: Tensor, expected: Tensor) -> float:
    """Relative to the norm of what is expected, where that is not zero."""
    expected = expected.double().cpu()
    return float((found.double().cpu() - expected).norm() / (expected.norm() or 1.0))


def product_error(kernel: Kernel, x: Points, z: Points, *t: int, same: bool = False) -> float:
    V = columns(len(z), *t)
    expected = reference(kernel, x, None if same else z) @ V.double().cpu()
    return error(gram(kernel, x, z, same=same).product(V), expected)


def dense(gram: fused.FusedGram) -> Tensor:
    """The whole matrix."""
    rows, columns = (torch.arange(length, device=DEVICE) for length in gram.shape)
    return gram.block(rows, columns)
