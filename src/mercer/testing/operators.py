"""The laws of an operator: run `check_operator` on one of your own."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.operators import Operator


def check_operator(op: Operator, *, tolerance: float | None = None, seed: int = 0) -> None:
    """Assert the laws every operator keeps, against its own dense matrix.

    Products with vectors and matrices are those of the dense matrix, from numpy and from torch, in the operator's
    dtype; the product is linear; ``op.T`` is the transposed matrix, with <u, K v> = <K^T u, v>; rows are rows of the
    matrix for a position, a slice, positions and a mask, and multiply as such; an operator on one sample has its
    diagonal; factors of the wrong length are an error. `tolerance` is relative to the size of the numbers added up: by
    default 1e-12 in float64 and 4e-6 in float32.

    >>> from mercer.kernels import Gaussian
    >>> from mercer.operators import gram
    >>> check_operator(gram(Gaussian(), [[0.0, 1.0], [2.0, 3.0]], [[1.0, 1.0]]))
    """
    case = _Case(op, tolerance or (1e-12 if op.dtype == torch.float64 else 4e-6), np.random.default_rng(seed))
    case.check_products()
    case.check_linearity()
    case.check_transpose()
    case.check_rows()
    case.check_diagonal()
    case.check_wrong_lengths()


class _Case:
    def __init__(self, op: Operator, tolerance: float, rng: np.random.Generator) -> None:
        self.op, self.tolerance, self.rng = op, tolerance, rng
        self.K = _float64(op.dense())
        self.need(self.K.shape == op.shape, "dense() has the operator's shape", f"{self.K.shape}, {op.shape}")

    def need(self, holds: bool, law: str, detail: str = "") -> None:
        if not holds:
            raise AssertionError(f"{law} fails for {self.op!r}{': ' if detail else ''}{detail}")

    def close(self, a: Any, b: Any, scale: float, law: str) -> None:
        a, b = _float64(a), _float64(b)
        self.need(a.shape == b.shape, law, f"shapes {a.shape} and {b.shape}")
        error = np.abs(a - b).max(initial=0.0) / max(scale, 1e-300)
        self.need(bool(error <= self.tolerance), law, f"relative error {error:.1e} above {self.tolerance:.0e}")

    def factor(self, length: int, *columns: int) -> np.ndarray:
        numbers = self.rng.standard_normal((length, *columns))
        return numbers.astype(str(self.op.dtype).removeprefix("torch."))

    def size(self, K: np.ndarray, V: np.ndarray) -> float:
        """The size of K V without cancellation, which rounding errors are measured by."""
        return float((np.abs(K) @ np.abs(V)).max(initial=0.0))

    def check_products(self) -> None:
        for columns in ((), (1,), (3,)):
            V = self.factor(self.op.shape[1], *columns)
            product = self.op @ V
            self.need(isinstance(product, np.ndarray), "a numpy factor gives a numpy product")
            self.close(product, self.K @ V, self.size(self.K, V), "op @ V is the product with the dense matrix")
            tensor = torch.from_numpy(V).to(self.op.device)
            for result in (self.op @ tensor, self.op.matmul(tensor)):
                self.need(isinstance(result, Tensor), "a torch factor gives a torch product")
                self.need(result.dtype == self.op.dtype, "products have the operator's dtype", str(result.dtype))
                self.close(result, product, self.size(self.K, V), "torch and numpy factors give the same product")

    def check_linearity(self) -> None:
        u, v = self.factor(self.op.shape[1]), self.factor(self.op.shape[1])
        size = 2 * self.size(self.K, u) + 3 * self.size(self.K, v)
        self.close(self.op @ (2 * u - 3 * v), 2 * (self.op @ u) - 3 * (self.op @ v), size, "the product is linear")

    def check_transpose(self) -> None:
        transposed = self.op.T
        self.need(transposed.shape == self.op.shape[::-1], "op.T has the transposed shape", str(transposed.shape))
        u, v = self.factor(self.op.shape[0]), self.factor(self.op.shape[1])
        self.close(transposed @ u, self.K.T @ u, self.size(self.K.T, u), "op.T @ u is the product with the transpose")
        self.close(u @ self.op, self.K.T @ u, self.size(self.K.T, u), "u @ op is op.T @ u")
        size = float(np.abs(u) @ np.abs(self.K) @ np.abs(v))
        self.close(u @ _float64(self.op @ v), _float64(transposed @ u) @ v, size, "<u, K v> = <K^T u, v>")

    def check_rows(self) -> None:
        n = self.op.shape[0]
        if n == 0:
            return
        size = float(np.abs(self.K).max(initial=0.0))
        mask = np.arange(n) % 2 == 0
        places = self.rng.integers(-n, n, size=5)
        for index in (0, -1, slice(None, None, 2), slice(None), places, places.tolist(), mask, torch.from_numpy(mask)):
            expected = self.K[np.asarray(index) if not isinstance(index, slice | int) else index]
            self.close(self.op.rows(index), expected, size, f"rows({index!r}) are rows of the matrix")
        for columns in ((), (3,)):
            V, index = self.factor(self.op.shape[1], *columns), self.rng.integers(self.op.shape[0], size=5)
            product = self.op.rows_matmul(index, torch.from_numpy(V).to(self.op.device))
            self.close(product, self.K[index] @ V, self.size(self.K, V), "op.rows_matmul(i, V) is op.rows(i) @ V")

    def check_diagonal(self) -> None:
        symmetric = self.op.T is self.op
        if not symmetric:
            try:
                self.op.diag()
            except InputError:
                return
            raise AssertionError(f"diag() of an operator on two samples is an error; fails for {self.op!r}")
        size = float(np.abs(self.K).max(initial=0.0))
        self.close(self.op.diag(), self.K.diagonal(), size, "diag() is the diagonal of the matrix")
        self.need(bool((self.K == self.K.T).all()), "the dense matrix of one sample is symmetric")

    def check_wrong_lengths(self) -> None:
        for shape in ((self.op.shape[1] + 1,), (self.op.shape[1] + 1, 2), (self.op.shape[1], 2, 2), ()):
            try:
                self.op @ np.ones(shape)
            except InputError:
                continue
            raise AssertionError(f"a factor of shape {shape} is an error; fails for {self.op!r}")


def _float64(array: Any) -> np.ndarray:
    return np.asarray(array.cpu() if isinstance(array, Tensor) else array, dtype=np.float64)
