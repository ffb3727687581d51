"""Lazy Gram matrices."""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.blocks import new_matrix
from mercer.core.devices import choose_device, choose_dtype
from mercer.core.errors import InputError, InputTypeError
from mercer.core.memory import parse_budget, require, resolve_budget
from mercer.kernels.base import Kernel
from mercer.kernels.pair import DiagonalPair
from mercer.operators.backends import choose_backend
from mercer.operators.backends.tiles import Tiles
from mercer.operators.base import Operator
from mercer.operators.gradients import differentiable_product, without_gradients


def gram(
    kernel: Kernel,
    X: Any,
    Z: Any = None,
    *,
    memory_budget: Any = None,
    device: Any = None,
    dtype: Any = None,
) -> GramOperator:
    r"""The Gram matrix

    .. math:: K_{ij} = k(x_i, z_j)

    as a lazy operator: ``gram(kernel, X, Z) @ V`` evaluates it tile by tile and never stores it. Without `Z` it is the
    symmetric matrix of one sample, and each tile serves twice.

    Parameters
    ----------
    kernel : Kernel, str or callable
        The kernel.
    X, Z : array-like of shape (n, d) and (m, d), or lists of objects
        Samples of shape (n, d) and (m, d), or lists of objects for kernels that take them.
    memory_budget : int, str or None
        Bytes, or text such as "2GiB", that a product may allocate besides the data; half of what is free by default.
    device : str or torch.device
        Where to compute; by default where the data are.
    dtype : str or torch.dtype
        "float32" or "float64"; by default that of the data.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Gaussian
    >>> K = gram(Gaussian(), np.array([[0.0], [1.0]]))
    >>> K
    GramOperator(Gaussian(length_scale=1.0), 2 x 2, float64 on cpu; squared distances by matrix product, float64)
    >>> (K @ np.array([1.0, 1.0])).round(4)
    array([1.6065, 1.6065])
    """
    if not isinstance(kernel, Kernel):
        raise InputTypeError(f"kernel={kernel!r}: gram needs a kernel, such as mercer.kernels.Gaussian(1.0).")
    parse_budget(memory_budget)
    x = kernel.points(X, "X")
    z = x if Z is None else kernel.points(Z, "Z")
    like = next((A for A in (X, Z) if isinstance(A, Tensor | Points)), None)
    precision = None if dtype is None or dtype == "auto" else choose_dtype(dtype)
    where = None if device is None else choose_device(device, x.values)
    return lazy_matrix(kernel, x, z, precision, where, memory_budget, like)


def lazy_matrix(
    kernel: Kernel,
    x: Points,
    z: Points,
    dtype: torch.dtype | None,
    device: torch.device | None,
    memory_budget: Any,
    like: Any,
) -> GramOperator:
    """The same for samples that are ready, in their own dtype and on their own device where none is given."""
    given = x.values.dtype if kernel.domain == "matrix" else None
    x, z, dtype, device = _placed(x, z, dtype, device)
    values, a, b, learns = without_gradients(kernel, x, z)
    backend = choose_backend(values, a, b, dtype, device, memory_budget)
    return GramOperator(kernel, x, z, backend, learns, given, memory_budget=memory_budget, like=like)


