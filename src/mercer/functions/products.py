"""Kernel matrices times coefficients, and their derivatives: where a function's numbers come from."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points, promote
from mercer.core.memory import resolve_budget
from mercer.functions.dials import GRADIENT_TILE
from mercer.kernels import Kernel
from mercer.kernels.pair import DensePair
from mercer.operators import gram


def times(kernel: Kernel, x: Points, z: Points, weights: Tensor, memory_budget: Any = None) -> Tensor:
    """k(x, z) @ weights on the device of z; dense and differentiable where something requires gradients."""
    x, z, weights = _matched(x, z, weights)
    if torch.is_grad_enabled() and _requires_grad(kernel, x, z, weights):
        values = kernel.on(DensePair(x, z))
        return values @ weights.to(values)
    result: Tensor = gram(kernel, x, z, memory_budget=memory_budget) @ weights
    return result


def gradients(kernel: Kernel, x: Points, z: Points, weights: Tensor, memory_budget: Any = None) -> Tensor:
    """Derivatives of k(x, z) @ weights with respect to each row of x, shape (m, t, d), tile by tile."""
    x, z, weights = _matched(x, z, weights)
    budget = min(GRADIENT_TILE, resolve_budget(memory_budget, weights.device) // 8)
    rows = max(1, budget // (len(z) * weights.element_size()))
    z, weights = Points(z.values.detach(), z.names), weights.detach()
    tiles = [_tile_gradients(kernel, Points(tile, x.names), z, weights) for tile in x.values.detach().split(rows)]
    return torch.cat(tiles)


def _tile_gradients(kernel: Kernel, x: Points, z: Points, weights: Tensor) -> Tensor:
    rows = x.values.clone().requires_grad_(True)
    with torch.enable_grad():
        totals = (kernel.on(DensePair(Points(rows, x.names), z)) @ weights).sum(0)
    if not totals.requires_grad:  # a constant
        result: Tensor = rows.new_zeros(len(rows), weights.shape[1], rows.shape[1])
        return result
    one = [torch.autograd.grad(total, rows, retain_graph=True, materialize_grads=True)[0] for total in totals]
    return torch.stack(one, dim=1)


def _matched(x: Points, z: Points, weights: Tensor) -> tuple[Points, Points, Tensor]:
    """All three in one dtype on the device of z, as two samples even when x is z: the noise of rows takes no part."""
    if not (x.is_tensor and z.is_tensor):
        return Points(x.values, x.names), z, weights
    b, a, weights = promote(z.values, x.values, weights)
    return Points(a, x.names), Points(b, z.names), weights


def _requires_grad(kernel: Kernel, x: Points, z: Points, weights: Tensor) -> bool:
    values = (x.values, z.values, weights, *kernel.get_params().values())
    return any(isinstance(value, Tensor) and value.requires_grad for value in values)
