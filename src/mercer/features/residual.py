"""How far points are from a subspace of the RKHS."""

from __future__ import annotations

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.features.principal import KernelProjection
from mercer.kernels.pair import DiagonalPair
from mercer.operators import gram


def squared_residuals(projection: KernelProjection, mean_coef: Tensor, points: Points) -> Tensor:
    r"""The squared distances of the features of points from what their coordinates say of them, (n,),

    .. math:: \|k(x, \cdot) - m\|^2 - \sum_s \varphi_s(x)^2, \qquad m = \sum_i a_i k(z_i, \cdot),

    for orthonormal directions through m. Digits cancel where the distance is small beside k(x, x).
    """
    place = {"device": projection.device, "memory_budget": projection.memory_budget, "dtype": torch.float64}
    kernel, a = projection.kernel, mean_coef.to(torch.float64).reshape(-1, 1)
    squares = kernel.on(DiagonalPair(points)).to(torch.float64)
    if bool(a.any()):
        cross = gram(kernel, points, projection.points, **place).matmul(a)
        own = gram(kernel, projection.points, **place).matmul(a)
        squares = squares - 2.0 * cross[:, 0].to(squares) + float((a.to(own) * own).sum())
    return (squares - projection(points).square().sum(1).to(squares)).clamp(min=0.0)
