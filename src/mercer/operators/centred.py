"""The Gram matrix of centred features."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.operators.backends.tiles import slices
from mercer.operators.base import Operator


class Centred(Operator):
    r"""The operator of a symmetric K with its features centred at their mean,

    .. math:: P K P, \qquad P = I - \tfrac1n \mathbf 1 \mathbf 1^T.

    >>> import numpy as np
    >>> from mercer import gram
    >>> from mercer.kernels import Linear
    >>> Centred(gram(Linear(), np.array([[1.0], [3.0]]))).dense()
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    def __init__(self, op: Operator) -> None:
        if op.shape[0] != op.shape[1]:
            raise InputError(f"Centred needs a square operator, got shape {op.shape}.")
        self.op = op
        self.shape, self.dtype, self.device = op.shape, op.dtype, op.device
        self.notes, self.like, self.memory_budget, self.given = op.notes, op.like, op.memory_budget, op.given

    @cached_property
    def means(self) -> Tensor:
        """The mean of each row of K."""
        n = self.shape[0]
        return self.op.matmul(torch.full((n, 1), 1.0 / n, dtype=self.dtype, device=self.device))[:, 0]

    @property
    def T(self) -> Centred:
        """The transposed operator, itself."""
        return self

    def matmul(self, V: Tensor) -> Tensor:
        V = self._as_factor(V, "V", self.shape[1])
        product = self.op.matmul(V - V.mean(0))
        return product.sub_(product.mean(0))

    def _dense(self) -> Tensor:
        return self._shifted(self.op._dense(), self.means)

    def _rows(self, index: Tensor) -> Tensor:
        return self._shifted(self.op._rows(index), self.means[index.to(self.device)])

    def _diag(self) -> Tensor:
        return (self.op._diag() - 2.0 * self.means + self.means.mean()).clamp(min=0.0)

    def _shifted(self, rows: Tensor, left: Tensor) -> Tensor:
        shift = self.means - self.means.mean()
        for part in slices(0, len(rows), max(1, 2**20 // max(1, len(shift)))):
            rows[part] -= left[part].unsqueeze(1) + shift
        return rows

    def _name(self) -> str:
        return f"centred {self.op._name()}"
