"""Programs on statistics from differences in float64: the reference that every back end is compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.formula.evaluate import evaluate
from mercer.formula.symbols import Program, Statistic


def run_program(program: Program, x: Points, z: Points | None = None) -> Tensor:
    """The Gram matrix of a program, in float64 and from differences; without z that of one sample.

    >>> from mercer.core.arrays import as_points
    >>> from mercer.kernels import Linear
    >>> points = as_points([[1.0], [2.0]])
    >>> run_program(Linear(bias=1.0).program(points), points)
    tensor([[2., 3.],
            [3., 5.]], dtype=torch.float64)
    """
    shape = len(x), len(x if z is None else z)
    inputs = [_statistic(statistic, x, z) for statistic in program.inputs]
    return evaluate(program, inputs).expand(shape)


def _statistic(statistic: Statistic, x: Points, z: Points | None) -> Tensor:
    """One input of a program on all pairs."""
    if statistic.kind == "same":
        return torch.eye(len(x), dtype=torch.float64) if z is None else torch.zeros(len(x), len(z)).double()
    a = _warped(statistic.warps, x)
    b = a if z is None else _warped(statistic.warps, z)
    if statistic.kind in ("left", "right"):
        assert statistic.function is not None
        left = statistic.kind == "left"
        ends = torch.as_tensor(statistic.function(a if left else b), dtype=torch.float64)
        return ends.unsqueeze(1) if left else ends.unsqueeze(0)
    if statistic.kind == "inner":
        return a @ b.T
    if statistic.kind == "squared_sum":
        return (a.unsqueeze(1) + b.unsqueeze(0)).square().sum(2)
    scaled = (a.unsqueeze(1) - b.unsqueeze(0)) / torch.tensor(statistic.length_scale, dtype=torch.float64)
    return scaled.abs().sum(2) if statistic.kind == "l1_distance" else scaled.square().sum(2)


def _warped(warps: Sequence[Callable[[Points], Points]], points: Points) -> Tensor:
    for warp in warps:
        points = warp(points)
    result: Tensor = points.values.to(torch.float64)
    return result
