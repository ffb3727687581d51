"""Labels that allow for rows not yet seen."""

from __future__ import annotations

import torch
from torch import Tensor

from mercer.losses import Logistic, Multinomial
from mercer.solvers.objective import Objective


def smoothed_labels(codes: Tensor, classes: int, weights: Tensor | None = None) -> Tensor:
    r"""Probabilities (n, classes) in place of labels 0, 1, ...: those of class k, with rows of total weight N, become

    .. math:: P(k) = \frac{N + 1}{N + 1 + 2 / K},

    for K classes, and the other classes share the rest: as if each class had had one row more that was right, and all
    together two that were wrong. Few rows that all happen to be right do not then ask for certainty.

    References: Platt, *Probabilistic outputs for support vector machines*, 1999, section 2.2, for K = 2.

    >>> smoothed_labels(torch.tensor([0, 0, 1]), 2)
    tensor([[0.7500, 0.2500],
            [0.7500, 0.2500],
            [0.3333, 0.6667]], dtype=torch.float64)
    """
    codes = codes.long()
    w = torch.ones(len(codes), dtype=torch.float64, device=codes.device) if weights is None else weights.double()
    count = torch.zeros(classes, dtype=torch.float64, device=codes.device).index_add_(0, codes, w.to(codes.device))
    own = ((count + 1) / (count + 1 + 2 / classes))[codes].unsqueeze(1)
    shared = ((1 - own) / max(1, classes - 1)).expand(-1, classes)
    return shared.scatter(1, codes.unsqueeze(1), own)


def loss_of_left_out(objective: Objective, fitted: Tensor) -> float:
    """The mean loss of predictions (n, t) for rows left out; for the logistic losses with smoothed labels."""
    total = float(len(fitted)) if objective.weights is None else float(objective.weights.sum())
    if isinstance(objective.loss, Logistic | Multinomial):
        several = isinstance(objective.loss, Multinomial)
        codes = objective.targets.reshape(-1) if several else (objective.targets.reshape(-1) > 0)
        logits = fitted if several else torch.cat([-fitted / 2, fitted / 2], dim=1)
        copies = torch.as_tensor(objective.copies).expand(len(fitted), 1)[:, 0]
        labels = smoothed_labels(codes, logits.shape[1], copies)
        value = float((-(labels * torch.log_softmax(logits, 1)) * objective.w).sum()) / total
    else:
        value = objective.loss_sum(fitted) / total
    return value if value == value else float("inf")
