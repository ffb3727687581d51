"""Points whose image in the RKHS is close to a given one."""

from __future__ import annotations

import torch
from torch import Tensor

from mercer.features.dials import TINY
from mercer.features.principal import KernelProjection
from mercer.kernels.pair import vectors


def fixed_point_pre_images(
    projection: KernelProjection, mean_coef: Tensor, Y: Tensor, start: Tensor, max_iter: int = 200, tol: float = 1e-7
) -> Tensor:
    r"""Points z near which a Gaussian kernel k(z, .) is closest to :math:`g = \sum_i \gamma_i k(x_i, \cdot)`, the
    element with the coordinates Y, by

    .. math:: z \leftarrow \frac{\sum_i \gamma_i k(z, x_i)\, x_i}{\sum_i \gamma_i k(z, x_i)}.

    A step is taken only where it brings k(z, .) closer to g; points far from all data stay where they start.

    References: Mika, Schölkopf, Smola, Müller, Scholz and Rätsch, *Kernel PCA and de-noising in feature spaces*, 1998.
    """
    X = vectors(projection.points).to(torch.float64)
    gamma = Y.to(X) @ projection.coef.T.to(X) + mean_coef.to(X)
    z = start.to(X).clone()
    weights = gamma * torch.as_tensor(projection.kernel(z, X))
    value = weights.sum(1)
    moving = torch.arange(len(z), device=z.device)
    for _ in range(max_iter):
        if not len(moving):
            break
        usable = value[moving] > TINY * gamma[moving].abs().sum(1)
        moving = moving[usable]
        proposed = (weights[moving] @ X) / value[moving].unsqueeze(1)
        proposed_weights = gamma[moving] * torch.as_tensor(projection.kernel(proposed, X))
        better = proposed_weights.sum(1) > value[moving]
        change = (proposed - z[moving]).abs().amax(1)
        moving, proposed, proposed_weights = moving[better], proposed[better], proposed_weights[better]
        z[moving], weights[moving], value[moving] = proposed, proposed_weights, proposed_weights.sum(1)
        moving = moving[change[better] > tol * (1.0 + z[moving].abs().amax(1))]
    return z
