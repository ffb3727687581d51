"""Which programs and data the fused loops can take."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module

import torch

from mercer.core.arrays import Points
from mercer.core.errors import NotTraceable
from mercer.formula.simplify import merged, reduced
from mercer.formula.symbols import Program
from mercer.operators.backends.fused.dials import (
    CAPABILITY,
    MOST_END_VALUES,
    MOST_STATISTICS,
    RESIDENT_COLUMNS,
    RESIDENT_TOGETHER,
)
from mercer.operators.backends.fused.layout import layout
from mercer.operators.backends.fused.probe import warped
from mercer.operators.backends.fused.profile import profile
from mercer.operators.backends.fused.tiles import interpreted


def supports(program: Program, x: Points, z: Points) -> str | None:
    """None when the fused loops can multiply with this Gram matrix, else the reason in words."""
    return _no_device(x, z) or _no_formula(program) or _too_much(program, x)


def _no_device(x: Points, z: Points) -> str | None:
    if not (x.is_tensor and z.is_tensor):
        return "the data are not rows of numbers"
    if len(x) == 0 or len(z) == 0:
        return "a sample is empty"
    if x.values.dtype != torch.float32 or z.values.dtype != torch.float32:
        return "fused products are for float32 data"
    if not _triton_imports():
        return "triton cannot be imported"
    if interpreted():
        return None
    if not (x.values.is_cuda and z.values.is_cuda):
        return "the data are not on a CUDA device"
    capability = torch.cuda.get_device_capability(x.values.device)
    if capability[0] != CAPABILITY:
        return f"fused products are for compute capability {CAPABILITY} (H100, H200), the GPU has {capability[0]}"
    return None


@lru_cache(maxsize=1)
def _triton_imports() -> bool:
    try:
        import_module("triton")
    except ImportError:
        return False
    return True


@lru_cache(maxsize=256)
def _no_formula(program: Program) -> str | None:
    try:
        profile(merged(reduced(program)))
    except NotTraceable as error:
        return str(error)
    return None


def _too_much(program: Program, x: Points) -> str | None:
    inputs = merged(reduced(program)).inputs
    products = [s for s in inputs if s.kind in ("squared_distance", "squared_sum", "inner")]
    if len(products) > MOST_STATISTICS:
        return f"the formula has {len(products)} different distances and inner products, more than {MOST_STATISTICS}"
    for side in ("left", "right"):
        ends = sum(s.kind == side for s in inputs)
        if ends > MOST_END_VALUES:
            return f"the formula has {ends} functions of one point, more than {MOST_END_VALUES}"
    sample = x.take(slice(0, 1))
    columns = [warped(s, sample).values.shape[1] for s in products]
    most = sum(layout(d, "deep").width for d in columns)
    if len(set(columns)) > 1 and (most > RESIDENT_TOGETHER or max(columns) > RESIDENT_COLUMNS // 3 - 10):
        return "several distances over different numbers of columns, some of them many"
    return None
