"""Sample weights as the selection criteria use them."""

from __future__ import annotations

import torch
from torch import Tensor

from mercer.core.errors import InputError


def positive_weights(weights: Tensor | None, like: Tensor) -> Tensor:
    """One positive float64 weight for each row of `like`; None is one each."""
    if weights is None:
        return torch.ones(len(like), dtype=torch.float64, device=like.device)
    weights = weights.to(device=like.device, dtype=torch.float64)
    if weights.shape != (len(like),):
        raise InputError(f"weights has shape {tuple(weights.shape)}; expected one for each of {len(like)} rows.")
    bad = ~((weights > 0) & torch.isfinite(weights))
    if bool(bad.any()):
        row = int(bad.nonzero()[0])
        raise InputError(
            f"weights[{row}]={float(weights[row])}: must be positive and finite; leave out rows of weight zero."
        )
    return weights


def along_rows(v: Tensor, like: Tensor) -> Tensor:
    """v with trailing axes of length one, so that its rows meet the rows of `like`."""
    return v.reshape(v.shape + (1,) * (like.ndim - v.ndim))
