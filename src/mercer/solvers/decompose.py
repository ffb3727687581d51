"""Every eigendecomposition of the package, and every solve that is not by a Cholesky factor: errors of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from scipy.linalg.lapack import dsyevd
from torch import Tensor

from mercer.core.errors import InputError, NotFiniteError
from mercer.operators.backends.costs import costs
from mercer.solvers.dials import SCIPY_EIGH

LinAlgError = torch.linalg.LinAlgError
"""What torch raises where a matrix cannot be decomposed."""

KERNEL_MATRIX = "A matrix of kernel values"


def eigh(matrix: Tensor, what: str = KERNEL_MATRIX) -> tuple[Tensor, Tensor]:
    """Eigenvalues in rising order and eigenvectors of symmetric matrices."""
    if by_scipy(matrix, SCIPY_EIGH):
        return eigh_in_place(matrix.clone(), what)
    with _explained(matrix, what):
        values, vectors = torch.linalg.eigh(matrix)
    return _finite(values, what), vectors


def eigh_in_place(matrix: Tensor, what: str = KERNEL_MATRIX) -> tuple[Tensor, Tensor]:
    """Those of a row-major matrix, which the vectors overwrite on the CPU."""
    if matrix.is_cuda:
        return eigh(matrix, what)
    check_decomposable(matrix, what)
    vectors = matrix.mT  # LAPACK's order: no copy is made
    values = matrix.new_empty(len(matrix))
    with _explained(matrix, what):
        if by_scipy(matrix, SCIPY_EIGH):
            values, vectors = _scipy_eigh(vectors)
        else:
            torch.linalg.eigh(vectors, out=(values, vectors))
    return _finite(values, what), vectors


def by_scipy(matrix: Tensor, rows: range) -> bool:
    """Whether scipy's LAPACK is quicker than torch's at a matrix of so many rows, on this kind of processor."""
    return on_host(matrix) and len(matrix) in rows and not costs().intel


def on_host(matrix: Tensor) -> bool:
    """Whether scipy can take a matrix as it is."""
    plain = matrix.ndim == 2 and matrix.dtype == torch.float64
    return plain and matrix.device.type == "cpu" and not matrix.requires_grad


def _scipy_eigh(columns: Tensor) -> tuple[Tensor, Tensor]:
    values, vectors, failed = dsyevd(columns.numpy(), lower=1, overwrite_a=1)
    if failed:
        raise LinAlgError(f"dsyevd ended with {failed}")
    return torch.from_numpy(values), torch.from_numpy(vectors)


def eigvalsh(matrix: Tensor, what: str = KERNEL_MATRIX) -> Tensor:
    """Eigenvalues in rising order of symmetric matrices."""
    with _explained(matrix, what):
        values = torch.linalg.eigvalsh(matrix)
    return _finite(values, what)


def pinv(matrix: Tensor, what: str = KERNEL_MATRIX, rtol: float | None = None) -> Tensor:
    """The pseudo-inverse of symmetric matrices."""
    check_decomposable(matrix, what)  # that of NaN would be zero
    with _explained(matrix, what):
        result: Tensor = torch.linalg.pinv(matrix, rtol=rtol, hermitian=True)
        return result


def left_singular(matrix: Tensor, what: str) -> tuple[Tensor, Tensor]:
    """The left singular vectors and the singular values of any matrix, in falling order."""
    check_decomposable(matrix, what)
    with _explained(matrix, what):
        vectors, values, _ = torch.linalg.svd(matrix, full_matrices=False)
    return vectors, _finite(values, what)


def solve(matrix: Tensor, B: Tensor, what: str) -> Tensor:
    """The inverse of any square matrices times B."""
    check_decomposable(matrix, what)
    with _explained(matrix, what):
        result: Tensor = torch.linalg.solve(matrix, B)
        return result


def check_decomposable(matrix: Tensor, what: str) -> None:
    """Raise an error where entries are not finite."""
    if not bool(torch.isfinite(matrix.sum())) and not bool(torch.isfinite(matrix).all()):
        raise not_finite(what)


@contextmanager
def _explained(matrix: Tensor, what: str) -> Iterator[None]:
    try:
        yield
    except LinAlgError:
        check_decomposable(matrix, what)
        raise InputError(
            f"{what} cannot be decomposed: it is singular, or its entries differ by too many orders of magnitude. "
            f"Scale "
            "the columns of X (StandardScaler), or check the kernel and the sample weights."
        ) from None


def _finite(values: Tensor, what: str) -> Tensor:
    if not bool(torch.isfinite(values).all()):
        raise not_finite(what)
    return values


def not_finite(what: str) -> NotFiniteError:
    """The error of a matrix that is not made of numbers."""
    return NotFiniteError(
        f"{what} contains NaN or infinity: kernel values are too large for floating-point numbers, or the kernel is "
        "not defined for these rows. Rescale the data, or check the kernel."
    )
