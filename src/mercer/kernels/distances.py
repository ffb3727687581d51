"""Squared Euclidean distances through one matrix product, accurate also where points nearly coincide; L1 distances."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from mercer.kernels.dials import DIFFERENCES, FEATURES_AT_ONCE, FOLD_RADIUS, MEND_RADIUS, NEAR, ROOM


def squared_distances(x: Tensor, z: Tensor, *, exact: bool) -> Tensor:
    """Matrix of |x_i - z_j|^2 for centred rows; `exact` recomputes near-coincident pairs from differences.

    Differentiable in both arguments, any number of times.
    """
    if not (x.requires_grad or z.requires_grad):
        return _forward(x, z, exact)
    result: Tensor = _SquaredDistances.apply(x, z, exact)
    return result


class _SquaredDistances(torch.autograd.Function):
    """Forward: centred product. Backward: the plain derivative 2 (x_i - z_j), as two products."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, z: Tensor, exact: bool) -> Tensor:
        ctx.save_for_backward(x, z)
        return _forward(x, z, exact)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, z = ctx.saved_tensors
        grad = grads[0]
        grad_x = 2 * (grad.sum(1, keepdim=True) * x - grad @ z) if ctx.needs_input_grad[0] else None
        grad_z = 2 * (grad.sum(0).unsqueeze(1) * z - grad.T @ x) if ctx.needs_input_grad[1] else None
        return grad_x, grad_z, None


def _forward(x: Tensor, z: Tensor, exact: bool) -> Tensor:
    dtype = x.dtype
    a, b = x.to(torch.float64), z.to(torch.float64)
    norms_a, norms_b = a.square().sum(1), b.square().sum(1)
    radius = float(torch.cat([norms_a, norms_b]).max()) if len(a) + len(b) else 0.0
    if x.shape[1] == 1:
        s = (x - z.T).square_()
    else:
        if dtype == torch.float32 and radius <= FOLD_RADIUS:
            a, b, norms_a, norms_b = (t.to(dtype) for t in (a, b, norms_a, norms_b))
        s = torch.addmm(norms_b, a, b.T, alpha=-2.0).add_(norms_a.unsqueeze(1)).clamp_(min=0.0)
        if exact or radius > MEND_RADIUS:
            mend_near_pairs(s, a, b, NEAR[s.dtype] * radius)
        s = s.to(dtype)
    largest = ROOM * torch.finfo(dtype).max
    return s.clamp_(max=largest) if radius > largest / 4 else s


def mend_near_pairs(s: Tensor, a: Tensor, b: Tensor, threshold: float) -> None:
    """Replace entries of `s` at or below `threshold` by sums of squared differences; all when it has overflowed."""
    near = s <= threshold
    if not math.isfinite(threshold) or 4 * int(near.count_nonzero()) > s.numel():
        s.copy_(torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist").square_())
        return
    rows, columns = near.nonzero(as_tuple=True)
    chunk = max(1, 2**20 // a.shape[1])
    for start in range(0, len(rows), chunk):
        i, j = rows[start : start + chunk], columns[start : start + chunk]
        s[i, j] = (a[i] - b[j]).square().sum(1)


def l1_distances(x: Tensor, z: Tensor) -> Tensor:
    """Matrix of the sums of |x_i - z_j| over the features.

    `torch.cdist` gives each pair a block of threads on a GPU; adding up stored differences is far quicker there.
    """
    if x.is_cuda and not (x.requires_grad or z.requires_grad):
        return added_differences(x, z)
    return torch.cdist(x, z, p=1.0)


def added_differences(x: Tensor, z: Tensor) -> Tensor:
    """L1 distances from differences of some features and rows at a time.

    >>> added_differences(torch.tensor([[0.0, 1.0], [2.0, 3.0]]), torch.tensor([[1.0, 1.0]]))
    tensor([[1.],
            [3.]])
    """
    out = x.new_zeros(len(x), len(z))
    rows = max(1, DIFFERENCES // (FEATURES_AT_ONCE * max(1, len(z))))
    for result, some in zip(out.split(rows), x.split(rows), strict=True):
        for a, b in zip(some.split(FEATURES_AT_ONCE, 1), z.split(FEATURES_AT_ONCE, 1), strict=True):
            result += torch.linalg.vector_norm(a.T.unsqueeze(2) - b.T.unsqueeze(1), ord=1, dim=0)
    return out
