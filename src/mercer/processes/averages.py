"""Probabilities averaged over latent functions that are not known exactly."""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor

from mercer.processes.dials import LARGEST_BATCH, NARROW, POINTS, SPACING
from mercer.solvers.decompose import eigh


def mean_sigmoid(mean: Tensor, variance: Tensor) -> Tensor:
    r"""The integral of :math:`1 / (1 + e^{-f})` over :math:`f \sim N(\mu, \sigma^2)`, to about 1e-13.

    Written as the chance that :math:`\mu + \sigma z > \ell` with normal z and logistic l, either of the two can be the
    variable of integration: the one whose partner is smooth is taken. The trapezoidal rule then has an error that falls
    exponentially in the number of points.

    References: Trefethen and Weideman, *The exponentially convergent trapezoidal rule*, 2014.

    >>> mean_sigmoid(torch.tensor([1.0, 1.0]).double(), torch.tensor([0.0, 1e6]).double())
    tensor([0.7311, 0.5004], dtype=torch.float64)
    """
    deviation = variance.clamp(min=0.0).sqrt()
    z = torch.arange(-9.0, 9.0 + SPACING / 2, SPACING, dtype=mean.dtype, device=mean.device)
    density = torch.exp(-0.5 * z.square()) * (SPACING / math.sqrt(2.0 * math.pi))
    narrow = torch.sigmoid(mean.unsqueeze(-1) + deviation.unsqueeze(-1) * z) @ density
    l = torch.arange(-40.0, 40.0 + SPACING / 2, SPACING, dtype=mean.dtype, device=mean.device)
    logistic = torch.sigmoid(l) * torch.sigmoid(-l) * SPACING
    wide = torch.special.ndtr((mean.unsqueeze(-1) - l) / deviation.clamp(min=NARROW).unsqueeze(-1)) @ logistic
    return torch.where(deviation < NARROW, narrow, wide).clamp(0.0, 1.0)


def mean_softmax(mean: Tensor, covariance: Tensor) -> Tensor:
    r"""The integral of softmax(f) over :math:`f \sim N(\mu, S)`, for means (m, t) and covariances (m, t, t).

    The common part of all functions does not count, which leaves t - 1 dimensions; in these the mean is taken over
    2,048 points of one Sobol sequence, the same for every row, with an error of about 1e-3.

    >>> p = mean_softmax(torch.tensor([[1.0, 0.0, 0.0]]).double(), torch.eye(3).double().unsqueeze(0))
    >>> p.round(decimals=2)
    tensor([[0.5200, 0.2400, 0.2400]], dtype=torch.float64)
    """
    t = mean.shape[1]
    H = contrasts(t).to(mean)
    reduced = H @ covariance @ H.mT
    size, directions = eigh(0.5 * (reduced + reduced.mT), "A covariance of predictions")
    spread = directions * size.clamp(min=0.0).sqrt().unsqueeze(1)
    root = H.mT @ spread @ directions.mT
    z = normal_points(t - 1).to(mean)
    batch = max(1, LARGEST_BATCH[mean.device.type] // z.shape[1])
    found = torch.empty_like(mean)
    for start in range(0, len(mean), batch):
        rows = slice(start, start + batch)
        f = root[rows] @ z
        found[rows] = torch.softmax(f.add_(mean[rows].unsqueeze(2)), dim=1).mean(2)
    return found


def contrasts(t: int) -> Tensor:
    """An orthonormal basis (t - 1, t) of the vectors whose sum is zero.

    >>> contrasts(2)
    tensor([[ 0.7071, -0.7071]], dtype=torch.float64)
    """
    rows = [torch.cat([torch.ones(k), torch.tensor([-float(k)]), torch.zeros(t - k - 1)]) for k in range(1, t)]
    H = torch.stack(rows).to(torch.float64)
    result: Tensor = H / H.norm(dim=1, keepdim=True)
    return result


@cache
def normal_points(dimension: int) -> Tensor:
    """Points (dimension, 2 POINTS) that fill a normal distribution evenly, each with its mirror image."""
    u = torch.quasirandom.SobolEngine(dimension, scramble=True, seed=0).draw(POINTS, dtype=torch.float64)
    z = torch.special.ndtri(u.clamp(1e-12, 1.0 - 1e-12))
    return torch.cat([z, -z]).T.contiguous()
