"""Rows drawn at random, some more likely than others."""

from __future__ import annotations

import torch
from torch import Tensor


def draw_different(weights: Tensor, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    r"""Places of `count` different rows, in order, and the probabilities with which they were taken,

    .. math:: p_i = \min(1, c\, w_i), \qquad \textstyle\sum_i p_i = \text{count}.

    So a sum over all rows is estimated by the sum over those drawn, each divided by its probability. All weights must
    be positive. Systematic sampling in random order: Madow, *On the theory of systematic sampling*, 1949.

    >>> draw_different(torch.tensor([1.0, 1.0, 100.0]), 2, torch.Generator().manual_seed(0))
    (tensor([1, 2]), tensor([0.5000, 1.0000], dtype=torch.float64))
    """
    weights, count = weights.to(torch.float64), min(count, len(weights))
    share = torch.ones_like(weights)
    sure = torch.zeros_like(weights, dtype=torch.bool)
    while not bool(sure.all()):
        share = torch.where(sure, 1.0, weights * ((count - int(sure.sum())) / float(weights[~sure].sum())))
        if not bool((share[~sure] > 1.0).any()):
            break
        sure |= share >= 1.0
    order = torch.randperm(len(weights), generator=generator).to(weights.device)
    start = torch.rand(1, generator=generator, dtype=torch.float64).to(weights.device)
    marks = start + torch.arange(count, device=weights.device)
    places = torch.searchsorted(share[order].cumsum(0), marks, right=True)
    places = order[places.clamp(max=len(order) - 1)].unique()
    return places, share[places]


def draw_independently(weights: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """`count` places drawn independently with probabilities proportional to `weights`.

    >>> draw_independently(torch.tensor([0.0, 1.0, 0.0]), 3, torch.Generator().manual_seed(0))
    tensor([1, 1, 1])
    """
    cumulative = weights.cumsum(0)
    uniform = torch.rand(count, generator=generator, dtype=torch.float64).to(weights.device)
    places = torch.searchsorted(cumulative, uniform * cumulative[-1], right=True)
    return places.clamp(max=int(weights.nonzero()[-1]))


def draw_in_order(weights: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Places of at most `count` different rows, and the probabilities min(1, c w) with which they were taken.

    Rows of equal weight are evenly spaced, so that nothing is random; sums are estimated as by `draw_different`.

    >>> draw_in_order(torch.tensor([1.0, 1.0, 1.0, 1.0]), 2)
    (tensor([0, 2]), tensor([0.5000, 0.5000]))
    """
    share = (weights * (count / weights.sum())).clamp(max=1.0)
    marks = (share.cumsum(0) + 0.5).floor()
    places = (marks.diff(prepend=marks.new_zeros(1)) > 0).nonzero().squeeze(1)
    return places, share[places]
