"""The ridge solvers by name, with their traits."""

from __future__ import annotations

from typing import Any

from mercer.core.errors import InputError
from mercer.solvers.cholesky import Cholesky
from mercer.solvers.eigenpro import EigenPro
from mercer.solvers.eigh import Eigh
from mercer.solvers.falkon import Falkon
from mercer.solvers.gradient_descent import GradientDescent
from mercer.solvers.mixed_precision import MixedCholesky
from mercer.solvers.nystrom import NystromSums
from mercer.solvers.pcg import PCG
from mercer.solvers.random_features import RandomFeatureSums
from mercer.solvers.traits import Traits

RIDGE_SOLVERS: dict[str, Any] = {
    "cholesky": Cholesky,
    "eigh": Eigh,
    "mixed_cholesky": MixedCholesky,
    "pcg": PCG,
    "eigenpro": EigenPro,
    "gd": GradientDescent,
    "nystrom": NystromSums,
    "falkon": Falkon,
    "random_features": RandomFeatureSums,
}
"""All solvers of `KernelRidge`; each has `traits`."""


def traits_of(solver: Any) -> Traits:
    """The traits of the solver of that name.

    >>> traits_of("eigh").matrices, traits_of("falkon").sums_of
    (3.5, 'landmarks')
    """
    if not isinstance(solver, str):
        raise InputError(f"solver={solver!r}: give the name of a solver.")
    if solver not in RIDGE_SOLVERS:
        known = ", ".join(map(repr, sorted(RIDGE_SOLVERS)))
        raise InputError(f"solver={solver!r} is unknown; the solvers are {known}, or 'auto' to choose.")
    traits: Traits = RIDGE_SOLVERS[solver].traits
    return traits
