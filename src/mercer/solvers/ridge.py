"""One entry for every solver of the full system: (A + alpha I) X = B by the solver of a given name."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from mercer.core.errors import InputError, InputTypeError
from mercer.core.results import Solution
from mercer.solvers.registry import RIDGE_SOLVERS
from mercer.solvers.system import Solver, System


def full_solvers() -> dict[str, Any]:
    """The solvers of the full system with a ridge by name; iterative ones take options, the direct ones need none."""
    return {name: cls for name, cls in RIDGE_SOLVERS.items() if cls.traits.sums_of == "rows" and cls.traits.ridge}


def get_solver(solver: Any, **options: Any) -> Solver:
    """The solver of that name, an iterative one with these options; a solver object is given back as it is.

    >>> get_solver("eigh")
    Eigh(rank_tol=None)
    """
    if isinstance(solver, str):
        solvers = full_solvers()
        if solver not in solvers:
            known = ", ".join(map(repr, sorted(solvers)))
            raise InputError(f"solver={solver!r} is unknown; the solvers are {known}, or 'auto' to choose.")
        made: Solver = solvers[solver](**options) if solvers[solver].traits.iterates else solvers[solver]()
        return made
    if not callable(getattr(solver, "solve", None)):
        raise InputTypeError(f"solver={solver!r}: give a name or a solver such as Cholesky() or Eigh().")
    found: Solver = solver
    return found


def ridge_solve(
    A: System, B: Tensor, alpha: float | Tensor, solver: str | Solver = "cholesky", **options: Any
) -> Solution:
    r"""Solve

    .. math:: (A + \alpha I) X = B

    for B of shape (n,) or (n, t), with one alpha or one per column of B. `solver` is a name or a solver. Cholesky
    factorises once per distinct alpha, Eigh once in all; iterative solvers take options such as `tol`.

    >>> import torch
    >>> from mercer.testing.solvers import MatrixSystem
    >>> A = MatrixSystem(torch.eye(2))
    >>> ridge_solve(A, torch.ones(2, 2), torch.tensor([0.0, 1.0]), "eigh").value
    tensor([[1.0000, 0.5000],
            [1.0000, 0.5000]], dtype=torch.float64)
    """
    return get_solver(solver, **options).solve(A, B, alpha)
