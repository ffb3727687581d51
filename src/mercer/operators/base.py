"""`Operator`: a matrix known by what it does to vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points, restore
from mercer.core.errors import InputError, InputTypeError
from mercer.operators.dials import PART_NUMBERS


class Operator(ABC):
    """A matrix of shape (n, m) that multiplies, without being stored.

    ``op @ V`` takes V of shape (m,) or (m, t) and gives numpy for numpy and torch for torch, in the operator's dtype.
    `rows`, `diag` and `dense` give the kind of array the operator was made from.
    """

    __array_ufunc__ = None  # so that array @ operator comes here

    shape: tuple[int, int]
    dtype: torch.dtype
    device: torch.device
    notes: tuple[str, ...] = ()
    """How products are computed, in words."""
    like: Any = None
    """The data the operator was made from, whose kind of array results take."""
    memory_budget: Any = None
    """Bytes, or text such as "2GiB", that it may allocate beside the data; None for half of what is free."""

    in_memory: bool = False
    """Whether the matrix is stored, so that a product is as quick as memory is read."""

    given: torch.dtype | None = None
    """The dtype that the entries came in, where they were rounded to it before; None for that of the operator."""

    @property
    def precision(self) -> float:
        """The relative rounding error of the entries."""
        return torch.finfo(self.given or self.dtype).eps

    @property
    @abstractmethod
    def T(self) -> Operator:
        """The transposed operator."""

    @abstractmethod
    def matmul(self, V: Tensor) -> Tensor:
        """The product with a tensor of shape (m,) or (m, t)."""

    @abstractmethod
    def _dense(self) -> Tensor: ...

    @abstractmethod
    def _diag(self) -> Tensor: ...

    @abstractmethod
    def _rows(self, index: Tensor) -> Tensor: ...

    def __matmul__(self, V: Any) -> Any:
        return restore(self.matmul(self._as_factor(V, "V", self.shape[1])), V)

    def __rmatmul__(self, V: Any) -> Any:
        transposed = torch.as_tensor(V).mT if np.ndim(V) == 2 else V
        product = self.T.matmul(self._as_factor(transposed, "V", self.shape[0]))
        return restore(product.mT if np.ndim(V) == 2 else product, V)

    def dense(self) -> Any:
        """The matrix itself, a new array; an error when it does not fit the memory budget."""
        return self._given_back(self._dense())

    def diag(self) -> Any:
        """The diagonal of a symmetric operator."""
        return self._given_back(self._diag())

    def rows(self, index: Any) -> Any:
        """Some rows of the matrix: `index` is a position, a slice, positions or a mask; one position gives one row."""
        places = self._positions(index)
        rows = self._rows(places.reshape(-1))
        return self._given_back(rows if places.ndim else rows[0])

    def rows_matmul(self, index: Any, V: Tensor) -> Tensor:
        """The product of some rows with V of shape (m,) or (m, t), where `op.rows(index)` need not be stored."""
        places, V = self._positions(index).reshape(-1), self._as_factor(V, "V", self.shape[1])
        at_once = max(1, PART_NUMBERS // max(1, self.shape[1]))
        return torch.cat([self._rows(part) @ V for part in places.split(at_once)])

    def quadratic(self, V: Any, U: Any = None) -> Any:
        r"""The numbers :math:`u_b^T K v_b` for the columns of U and V, by default :math:`v_b^T K v_b`, in float64.

        V has the shape (m, B) and U (n, B); the product K V is never stored whole.

        >>> from mercer import gram
        >>> from mercer.kernels import Constant
        >>> gram(Constant(1.0), np.zeros((2, 1))).quadratic(np.array([[1.0, 1.0], [1.0, -1.0]]))
        array([4., 0.])
        """
        right = self._as_factor(V, "V", self.shape[1])
        left = right if U is None else self._as_factor(U, "U", self.shape[0])
        if right.ndim != 2 or left.ndim != 2 or left.shape[1] != right.shape[1]:
            shapes = f"{tuple(right.shape)} and {tuple(left.shape)}"
            raise InputError(f"quadratic needs V and U with the same number of columns, got shapes {shapes}.")
        return restore(self._quadratic(left, right), V)

    def _quadratic(self, U: Tensor, V: Tensor) -> Tensor:
        at_once = max(1, PART_NUMBERS // max(1, max(self.shape)))
        parts = zip(U.split(at_once, 1), V.split(at_once, 1), strict=True)
        return torch.cat([(u.double() * self.matmul(v)).sum(0) for u, v in parts])

    def _given_back(self, result: Tensor) -> Any:
        return result if isinstance(self.like, Points) else restore(result, self.like)

    def _as_factor(self, V: Any, name: str, length: int) -> Tensor:
        """V as a tensor for `matmul`, or an error that says what is wrong with it."""
        if isinstance(V, Tensor):
            if V.device != self.device:
                raise InputError(f"{name} is on {V.device} but the operator is on {self.device}; move it there first.")
            factor = V
        else:
            factor = _numbers(V, name)
        if factor.is_complex():
            raise InputTypeError(f"{name} is complex; the operator is real.")
        if factor.ndim not in (1, 2) or factor.shape[0] != length:
            raise InputError(
                f"{name} has shape {tuple(factor.shape)} but the operator has shape {self.shape}: "
                f"expected ({length},) or ({length}, t)."
            )
        return factor.to(device=self.device, dtype=self.dtype)

    def _positions(self, index: Any) -> Tensor:
        """The rows that `index` asks for, as non-negative positions."""
        n = self.shape[0]
        if isinstance(index, slice):
            return torch.arange(n)[index] if (index.step or 1) > 0 else torch.tensor(range(n)[index], dtype=torch.long)
        array = index.detach().cpu().numpy() if isinstance(index, Tensor) else np.asarray(index)
        if array.dtype == bool:
            if array.shape != (n,):
                raise InputError(f"A mask of rows has shape {array.shape}; expected ({n},).")
            return torch.from_numpy(array.nonzero()[0])
        if array.size == 0:
            return torch.empty(0, dtype=torch.long)
        if array.dtype.kind not in "iu" or array.ndim > 1:
            raise InputTypeError(f"rows(index={index!r}): index is a position, a slice, positions or a mask of rows.")
        places = torch.from_numpy(array.astype(np.int64))
        outside = places[(places < -n) | (places >= n)]
        if len(outside.reshape(-1)):
            raise InputError(f"Row {int(outside.reshape(-1)[0])} is asked for but the operator has {n} rows.")
        return places % n

    def __repr__(self) -> str:
        size = " x ".join(f"{length:,}" for length in self.shape)
        kind = f"{str(self.dtype).removeprefix('torch.')} on {self.device}"
        return f"{type(self).__name__}({self._name()}, {size}, {kind}; {'; '.join(self.notes)})"

    @abstractmethod
    def _name(self) -> str: ...


def _numbers(V: Any, name: str) -> Tensor:
    array = np.asarray(V)
    if array.dtype.kind not in "fiubc":
        raise InputTypeError(f"{name} has dtype {array.dtype}; expected numbers.")
    return torch.from_numpy(np.array(array, order="C")) if array.dtype.isnative else torch.tensor(array.tolist())
