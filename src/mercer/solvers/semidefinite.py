"""A check that a matrix is positive semi-definite, for kernels that users bring."""

from __future__ import annotations

import torch

from mercer.core.errors import NotPositiveDefiniteError
from mercer.solvers.decompose import eigvalsh
from mercer.solvers.dials import HUGE, SEMIDEFINITE_SINGLE
from mercer.solvers.factor import factorise_in_place
from mercer.solvers.system import System, dense_float64

SINGLE_HINT = " If it was computed in float32, pass it as float32: then its rounding is allowed for."


def why_indefinite(size: float, alpha: float) -> str:
    """What to do when a system of entries up to `size` plus alpha has no Cholesky factor.

    >>> why_indefinite(1e27, 1.0)
    'kernel values reach 1e+27, whose rounding hides alpha=1. Scale the columns of X (StandardScaler), or raise alpha.'
    >>> why_indefinite(1.0, 1e-30)
    'kernel values reach 1, whose rounding hides alpha=1e-30. Use a larger alpha.'
    """
    if torch.finfo(torch.float64).eps * size > alpha:
        huge = "Scale the columns of X (StandardScaler), or raise alpha."
        advice = huge if size > HUGE else "Use a larger alpha."
        return f"kernel values reach {size:.1g}, whose rounding hides alpha={alpha:g}. {advice}"
    return (
        "the kernel is not positive semi-definite (test it with mercer.testing.check_kernel), or alpha="
        f"{alpha:g} is too small."
    )


def require_semidefinite(A: System, given: torch.dtype | None = None) -> None:
    """Raise `NotPositiveDefiniteError` when A has an eigenvalue below zero beyond rounding.

    One Cholesky factorisation of A shifted by a share of its largest entry: the square root of the precision of
    float64, or `SEMIDEFINITE_SINGLE` where the data were `given` in float32. The eigenvalues only explain a failure.

    >>> from mercer.testing.solvers import MatrixSystem
    >>> require_semidefinite(MatrixSystem(torch.ones(2, 2)))
    >>> require_semidefinite(MatrixSystem(-torch.eye(2)))
    Traceback (most recent call last):
    mercer.core.errors.NotPositiveDefiniteError: The Gram matrix of 2 rows has the eigenvalue -1 (the largest ...
    """
    matrix, precision = dense_float64(A)
    size = float(matrix.diagonal().abs().max())
    double = torch.finfo(torch.float64).eps
    single = given == torch.float32 or precision > double
    rounding = SEMIDEFINITE_SINGLE if single else double**0.5
    matrix.diagonal().add_(rounding * max(size, float(matrix.abs().max())))
    if factorise_in_place(matrix):
        return
    matrix, _ = dense_float64(A)
    values = eigvalsh(matrix, "The Gram matrix")
    smallest, largest = float(values[0]), float(values[-1])
    hint = "" if single or -smallest > SEMIDEFINITE_SINGLE * largest else SINGLE_HINT
    raise NotPositiveDefiniteError(
        f"The Gram matrix of {len(matrix)} rows has the eigenvalue {smallest:.3g} (the largest is {largest:.3g}): the "
        f"kernel is not positive semi-definite. Test it with mercer.testing.check_kernel.{hint}"
    )
