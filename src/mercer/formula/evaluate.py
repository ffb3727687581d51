"""The value of a program from the values of its inputs."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from mercer.formula.operations import operation
from mercer.formula.symbols import Program


def evaluate(program: Program, inputs: Sequence[Tensor]) -> Tensor:
    """The value in torch, differentiable in the inputs; one number for a constant program.

    >>> from mercer.core.arrays import as_points
    >>> from mercer.kernels import Linear
    >>> evaluate(Linear(bias=1.0).program(as_points([[0.0]])), [torch.tensor([2.0, 3.0])])
    tensor([3., 4.])
    """
    like = inputs[0] if len(inputs) else torch.empty(0, dtype=torch.float64)
    values: list[Tensor] = []
    for step in program.steps:
        if step.op == "input":
            values.append(inputs[int(step.value or 0)])
        elif step.op == "constant":
            values.append(torch.tensor(float(step.value or 0.0), dtype=like.dtype, device=like.device))
        else:
            literal = () if step.value is None else (step.value,)
            values.append(operation(step.op).tensor(*(values[i] for i in step.args), *literal))
    return values[-1]
