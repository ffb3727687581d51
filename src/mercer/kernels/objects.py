"""Kernels that are given as they are: a function of two objects, and a ready Gram matrix."""

from __future__ import annotations

from collections.abc import Callable as Function
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError, InputTypeError
from mercer.kernels.algebra import need_function
from mercer.kernels.base import Kernel
from mercer.kernels.dials import SYMMETRIC
from mercer.kernels.pair import DensePair, Pair, function_name, vectors
from mercer.kernels.registry import register


@dataclass(frozen=True, eq=False, repr=False)
class Callable(Kernel):
    r"""Any symmetric, positive semi-definite function of two objects, :math:`k(x, z) = f(x, z)`.

    Objects may be strings, sets, graphs ...; the rows of a table (an array or a frame) arrive as one-dimensional
    numpy arrays. With ``vectorised=True`` the function takes both samples and returns their whole matrix. Values on
    one sample must be symmetric; they carry no gradients.

    >>> Callable(lambda a, b: len(a & b))([{1, 2}, {2, 3}])
    array([[2., 1.],
           [1., 2.]])
    """

    function: Function[..., Any]
    vectorised: bool = False
    domain = "objects"

    def __post_init__(self) -> None:
        need_function(self.function, "Callable", "function")
        if not isinstance(self.vectorised, bool):
            raise InputTypeError(f"Callable(vectorised={self.vectorised!r}): vectorised must be True or False.")

    def of(self, pair: Pair) -> Any:
        return pair.matrix(self._gram, self._diag)

    def _gram(self, pair: DensePair) -> Tensor:
        x = self._objects(pair.x)
        z = x if pair.z is None else self._objects(pair.z)
        label = "X" if pair.z is None else "Z"
        values = self._whole(x, z) if self.vectorised else self._each(x, z, label)
        self._check_finite(values, label)
        if pair.one_sample:
            check_symmetric(values, self._value_text)
        return values

    def _diag(self, points: Points) -> Tensor:
        rows = (points.take(slice(i, i + 1)) for i in range(len(points)))
        return torch.tensor([self._gram(DensePair(row)).item() for row in rows], dtype=torch.float64)

    def _objects(self, points: Points) -> Sequence[Any] | np.ndarray:
        """The rows as the function takes them."""
        values: Any = points.values
        if isinstance(values, list):
            return values
        if values.requires_grad:
            raise InputTypeError(
                f"X requires gradients, which {self!r} cannot give; pass X.detach(), or write the function as a Kernel."
            )
        return np.asarray(values.cpu())

    def _each(self, x: Sequence[Any] | np.ndarray, z: Sequence[Any] | np.ndarray, label: str) -> Tensor:
        values = torch.empty(len(x), len(z), dtype=torch.float64)
        for i, a in enumerate(x):
            for j, b in enumerate(z):
                value = self.function(a, b)
                try:
                    values[i, j] = float(value)
                except (TypeError, ValueError, RuntimeError):
                    raise InputTypeError(
                        f"{self._value_text(i, j, label)} is {value!r}; a kernel gives one number."
                    ) from None
        return values

    def _whole(self, x: Sequence[Any] | np.ndarray, z: Sequence[Any] | np.ndarray) -> Tensor:
        name = function_name(self.function)
        result = self.function(x, z)
        try:
            values = torch.as_tensor(result, dtype=torch.float64).detach().cpu()
        except (TypeError, ValueError, RuntimeError):
            raise InputTypeError(f"{name} must return a matrix of numbers, got {type(result).__name__}.") from None
        if values.shape != (len(x), len(z)):
            raise InputError(
                f"{name} must return a matrix of shape ({len(x)}, {len(z)}), got shape {tuple(values.shape)}."
            )
        return values

    def _check_finite(self, values: Tensor, label: str) -> None:
        bad = (~torch.isfinite(values)).nonzero()
        if len(bad):
            i, j = bad[0].tolist()
            raise InputError(f"{self._value_text(i, j, label)} is {values[i, j]:g}; a kernel gives finite numbers.")

    def _value_text(self, i: int, j: int, label: str = "X") -> str:
        return f"{function_name(self.function)}(X[{i}], {label}[{j}])"


@register(
    names={"precomputed": {}},
    examples=[{}],
)
class Precomputed(Kernel):
    r"""A ready Gram matrix, in scikit-learn's convention.

    ``k(K)`` is the square matrix K of a sample itself; ``k(K_test, K_train)`` is K_test, whose entry i, j belongs to
    test point i and training point j.

    >>> Precomputed()([[2.0, 1.0], [1.0, 2.0]])
    array([[2., 1.],
           [1., 2.]])
    """

    domain = "matrix"

    def of(self, pair: Pair) -> Any:
        return pair.matrix(_ready_gram, _ready_diag)


def is_unproven(kernel: Kernel) -> bool:
    """Whether nothing but the user's word says that a part of the kernel is positive semi-definite.

    >>> is_unproven(2.0 * Precomputed())
    True
    """
    inner = (child for _, child in kernel.children())
    return isinstance(kernel, Callable | Precomputed) or any(map(is_unproven, inner))


def _ready_gram(pair: DensePair) -> Tensor:
    K = vectors(pair.x)
    if pair.ids is not None:
        return K[:, pair.ids[1]]
    if pair.z is None:
        _check_square(K, "X")
        check_symmetric(K, lambda i, j: f"X[{i}, {j}]")
        return K.clone()
    training = vectors(pair.z)
    _check_square(training, "Z")
    if K.shape[1] != len(training):
        raise InputError(
            f"A precomputed X must have one column per training point: shape ({len(K)}, {len(training)}), "
            f"got {tuple(K.shape)}."
        )
    return K.clone()


def _ready_diag(points: Points) -> Tensor:
    K = vectors(points)
    _check_square(K, "X")
    return K.diagonal().clone()


def _check_square(K: Tensor, name: str) -> None:
    if K.shape[0] != K.shape[1]:
        raise InputError(f"A precomputed Gram matrix {name} must be square, got shape {tuple(K.shape)}.")


def check_symmetric(K: Tensor, entry: Function[[int, int], str]) -> None:
    """Raise an error that shows the two entries of K that differ most."""
    if K.numel() == 0:
        return
    gap = (K - K.T).abs()
    if float(gap.max()) <= SYMMETRIC * float(K.abs().max()):
        return
    i, j = divmod(int(gap.argmax()), len(K))
    one, other = K[i, j].item(), K[j, i].item()
    raise InputError(f"A kernel must be symmetric, but {entry(i, j)} = {one:.9g} and {entry(j, i)} = {other:.9g}.")
