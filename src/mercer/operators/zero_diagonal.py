"""A symmetric operator without its diagonal."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.operators.base import Operator


class ZeroDiagonal(Operator):
    """The operator of a symmetric K whose diagonal is taken as zero, as in unbiased estimates over pairs of rows.

    >>> import numpy as np
    >>> from mercer import gram
    >>> from mercer.kernels import Constant
    >>> ZeroDiagonal(gram(Constant(2.0), np.zeros((2, 1)))) @ np.array([1.0, 3.0])
    array([6., 2.])
    """

    def __init__(self, op: Operator) -> None:
        if op.shape[0] != op.shape[1]:
            raise InputError(f"ZeroDiagonal needs a square operator, got shape {op.shape}.")
        self.op = op
        self.shape, self.dtype, self.device = op.shape, op.dtype, op.device
        self.notes, self.like, self.memory_budget = op.notes, op.like, op.memory_budget

    @cached_property
    def removed(self) -> Tensor:
        """The diagonal of K."""
        return self.op._diag()

    @property
    def T(self) -> ZeroDiagonal:
        """The transposed operator, itself."""
        return self

    def matmul(self, V: Tensor) -> Tensor:
        V = self._as_factor(V, "V", self.shape[1])
        return self.op.matmul(V) - (self.removed if V.ndim == 1 else self.removed.unsqueeze(1)) * V

    def _quadratic(self, U: Tensor, V: Tensor) -> Tensor:
        return self.op._quadratic(U, V) - self.removed.double() @ (U.double() * V)

    def _dense(self) -> Tensor:
        return self.op._dense().fill_diagonal_(0.0)

    def _rows(self, index: Tensor) -> Tensor:
        rows = self.op._rows(index)
        rows[torch.arange(len(index)), index.to(rows.device)] = 0.0
        return rows

    def _diag(self) -> Tensor:
        return torch.zeros_like(self.removed)

    def _name(self) -> str:
        return f"{self.op._name()} without its diagonal"
