"""A matrix in memory as an operator."""

from __future__ import annotations

import torch
from scipy.linalg.blas import dsymv
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.kernels.base import Kernel
from mercer.kernels.pair import DiagonalPair
from mercer.operators.backends.costs import costs
from mercer.operators.base import Operator


class Stored(Operator):
    """The operator of a matrix that is there already; of a `symmetric` one half is read for a product with one column.

    >>> Stored(torch.tensor([[1.0, 2.0], [2.0, 1.0]])) @ torch.ones(2)
    tensor([3., 3.])
    """

    notes = ("stored",)
    like = Points(torch.empty(0, 0))
    in_memory = True

    def __init__(self, matrix: Tensor, given: torch.dtype | None = None, *, symmetric: bool = False) -> None:
        if matrix.ndim != 2:
            raise InputError(f"Stored needs a matrix, got shape {tuple(matrix.shape)}.")
        self.matrix, self.given = matrix, given
        self.halved = symmetric and matrix.device.type == "cpu" and matrix.dtype == torch.float64
        self.shape, self.dtype, self.device = (matrix.shape[0], matrix.shape[1]), matrix.dtype, matrix.device

    @property
    def T(self) -> Stored:
        """The transposed matrix."""
        return Stored(self.matrix.T, self.given)

    def matmul(self, V: Tensor) -> Tensor:
        V = self._as_factor(V, "V", self.shape[1])
        if self.halved and V.numel() == len(V):
            product = dsymv(1.0, self.matrix.T.numpy(), V.reshape(-1).numpy(), lower=1)
            return torch.from_numpy(product).reshape(V.shape)
        if V.device.type == "cpu" and V.ndim == 2 and 2 <= V.shape[1] <= costs().few_columns:
            return (V.T.contiguous() @ self.matrix.T).T
        return self.matrix @ V

    def _dense(self) -> Tensor:
        return self.matrix.clone()

    def _diag(self) -> Tensor:
        return self.matrix.diagonal().clone()

    def _rows(self, index: Tensor) -> Tensor:
        return self.matrix[index.to(self.device)]

    def _name(self) -> str:
        return "matrix"


class StoredGram(Stored):
    """A Gram matrix in memory, with its kernel and the rows it is of."""

    def __init__(self, kernel: Kernel, x: Points, matrix: Tensor) -> None:
        super().__init__(matrix)
        self.kernel, self.x = kernel, x

    def row_diag(self) -> Tensor:
        """k(x, x) at the rows, in float64."""
        return self.kernel.on(DiagonalPair(self.x.double())).to(self.matrix)
