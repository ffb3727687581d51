"""What the exact solvers ask of a system (A + alpha I) X = B, and the checks they share."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import check_finite
from mercer.core.errors import InputError, InputTypeError
from mercer.core.results import Solution
from mercer.solvers.scaling import powers_of_two


class System(Protocol):
    """A symmetric positive semi-definite operator; Gram operators are such systems."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def dense(self) -> Any:
        """The matrix, as a new array that the caller may overwrite."""

    def diag(self) -> Any: ...

    def matmul(self, V: Tensor) -> Tensor: ...


class Solver(Protocol):
    """A method for (A + alpha I) X = B, with one alpha or one per right-hand side."""

    def solve(self, A: System, B: Tensor, alpha: float | Tensor) -> Solution: ...


def dense_float64(A: System) -> tuple[Tensor, float]:
    """The matrix in float64 and the relative rounding error of its entries."""
    matrix = torch.as_tensor(A.dense())
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) == 0:
        raise InputError(f"A system needs a square matrix with at least one row, got shape {tuple(matrix.shape)}.")
    precision = getattr(A, "precision", torch.finfo(matrix.dtype).eps)
    return matrix.to(torch.float64).contiguous(), precision


def right_hand_sides(B: Tensor, n: int) -> Tensor:
    """B as a float64 matrix with n rows."""
    if B.ndim not in (1, 2) or len(B) != n:
        raise InputError(f"The right-hand side has shape {tuple(B.shape)} but the system has {n} rows.")
    check_finite(B, "The right-hand side")
    return B.to(torch.float64).reshape(n, -1)


def near_one(rhs: Tensor) -> tuple[Tensor, Tensor]:
    """Each column divided by a power of two that brings it near one, and these powers; solutions scale with them.

    >>> near_one(torch.tensor([[24.0, 0.5], [16.0, -0.75]]))
    (tensor([[ 1.5000,  1.0000],
            [ 1.0000, -1.5000]]), tensor([16.0000,  0.5000]))
    """
    scale = powers_of_two(rhs)
    return rhs / scale, scale


SMALLEST_ALPHA = torch.finfo(torch.float64).tiny
"""Numbers between zero and this one have too few digits, and their inverses overflow."""

ALPHA_WORDS = f"must be a finite number, 0 or at least {SMALLEST_ALPHA:.2g}"


def is_alpha(values: np.ndarray) -> np.ndarray:
    """Where numbers can be an alpha: zero, or finite and at least `SMALLEST_ALPHA`.

    >>> is_alpha(np.array([0.0, 5e-324, 1.0, np.inf]))
    array([ True, False,  True, False])
    """
    found: np.ndarray = ((values == 0) | (values >= SMALLEST_ALPHA)) & np.isfinite(values)
    return found


def check_alpha(alpha: Any, n_targets: int | None = None) -> Tensor:
    """Alpha as a float64 tensor of no or one dimension, whose values `is_alpha` accepts."""
    values = torch.as_tensor(alpha, dtype=torch.float64)
    array = np.atleast_1d(values.detach().cpu().numpy())
    good = is_alpha(array)
    if not good.all():
        raise InputError(f"alpha={array[~good].flat[0]}: {ALPHA_WORDS}.")
    if values.ndim > 1 or (values.ndim == 1 and n_targets is not None and len(values) != n_targets):
        raise InputError(
            f"alpha has shape {tuple(values.shape)}: give one number or one for each of {n_targets} targets."
        )
    return values


def check_tol(owner: str, tol: Any) -> None:
    """A tolerance is a number between 0 and 1.

    >>> check_tol("PCG", "small")
    Traceback (most recent call last):
    mercer.core.errors.InputTypeError: PCG(tol='small'): must be a number > 0 and < 1.
    """
    message = f"{owner}(tol={tol!r}): must be a number > 0 and < 1."
    if isinstance(tol, bool) or not isinstance(tol, numbers.Real):
        raise InputTypeError(message)
    if not 0 < float(tol) < 1:
        raise InputError(message)


def check_count(owner: str, name: str, value: Any) -> None:
    """A number of steps, rows or columns is an integer that is at least 1.

    >>> check_count("PCG", "max_iter", 2.5)
    Traceback (most recent call last):
    mercer.core.errors.InputTypeError: PCG(max_iter=2.5): must be an integer >= 1.
    """
    message = f"{owner}({name}={value!r}): must be an integer >= 1."
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InputTypeError(message)
    if value < 1:
        raise InputError(message)


def each_alpha(solve: Callable[[Tensor, float], Solution], B: Tensor, alphas: Tensor) -> Solution:
    """One solve for the columns of each distinct alpha, for solvers that take one; the account is that of the worst.

    >>> report = {"solver": "division", "converged": True, "residual": 0.0}
    >>> solve = lambda B, alpha: Solution(**report, value=B / (1 + alpha))
    >>> each_alpha(solve, torch.ones(1, 2), torch.tensor([0.0, 1.0])).value
    tensor([[1.0000, 0.5000]])
    """
    value, missed, parts = torch.empty_like(B), torch.full_like(alphas, torch.nan), []
    for alpha in alphas.unique():
        columns = alphas == alpha
        parts.append(solve(B[:, columns.to(B.device)], float(alpha)))
        value[:, columns.to(B.device)] = parts[-1].value.to(B)
        if parts[-1].missed is not None:
            missed[columns] = parts[-1].missed.to(missed)
    worst = max(parts, key=lambda part: (not part.converged, part.residual))
    return replace(
        worst,
        iterations=max(part.iterations for part in parts),
        seconds=sum(part.seconds for part in parts),
        value=value,
        missed=None if worst.missed is None else missed,
    )
