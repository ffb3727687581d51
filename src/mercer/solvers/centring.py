"""Targets and their weighted means."""

from __future__ import annotations

import torch
from torch import Tensor

ROUNDING = 8 * torch.finfo(torch.float64).eps
"""Differences to the mean below this share of the largest target are rounding."""


def centred(Y: Tensor, weights: Tensor | None = None, *, wanted: bool = True) -> tuple[Tensor, Tensor]:
    """The weighted mean of each target, (t,), and the targets (n, t) less it; not `wanted`, zeros and the targets.

    What is left of a constant target is exactly zero.

    >>> centred(torch.tensor([[1.0], [4.0]]).double(), torch.tensor([2.0, 1.0]))
    (tensor([2.], dtype=torch.float64), tensor([[-1.],
            [ 2.]], dtype=torch.float64))
    """
    if not wanted:
        return Y.new_zeros(Y.shape[1]), Y
    w = torch.ones(len(Y)).to(Y) if weights is None else weights.to(Y)
    share = (w / w.sum()).unsqueeze(1)
    first = (share * Y).sum(0)
    mean = first + (share * (Y - first)).sum(0)
    rest = Y - mean
    constant = rest.abs().amax(0) <= ROUNDING * Y.abs().amax(0)
    return mean, torch.where(constant, 0.0, rest)
