"""How a fit with any loss solves the systems of Newton's method: one object for each name that `solver=` takes."""

from __future__ import annotations

from dataclasses import dataclass

from mercer.solvers.registry import LOSS_SOLVERS, register
from mercer.solvers.system import check_count, check_tol


@dataclass(frozen=True)
class NewtonSolver:
    """What all of them can be told."""

    tol: float = 1e-6
    max_iter: int | None = None

    def __post_init__(self) -> None:
        check_tol(type(self).__name__, self.tol)
        if self.max_iter is not None:
            check_count(type(self).__name__, "max_iter", self.max_iter)


@register("dense", LOSS_SOLVERS)
@dataclass(frozen=True)
class DenseNewton(NewtonSolver):
    """Systems from the Gram matrix, which is stored.

    Parameters
    ----------
    tol : float
        Largest relative distance of the objective from its least value; see `mercer.KernelClassifier`.
    max_iter : int or None
        Largest number of Newton steps; None for 100 with a smooth loss and 300 with kinks.

    Examples
    --------
    >>> DenseNewton(tol=1e-8)
    DenseNewton(tol=1e-08, max_iter=None)
    """


@register("nystrom", LOSS_SOLVERS)
@dataclass(frozen=True)
class NystromNewton(NewtonSolver):
    """Systems with a coefficient for each landmark.

    Parameters
    ----------
    tol, max_iter : float and int or None
        As in `DenseNewton`.
    """


@register("pcg", LOSS_SOLVERS)
@dataclass(frozen=True)
class PCGNewton(NewtonSolver):
    """Systems solved by preconditioned conjugate gradients from products, without storing the matrix.

    Parameters
    ----------
    tol, max_iter : float and int or None
        As in `DenseNewton`.
    rank : int or None
        Columns of the pivoted Cholesky factor that makes the preconditioner; None decides by rows and memory.
    """

    rank: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rank is not None:
            check_count("PCGNewton", "rank", self.rank)
