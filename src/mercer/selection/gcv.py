"""Generalised cross-validation."""

from __future__ import annotations

import torch
from torch import Tensor

from mercer.selection.weights import along_rows, positive_weights


def gcv_error(
    x: Tensor,
    inverse_diag: Tensor,
    alpha: float | Tensor,
    weights: Tensor | None = None,
    *,
    null_part: Tensor | None = None,
    null_diag: Tensor | None = None,
) -> Tensor:
    r"""The generalised cross-validation error, one for each target

    .. math:: \mathrm{GCV} = \frac{N \sum_i w_i r_i^2}{(N - \operatorname{tr} H)^2}
        = \frac{N \alpha^2 |x|^2}{(N - n + \alpha \operatorname{tr} G)^2}, \qquad N = \sum_i \max(w_i, 1),

    with x and G as in `loo_residuals`, whose arguments these are. Integer weights equal repeated rows; without weights
    this is n y^T (K + alpha I)^-2 y / [tr (K + alpha I)^-1]^2. At alpha = 0 it is the limit.

    References: Golub, Heath and Wahba, *Generalized Cross-Validation as a Method for Choosing a Good Ridge
    Parameter*, 1979.

    >>> y = torch.tensor([1.0, 3.0]).double()
    >>> gcv_error(y / 2, torch.ones(2).double() / 2, alpha=1.0)
    tensor(5., dtype=torch.float64)
    """
    w = positive_weights(weights, x)
    alphas = torch.as_tensor(alpha, dtype=x.dtype, device=x.device)
    extra = (w - 1.0).clamp(min=0.0).sum()  # N - n, and zero exactly without weights above one
    trace = along_rows(inverse_diag, x).sum(0)
    top, bottom = (alphas * x).square().sum(0), extra + alphas * trace
    if bool((alphas == 0).any()):
        at_zero = alphas == 0
        if null_part is not None and null_diag is not None:
            nullity = along_rows(null_diag, x).sum(0).round()
            top = torch.where(at_zero, along_rows(null_part, x).square().sum(0), top)
            bottom = torch.where(at_zero, extra + nullity, bottom)
        full_rank = at_zero & (bottom == 0)
        top = torch.where(full_rank, x.square().sum(0), top)
        bottom = torch.where(full_rank, trace, bottom)
    return (len(x) + extra) * top / bottom.square()
