"""A check that a matrix is positive semi-definite, for kernels that users bring."""

from __future__ import annotations

import torch

from mercer.core.errors import NotPositiveDefiniteError
from mercer.solvers.cholesky import factorise_in_place
from mercer.solvers.system import System, dense_float64


def require_semidefinite(A: System, rounding: float = 0.0) -> None:
    """Raise `NotPositiveDefiniteError` when A has an eigenvalue below zero beyond rounding.

    One Cholesky factorisation of A shifted by the square root of its precision, or by `rounding` where that is larger,
    both relative to its largest entry; the eigenvalues are found only to explain a failure.

    >>> from mercer.testing.solvers import MatrixSystem
    >>> require_semidefinite(MatrixSystem(torch.ones(2, 2)))
    >>> require_semidefinite(MatrixSystem(-torch.eye(2)))
    Traceback (most recent call last):
    mercer.core.errors.NotPositiveDefiniteError: The Gram matrix of 2 rows has the eigenvalue -1: ...
    """
    matrix, precision = dense_float64(A)
    size = float(matrix.diagonal().abs().max())
    matrix.diagonal().add_(max(precision**0.5, rounding) * max(size, float(matrix.abs().max())))
    if factorise_in_place(matrix):
        return
    matrix, _ = dense_float64(A)
    smallest = float(torch.linalg.eigvalsh(matrix)[0])
    raise NotPositiveDefiniteError(
        f"The Gram matrix of {len(matrix)} rows has the eigenvalue {smallest:.3g}: the kernel is not positive "
        "semi-definite. Test it with mercer.testing.check_kernel."
    )
