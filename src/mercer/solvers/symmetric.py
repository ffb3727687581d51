"""Sums of A^T A, of which only one half is computed."""

from __future__ import annotations

from torch import Tensor

from mercer.solvers.dials import SYMMETRIC_STRIP


def add_gram(total: Tensor, A: Tensor) -> Tensor:
    """Add A^T A to a symmetric `total` in place; blocks below the diagonal mirror those above it.

    >>> import torch
    >>> add_gram(torch.zeros(2, 2), torch.tensor([[1.0, 2.0], [0.0, 1.0]]))
    tensor([[1., 2.],
            [2., 5.]])
    """
    for first in range(0, A.shape[1], SYMMETRIC_STRIP):
        end = first + SYMMETRIC_STRIP
        total[first:end, first:].addmm_(A[:, first:end].mT, A[:, first:])
        total[end:, first:end] = total[first:end, end:].mT
    return total
