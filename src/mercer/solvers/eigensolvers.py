"""How the largest eigenvalues of a Gram matrix are found: one object for each name that `solver=` takes."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.solvers.registry import EIGENSOLVERS, register
from mercer.solvers.system import check_count, check_tol


@register("dense", EIGENSOLVERS)
@dataclass(frozen=True)
class DenseEigen:
    """All eigenvalues of the stored matrix; it has no options."""


@register("krylov", EIGENSOLVERS)
@dataclass(frozen=True)
class Krylov:
    """The largest eigenvalues alone, by the block Krylov method from products; see `top_eigenpairs`.

    Parameters
    ----------
    tol : float
        Largest residual of an eigenvector relative to the largest eigenvalue.
    max_iter : int
        Largest number of steps.

    >>> Krylov(max_iter=100)
    Krylov(tol=1e-12, max_iter=100)
    """

    tol: float = 1e-12
    max_iter: int = 500

    def __post_init__(self) -> None:
        check_tol("Krylov", self.tol)
        check_count("Krylov", "max_iter", self.max_iter)
