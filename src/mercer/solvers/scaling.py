"""Columns of any size: squares of numbers beyond 1e154 or below 1e-162 are not numbers any more."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def powers_of_two(V: Tensor) -> Tensor:
    """For each column of V (n, t) a power of two that brings its largest entry between 1 and 2; dividing is exact.

    >>> powers_of_two(torch.tensor([[3.0, 0.0, -1e-3], [1.0, 0.0, 0.0]]))
    tensor([2.0000e+00, 1.0000e+00, 9.7656e-04])
    """
    if not len(V):
        return V.new_ones(V.shape[1:])
    largest = V.detach().abs().amax(0).cpu().numpy()
    exponent = np.frexp(np.where((largest > 0) & np.isfinite(largest), largest, 1.0))[1]
    return torch.from_numpy(np.ldexp(largest.dtype.type(1.0), exponent - 1)).to(V.device)


def column_norms(V: Tensor) -> Tensor:
    """The norms of the columns, without squares that overflow or vanish.

    >>> column_norms(torch.tensor([[3e-200], [4e-200]], dtype=torch.float64))
    tensor([5.0000e-200], dtype=torch.float64)
    """
    scale = powers_of_two(V)
    result: Tensor = (V / scale).norm(dim=0) * scale
    return result
