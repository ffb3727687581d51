"""Derivatives of a posterior in the points."""

from __future__ import annotations

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.processes.posterior import Posterior


def slope(posterior: Posterior, X: Points, of: str) -> Tensor:
    """The derivative of the mean, or of the deviation for ``of="std"``, of shape (m, t, d)."""
    if not X.is_tensor or posterior.kernel.domain == "matrix":
        raise InputError("gradient needs rows of numbers, not objects or a Gram matrix.")
    return torch.cat([_slope(posterior, part, of) for part in posterior.tiles(X)])


def _slope(posterior: Posterior, X: Points, of: str) -> Tensor:
    with torch.enable_grad():
        x = X.values.detach().to(torch.float64).requires_grad_()
        points = Points(x, X.names)
        values = posterior.mean(points) if of == "mean" else posterior.variance(points).sqrt()[:, None]
        columns = [torch.autograd.grad(v.sum(), x, retain_graph=True)[0] for v in values.T]
    return torch.stack(columns, dim=1).expand(-1, posterior.data.n_targets, -1)