class GramOperator(Operator):
    """The lazy matrix K(x, z) of a kernel; made by `gram`.

    Attributes
    ----------
    kernel : Kernel, str or callable
        The kernel.
    shape, dtype, device : tuple and torch.dtype and torch.device
        Those of the matrix.
    notes : tuple of str
        How products are computed, such as "squared distances by matrix product, float32" or "float64 product: R2 = 312
        > 25".
    learns : bool
        Whether products carry gradients to the points or to parameters of the kernel.
    """

    def __init__(
        self,
        kernel: Kernel,
        x: Points,
        z: Points,
        backend: Tiles,
        learns: bool,
        given: torch.dtype | None,
        *,
        memory_budget: Any = None,
        like: Any = None,
    ) -> None:
        self.kernel, self.x, self.z, self.backend = kernel, x, z, backend
        self.learns, self.given, self.memory_budget, self.like = learns, given, memory_budget, like
        self.shape, self.dtype, self.device = backend.shape, backend.dtype, backend.device
        self.notes = backend.notes
        self._transposed: weakref.ref[GramOperator] | None = None

    @property
    def one_sample(self) -> bool:
        """Whether rows and columns belong to the same sample, so that the matrix is symmetric."""
        return self.z is self.x

    @property
    def T(self) -> GramOperator:
        """The transposed operator, K(z, x)."""
        return self if self.one_sample else self._other

    @cached_property
    def _other(self) -> GramOperator:
        known = None if self._transposed is None else self._transposed()
        if known is not None:
            return known
        backend, place = self.backend.transposed(), {"memory_budget": self.memory_budget, "like": self.like}
        transposed = GramOperator(self.kernel, self.z, self.x, backend, self.learns, self.given, **place)
        transposed._transposed = weakref.ref(self)  # not the operator itself: a cycle keeps its rows in memory
        return transposed

    def matmul(self, V: Tensor) -> Tensor:
        V = self._as_factor(V, "V", self.shape[1])
        if torch.is_grad_enabled() and (V.requires_grad or self.learns):
            return differentiable_product(self, V)
        return self.product(V)

    def product(self, V: Tensor) -> Tensor:
        """K @ V for V of shape (m,) or (m, t), without gradients."""
        if V.ndim == 2 and V.shape[1] == 1:
            return self.backend.product(V[:, 0], self._budget).unsqueeze(1)
        return self.backend.product(V, self._budget)

    def rows_matmul(self, index: Any, V: Tensor) -> Tensor:
        """The product of some rows with V of shape (m,) or (m, t); the rows are never stored.

        >>> from mercer.kernels import Constant
        >>> gram(Constant(2.0), torch.zeros(3, 1)).rows_matmul([2], torch.ones(3))
        tensor([6.])
        """
        V = self._as_factor(V, "V", self.shape[1])
        self._refuse_gradients("rows_matmul", V)
        return self.backend.rows_product(self._positions(index).reshape(-1).to(self.device), V, self._budget)

    def _quadratic(self, U: Tensor, V: Tensor) -> Tensor:
        self._refuse_gradients("quadratic", U, V)
        return self.backend.quadratic(U, V, self._budget)

    def _refuse_gradients(self, what: str, *factors: Tensor) -> None:
        if torch.is_grad_enabled() and (self.learns or any(V.requires_grad for V in factors)):
            raise InputError(f"{what} has no gradients; op @ V and kernel(X, Z) have them. Or use torch.no_grad().")

    def _dense(self) -> Tensor:
        self._refuse_gradients("the dense matrix of an operator")
        out, budget = self._room(self.shape[0], f"the dense {self.shape[0]:,} x {self.shape[1]:,} Gram matrix")
        self.backend.write_dense(out, budget)
        return out

    def _rows(self, index: Tensor) -> Tensor:
        self._refuse_gradients("rows of an operator")
        out, budget = self._room(len(index), f"{len(index):,} dense rows of {self.shape[1]:,} numbers")
        self.backend.write_rows(index.to(self.device), out, budget)
        return out

    def _diag(self) -> Tensor:
        if not self.one_sample:
            raise InputError("diag() needs one sample, gram(kernel, X); this operator pairs two samples, X and Z.")
        return self.row_diag().to(self.dtype)

    def row_diag(self) -> Tensor:
        """k(x, x) at the rows, in float64."""
        return self.kernel.on(DiagonalPair(self.x.double())).to(device=self.device, dtype=torch.float64)

    def _room(self, count: int, what: str) -> tuple[Tensor, int]:
        """An empty matrix for some rows, and what remains of the budget."""
        m, budget = self.shape[1], self._budget
        row = max(1, m * self.dtype.itemsize)
        advice = f"{budget // row:,} rows would fit at a time: op.rows(...); op @ V does not form the matrix."
        require(count * row, budget, what, advice)
        return new_matrix(count, m, self.dtype, self.device), budget - count * row

    @cached_property
    def _budget(self) -> int:
        """Found once: asking a GPU for its free memory takes as long as a small product."""
        return resolve_budget(self.memory_budget, self.device)

    def _name(self) -> str:
        return repr(self.kernel)


def _placed(
    x: Points, z: Points, dtype: torch.dtype | None, device: torch.device | None
) -> tuple[Points, Points, torch.dtype, torch.device]:
    """Both samples in one dtype on one device; one sample stays one sample."""
    if x.names is not None and z.names is not None and x.names != z.names:
        raise InputError(f"The columns of X are {list(x.names)} but those of Z are {list(z.names)}.")
    if not (x.is_tensor and z.is_tensor):
        return x, z, dtype or torch.float64, torch.device("cpu")
    if x.values.shape[1] != z.values.shape[1]:
        raise InputError(
            f"X has {x.values.shape[1]} columns but Z has {z.values.shape[1]}; both need the same features."
        )
    dtype = dtype or torch.promote_types(x.values.dtype, z.values.dtype)
    device = device or x.values.device
    left = _moved(x, device, dtype)
    return left, left if z is x else _moved(z, device, dtype), dtype, device


def _moved(points: Points, device: torch.device, dtype: torch.dtype) -> Points:
    values = points.values.to(device=device, dtype=dtype)
    return points if values is points.values else Points(values, points.names)
