"""The Gram matrix of centred features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.operators.base import Operator


@dataclass(frozen=True, eq=False)
class Lift:
    """A unit vector u that a matrix maps to `level` times u, beside what matters of it."""

    u: Tensor
    level: float

    def share(self, alpha: Any) -> Tensor:
        """What u takes part with in the diagonal of (A + alpha I)^-1: (n,), or (n, k) for k alphas.

        >>> Lift(torch.tensor([1.0, 0.0]), 3.0).share(1.0)
        tensor([0.2500, 0.0000])
        """
        square = self.u.square().to(torch.float64) if torch.is_tensor(alpha) else self.u.square()
        if torch.is_tensor(alpha) and alpha.ndim:
            return square.unsqueeze(1) / (self.level + alpha.to(square))
        return square / (self.level + float(alpha))


class Centred(Operator):
    r"""The operator of a symmetric K with its features centred at their mean,

    .. math:: P K P + \lambda \frac{v v^T}{v^T v}, \qquad P = I - \frac{v v^T}{v^T v},

    where v is a vector of ones unless it is given: roots of weights, for a K between diagonal matrices of these. The
    `level` lambda is zero unless a system that is singular along v alone shall not be.

    >>> import numpy as np
    >>> from mercer import gram
    >>> from mercer.kernels import Linear
    >>> Centred(gram(Linear(), np.array([[1.0], [3.0]]))).dense()
    array([[ 1., -1.],
           [-1.,  1.]])
    """

    def __init__(self, op: Operator, v: Tensor | None = None, level: float = 0.0) -> None:
        if op.shape[0] != op.shape[1]:
            raise InputError(f"Centred needs a square operator, got shape {op.shape}.")
        v = torch.ones(op.shape[0]) if v is None else v
        self.op, self.v = op, v.to(op.device, op.dtype)
        self.level, self.square = level, float(v.double().square().sum())
        self.shape, self.dtype, self.device = op.shape, op.dtype, op.device
        self.notes, self.like, self.memory_budget, self.given = op.notes, op.like, op.memory_budget, op.given
        self.in_memory = op.in_memory

    @cached_property
    def lift(self) -> Lift:
        """The direction that is no part of what is centred."""
        v = self.v.double()
        return Lift(v / v.norm(), self.level)

    @cached_property
    def means(self) -> Tensor:
        """K v / v^T v: for a vector of ones the mean of each row of K."""
        return self.op.matmul((self.v / self.square).unsqueeze(1))[:, 0]

    @property
    def T(self) -> Centred:
        """The transposed operator, itself."""
        return self

    def matmul(self, V: Tensor) -> Tensor:
        V = self._as_factor(V, "V", self.shape[1])
        along, v = self._mean(V), self._beside(V)
        product = self.op.matmul(V - v * along)
        return product.sub_(v * (self._mean(product) - self.level * along))

    def rows_matmul(self, index: Any, V: Tensor) -> Tensor:
        V = self._as_factor(V, "V", self.shape[1])
        along, v = self._mean(V), self._beside(V)
        rest = V - v * along
        left = v[self._positions(index).reshape(-1).to(self.device)]
        return self.op.rows_matmul(index, rest) - left * (self.means @ rest - self.level * along)

    def _mean(self, V: Tensor) -> Tensor:
        """v^T V / v^T v."""
        return (self.v @ V) / self.square

    def _beside(self, V: Tensor) -> Tensor:
        return self.v if V.ndim == 1 else self.v.unsqueeze(1)

    def _dense(self) -> Tensor:
        matrix = self.op._dense()
        self.__dict__.setdefault("means", matrix @ (self.v / self.square))
        return self._shifted(matrix, slice(None))

    def _rows(self, index: Tensor) -> Tensor:
        return self._shifted(self.op._rows(index), index.to(self.device))

    def _diag(self) -> Tensor:
        return (self.op._diag() - self.v * (self.means + self._shift)).clamp(min=0.0)

    @cached_property
    def _shift(self) -> Tensor:
        """What each row of K, less its mean, is less than."""
        return self.means - self.v * (self._mean(self.means) + self.level / self.square)

    def _shifted(self, rows: Tensor, index: Tensor | slice) -> Tensor:
        rows.addr_(self.means[index], self.v, alpha=-1.0)
        return rows.addr_(self.v[index], self._shift, alpha=-1.0)

    def _name(self) -> str:
        return f"centred {self.op._name()}"
