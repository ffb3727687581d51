"""The covariance of data in units of their noise, as a system for iterative solvers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.kernels import Kernel
from mercer.operators import Weighted
from mercer.operators.placement import Placement
from mercer.processes.dials import SOLVE_STEPS
from mercer.processes.observations import Observations
from mercer.solvers.lanczos import Krylov, krylov
from mercer.solvers.preconditioners import LowRank
from mercer.solvers.products import Products


@dataclass(frozen=True, eq=False)
class UnitNoise:
    r"""The covariance :math:`A = K + \Sigma` of data, written with :math:`S = \Sigma^{-1/2}` as

    .. math:: A = S^{-1} (S K S + I) S^{-1}.

    The system S K S + I is solved with products alone, and one noise for each row costs nothing.

    Attributes
    ----------
    operator : Weighted
        S K S.
    s : Tensor
        The diagonal of S, (n, 1).
    """

    operator: Weighted
    s: Tensor

    @classmethod
    def of(
        cls, kernel: Kernel, noise: float, data: Observations, place: Placement, dtype: torch.dtype | None = None
    ) -> UnitNoise:
        """For the data under that kernel, with the noise that all rows share."""
        variances = data.row_noise(noise).to(place.device)
        if not bool((variances > 0).all()):
            raise InputError(
                f"noise={noise:g}: an iterative method needs a noise above zero for every row; use method='exact'."
            )
        s = variances.rsqrt()
        return cls(Weighted(place.gram(kernel, data.X, dtype=dtype), s), s.unsqueeze(1))

    def log_det(self, P: LowRank, logs: Tensor) -> float:
        """log det A, from the quadratic forms that `krylov` gives for probes drawn from N(0, P)."""
        return P.log_determinant(1.0) + float(logs.mean()) - 2.0 * float(self.s.log().sum())

    def krylov(self, P: LowRank, B: Tensor, tol: float) -> Krylov:
        """What the Krylov spaces of S K S + I with the preconditioner P tell about B."""
        products = Products.of(self.operator)
        return krylov(lambda V: products.matmul(V) + V, lambda R: P.inverse(R, 1.0), B, tol=tol, max_iter=SOLVE_STEPS)
