"""A module as a function of its parameters and of rows, each output that of its own row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from mercer.core.errors import InputError, InputTypeError
from mercer.neural.dials import ROUNDING

Parameters = dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class Outputs:
    """f(parameters, rows) of shape (n, t), and the parameters that train; what a module keeps else stays as it is."""

    module: nn.Module
    parameters: Parameters
    fixed: Parameters

    @classmethod
    def of(cls, module: Any, x: Tensor) -> Outputs:
        """The function of a module, in the wider dtype of the module and of x, checked on two rows."""
        if not isinstance(module, nn.Module):
            raise InputTypeError(f"module={type(module).__name__}: give a torch.nn.Module.")
        _refuse_training(module)
        if any(p.is_complex() for p in module.parameters()):
            raise InputError("The module has complex parameters; tangent kernels are those of real ones.")
        like = next((p for p in module.parameters() if p.is_floating_point()), x)
        dtype = torch.promote_types(x.dtype, like.dtype)

        def cast(tensor: Tensor) -> Tensor:
            found = tensor.detach().clone()
            return found.to(dtype) if found.is_floating_point() else found

        trained = {name: cast(p) for name, p in module.named_parameters() if p.requires_grad}
        if not trained:
            raise InputError(
                "The module has no parameter that requires a gradient, so that its tangent kernel is zero."
            )
        kept = [*module.named_parameters(), *module.named_buffers()]
        found = cls(module, trained, {name: cast(p) for name, p in kept if name not in trained})
        found._check_rows(found.rows(x[:2]))
        return found

    @property
    def like(self) -> Tensor:
        return next(iter(self.parameters.values()))

    @property
    def size(self) -> int:
        """The number of parameters that train."""
        return sum(p.numel() for p in self.parameters.values())

    def rows(self, x: Tensor) -> Tensor:
        """x in the dtype and on the device of the parameters."""
        return x.to(self.like)

    def __call__(self, parameters: Parameters, x: Tensor) -> Tensor:
        with refusals(x):
            value = functional_call(self.module, parameters | self.fixed, (x,))
        return outputs_of_rows(value, x)

    def of_row(self, parameters: Parameters, row: Tensor) -> Tensor:
        return self(parameters, row.unsqueeze(0))[0]

    def _check_rows(self, x: Tensor) -> None:
        at = {name: p * _uneven(p) for name, p in self.parameters.items()}
        with torch.no_grad():
            together = self(at, x)
            alone = torch.cat([self(at, row.unsqueeze(0)) for row in x])
        if float((together - alone).abs().max()) > ROUNDING * float(together.abs().max()):
            raise InputError(
                "The output of the module for a row depends on the other rows or changes from call to call, so that it "
                "has no tangent kernel; take out what does this, or call module.eval()."
            )


@contextmanager
def refusals(x: Tensor) -> Iterator[None]:
    """What a module says of rows that it cannot take, as an error of ours."""
    try:
        yield
    except RuntimeError as error:
        raise InputError(f"The module cannot take rows of shape {tuple(x.shape[1:])}: {error}") from error


def outputs_of_rows(value: Any, x: Tensor) -> Tensor:
    """What a module made of the rows x, (n, t), or an error."""
    if not isinstance(value, Tensor) or value.ndim == 0 or len(value) != len(x):
        raise InputError(f"The module must give a tensor with one entry or row of outputs for each of {len(x)} rows.")
    return value.reshape(len(x), -1)


def _uneven(parameter: Tensor) -> Tensor:
    """Factors that break symmetries by which outputs may be zero."""
    factors = torch.linspace(0.5, 1.5, parameter.numel(), dtype=parameter.dtype, device=parameter.device)
    return factors.reshape(parameter.shape)


def _refuse_training(module: nn.Module) -> None:
    for name, part in module.named_modules():
        if part.training and isinstance(part, _BatchNorm | _DropoutNd):
            kind = type(part).__name__
            raise InputError(
                f"{name or 'The module'} ({kind}) is in training mode, where its output depends on other rows or on "
                "chance: call module.eval() first."
            )
