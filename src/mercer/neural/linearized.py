"""A network linear in its parameters: the first terms of its Taylor series."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.func import jvp

from mercer.core.errors import InputTypeError
from mercer.neural.modules import Outputs


class Linearized(nn.Module):
    r"""The network

    .. math:: f(x; \theta_0) + \langle \nabla f(x; \theta_0), \theta - \theta_0 \rangle,

    whose parameters are the differences :math:`\theta - \theta_0`, zero at first. Training it by gradient flow is
    kernel regression with the tangent kernel of the module.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        if not isinstance(module, nn.Module):
            raise InputTypeError(f"linearize(module={type(module).__name__}): give a torch.nn.Module.")
        self.__dict__["module"] = module  # not a part of this one: its parameters do not train
        self.start = {name: p.detach().clone() for name, p in module.named_parameters() if p.requires_grad}
        self.differences = nn.ParameterList([nn.Parameter(torch.zeros_like(p)) for p in self.start.values()])

    def forward(self, x: Tensor) -> Tensor:
        if not isinstance(x, Tensor):
            raise InputTypeError(f"A linearised network takes a tensor of rows, got {type(x).__name__}.")
        outputs = Outputs.of(self.__dict__["module"], x)
        at = {name: p.to(outputs.like) for name, p in self.start.items()}
        direction = {name: d.to(outputs.like) for name, d in zip(at, self.differences, strict=True)}
        value, slope, *_ = jvp(lambda p: outputs(p, outputs.rows(x)), (at,), (direction,))
        result: Tensor = value + slope
        return result


def linearize(module: nn.Module) -> Linearized:
    """The network linear in its parameters around those it has, a module to train like any other.

    >>> module = torch.nn.Linear(2, 1)
    >>> linear, x = linearize(module), torch.ones(1, 2)
    >>> bool(torch.isclose(linear(x), module(x)))
    True
    """
    return Linearized(module)
