"""Orthonormal functions on landmarks: what K_mm can tell apart, and what is rounding."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import check_finite
from mercer.core.errors import InputError, NotPositiveDefiniteError
from mercer.solvers.decompose import eigh_in_place, eigvalsh
from mercer.solvers.dials import WHITENING_ROUNDING, WHITENING_SINGLE


def landmark_matrix(K_mm: Any, like: Tensor) -> tuple[Tensor, float]:
    """The Gram matrix of the landmarks, a tensor that stays as it is or an operator, and its rounding error."""
    matrix = K_mm if isinstance(K_mm, Tensor) else torch.as_tensor(K_mm.dense())
    if matrix.shape != (len(like), len(like)):
        raise InputError(f"K_mm has shape {tuple(matrix.shape)} but there are {len(like)} landmarks.")
    check_finite(matrix, "K_mm")
    return matrix.to(like), torch.finfo(matrix.dtype).eps


def landmark_diagonal(K_mm: Any, like: Tensor) -> Tensor:
    """The diagonal of the Gram matrix of the landmarks, given as a tensor or an operator."""
    return (K_mm.diagonal() if isinstance(K_mm, Tensor) else torch.as_tensor(K_mm.diag())).to(like)


def rounding_of(dtype: torch.dtype, m: int) -> float:
    """What `whitening` of m landmarks takes for the rounding error, by the dtype of kernel values at the rows.

    >>> rounding_of(torch.float64, 100), rounding_of(torch.float32, 100)
    (2.220446049250313e-16, 3e-11)
    """
    exact = torch.finfo(torch.float64).eps
    return exact if dtype == torch.float64 else max(exact, WHITENING_SINGLE / m)


def whitening(K_mm: Tensor, precision: float) -> Tensor:
    """E (m, r) with E^T K_mm E = I, where r is the rank of K_mm scaled to a unit diagonal.

    A landmark with k(z, z) = 0 is zero everywhere, or the kernel is none.
    """
    diagonal = K_mm.diagonal()
    if bool((K_mm[diagonal <= 0].abs() > precision**0.5 * K_mm.abs().max()).any()):
        raise _indefinite(K_mm)
    root = torch.where(diagonal > 0, diagonal, torch.inf).rsqrt().unsqueeze(1)
    values, vectors = eigh_in_place((root * K_mm).mul_(root.T).contiguous(), "The Gram matrix of the landmarks")
    if float(values[0]) < -(precision**0.5) * float(values[-1]):
        raise _indefinite(K_mm)
    kept = values > max(WHITENING_ROUNDING * precision * float(values[-1]), -2.0 * float(values[0]), 0.0)
    return vectors[:, kept].mul_(root).mul_(values[kept].rsqrt())


def _indefinite(K_mm: Tensor) -> NotPositiveDefiniteError:
    values = eigvalsh(K_mm)
    return NotPositiveDefiniteError(
        f"The Gram matrix of the landmarks has the eigenvalue {float(values[0]):.3g} (the largest is "
        f"{float(values[-1]):.3g}): the kernel is not positive semi-definite. "
        "Test it with mercer.testing.check_kernel."
    )
