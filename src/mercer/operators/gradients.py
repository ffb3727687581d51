"""Products with a lazy Gram matrix that carry gradients to points, right-hand sides and parameters of the kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mercer.core.arrays import Points
from mercer.core.memory import resolve_budget
from mercer.kernels.base import Kernel
from mercer.operators.pull_back import pull_back

if TYPE_CHECKING:
    from mercer.operators.gram import GramOperator


def leaves(kernel: Kernel, x: Points, z: Points) -> dict[str, Tensor]:
    """What requires gradients, by name: the points "x" and "z" and parameters of the kernel."""
    named = {"x": x.values, "z": z.values} if z is not x else {"x": x.values}
    named |= kernel.get_params()
    return {name: value for name, value in named.items() if isinstance(value, Tensor) and value.requires_grad}


def without_gradients(kernel: Kernel, x: Points, z: Points) -> tuple[Kernel, Points, Points, bool]:
    """The same kernel with plain numbers, which can be traced, the same points, and whether gradients were left out.

    One sample stays one.
    """
    tensors = {name: value for name, value in kernel.get_params().items() if isinstance(value, Tensor)}
    a = _detached(x)
    b = a if z is x else _detached(z)
    learns = a is not x or b is not z or any(value.requires_grad for value in tensors.values())
    if tensors:
        kernel = kernel.replace(**{name: _plain(value) for name, value in tensors.items()})
    return kernel, a, b, learns


def differentiable_product(operator: GramOperator, V: Tensor) -> Tensor:
    """K @ V; its gradients are found tile by tile and take no more memory than the product."""
    found = leaves(operator.kernel, operator.x, operator.z)
    product: Tensor = _Product.apply(operator, V, tuple(found), *found.values())
    return product


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, operator: GramOperator, V: Tensor, names: tuple[str, ...], *values: Tensor) -> Tensor:
        ctx.operator, ctx.names = operator, names
        ctx.save_for_backward(V)
        return operator.product(V.detach())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        operator, (V,), W = ctx.operator, ctx.saved_tensors, grads[0]
        by_V = operator.T.product(W) if ctx.needs_input_grad[1] else None
        found = _by_leaves(operator, ctx.names, V.detach(), W)
        return None, by_V, None, *(found[name] for name in ctx.names)


def _by_leaves(operator: GramOperator, names: tuple[str, ...], V: Tensor, W: Tensor) -> dict[str, Tensor | None]:
    """Derivatives of sum(W * (K V)) by what requires gradients."""
    if not names:
        return {}
    kernel, x, z = operator.kernel, operator.x, operator.z
    fused = operator.backend.gradients(V, W) if set(names) <= {"x", "z"} else None
    if fused is not None:
        left, right = fused
        return {"x": (left + right if z is x else left).to(x.values), "z": right.to(z.values)}
    copies = {name: value.detach().requires_grad_() for name, value in leaves(kernel, x, z).items()}
    kernel = kernel.replace(**{name: copy for name, copy in copies.items() if name not in ("x", "z")})
    x = replace(x, values=copies["x"]) if "x" in copies else _detached(x)
    z = x if operator.z is operator.x else replace(z, values=copies["z"]) if "z" in copies else _detached(z)
    W, V = (t.reshape(len(t), -1) for t in (W, V))
    a, b = (torch.cat([W, V], 1), torch.cat([V, W], 1) * 0.5) if z is x else (W, V)
    budget = resolve_budget(operator.memory_budget, operator.device)
    by_x, by_z = pull_back(kernel, x, z, lambda i, j: a[i] @ b[j].mT, operator.device, budget)
    return {name: copy.grad for name, copy in copies.items()} | {"x": by_x, "z": by_z}


def _plain(value: Tensor) -> Any:
    numbers = value.detach().cpu().tolist()
    return tuple(numbers) if isinstance(numbers, list) else numbers


def _detached(points: Points) -> Points:
    if not points.is_tensor or not points.values.requires_grad:
        return points
    return Points(points.values.detach(), points.names)
