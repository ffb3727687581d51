"""The covariance of the data as a dense Cholesky factor in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from mercer.core.errors import NotPositiveDefiniteError
from mercer.kernels import Kernel
from mercer.operators.placement import Placement
from mercer.processes.observations import Observations
from mercer.solvers.cholesky import factorise_in_place, inverse_diagonal

FIRST_JITTER, LARGEST_JITTER = 1e-10, 1e-4


@dataclass(frozen=True, eq=False)
class Factor:
    """L with L L^T = A, A = K + noise; `jitter` is the share of its diagonal that each row was given on top."""

    L: Tensor
    jitter: float

    def solve(self, B: Tensor) -> Tensor:
        """A^-1 B for B of shape (n, k)."""
        return torch.linalg.solve_triangular(self.L.mT, self.half_solve(B), upper=True)

    def half_solve(self, B: Tensor) -> Tensor:
        """L^-1 B."""
        return torch.linalg.solve_triangular(self.L, B, upper=False)

    def log_det(self) -> float:
        """log det A."""
        return 2.0 * float(self.L.diagonal().log().sum())

    def inverse(self) -> Tensor:
        """A^-1, a new matrix."""
        return torch.cholesky_inverse(self.L)

    def inverse_diagonal(self) -> Tensor:
        """The diagonal of A^-1, (n,), without a second matrix."""
        return inverse_diagonal(self.L)

    def extended(self, cross: Tensor, corner: Tensor) -> Factor:
        r"""The factor of the larger matrix with the new rows [cross, corner], in k n^2 instead of n^3 steps,

        .. math:: L_{21} = (L^{-1} A_{12})^T, \qquad L_{22} L_{22}^T = A_{22} - L_{21} L_{21}^T.
        """
        n, k = len(self.L), len(corner)
        below = self.half_solve(cross.mT).mT
        L = self.L.new_zeros(n + k, n + k)
        L[:n, :n] = self.L
        L[n:, :n] = below
        part = factorise(lambda: corner - below @ below.mT, corner.diagonal())
        L[n:, n:] = part.L
        return Factor(L, max(self.jitter, part.jitter))


def factorise(make: Callable[[], Tensor], size: Tensor | None = None) -> Factor:
    """The factor of the symmetric matrix that `make` gives, each time a new one.

    Where rounding makes the factorisation fail, each row is given a jitter relative to `size`, by default its own
    diagonal entry: from 1e-10 up in steps of ten.
    """
    jitter = 0.0
    while True:
        matrix = make()
        if jitter:
            matrix.diagonal().add_(jitter * (matrix.diagonal() if size is None else size))
        if factorise_in_place(matrix):
            return Factor(matrix.mT, jitter)
        jitter = 10.0 * jitter if jitter else FIRST_JITTER
        if jitter > LARGEST_JITTER * 1.001:
            raise NotPositiveDefiniteError(_why(make()))


def covariance_factor(kernel: Kernel, noise: float, data: Observations, place: Placement) -> Factor:
    """The factor of K + noise for the data."""
    return factorise(lambda: covariance(kernel, noise, data, place))


def covariance(kernel: Kernel, noise: float, data: Observations, place: Placement) -> Tensor:
    """K + noise, a new float64 matrix."""
    K = torch.as_tensor(place.gram(kernel, data.X).dense()).to(torch.float64)
    K.diagonal().add_(data.row_noise(noise).to(K.device))
    return K


def _why(matrix: Tensor) -> str:
    if not bool(torch.isfinite(matrix).all()):
        return "The covariance of the data contains NaN or infinity: check the kernel and its inputs."
    return (
        f"The covariance of {len(matrix):,} rows is not positive definite, even with a jitter of {LARGEST_JITTER:g}: "
        "the kernel may not be positive semi-definite (mercer.testing.check_kernel tells), or use a larger noise."
    )
