"""A symmetric operator between diagonal scalings."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import check_finite
from mercer.core.errors import InputError
from mercer.operators.backends.cuts import slices
from mercer.operators.base import Operator


class Weighted(Operator):
    r"""The operator :math:`\operatorname{diag}(s)\, K \operatorname{diag}(s)` of a square operator K.

    With :math:`s = \sqrt{w}` it turns the weighted ridge system :math:`(K + \alpha W^{-1}) c = y` into the symmetric
    :math:`(S K S + \alpha I) b = S y` with :math:`c = S b`.

    >>> import numpy as np
    >>> from mercer import gram
    >>> from mercer.kernels import Constant
    >>> Weighted(gram(Constant(1.0), np.zeros((2, 1))), [1.0, 3.0]).dense()
    array([[1., 3.],
           [3., 9.]])
    """

    def __init__(self, op: Operator, s: Any) -> None:
        if op.shape[0] != op.shape[1]:
            raise InputError(f"Weighted needs a square operator, got shape {op.shape}.")
        scale = torch.as_tensor(s).detach().to(device=op.device, dtype=op.dtype)
        if scale.shape != (op.shape[0],):
            raise InputError(f"s has shape {tuple(scale.shape)} but the operator has shape {op.shape}.")
        check_finite(scale, "s")
        self.op, self.s = op, scale
        self.shape, self.dtype, self.device = op.shape, op.dtype, op.device
        self.notes, self.like, self.memory_budget, self.given = op.notes, op.like, op.memory_budget, op.given

    @property
    def T(self) -> Weighted:
        """The transposed operator, itself for a symmetric K."""
        return self if self.op.T is self.op else Weighted(self.op.T, self.s)

    def matmul(self, V: Tensor) -> Tensor:
        V = self._as_factor(V, "V", self.shape[1])
        s = self.s if V.ndim == 1 else self.s.unsqueeze(1)
        return self.op.matmul(V * s).mul_(s)

    def rows_matmul(self, index: Any, V: Tensor) -> Tensor:
        V = self._as_factor(V, "V", self.shape[1])
        left, s = self.s[self._positions(index).reshape(-1).to(self.device)], self.s
        if V.ndim == 2:
            left, s = left.unsqueeze(1), s.unsqueeze(1)
        return self.op.rows_matmul(index, V * s) * left

    def _dense(self) -> Tensor:
        return self._scaled(self.op._dense(), self.s)

    def _diag(self) -> Tensor:
        return self.op._diag() * self.s.square()

    def _rows(self, index: Tensor) -> Tensor:
        return self._scaled(self.op._rows(index), self.s[index.to(self.device)])

    def _scaled(self, rows: Tensor, left: Tensor) -> Tensor:
        """Multiply by the products s_i s_j, some rows at a time: this keeps a symmetric matrix exactly symmetric."""
        for part in slices(0, len(rows), max(1, 2**20 // max(1, len(self.s)))):
            rows[part] *= torch.outer(left[part], self.s)
        return rows

    def _name(self) -> str:
        return f"s * {self.op._name()} * s"
