"""What `KernelPCA` and `MercerDecomposition` share: the largest eigenvalues of a kernel on a sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.devices import choose_device
from mercer.core.errors import ModelFileError
from mercer.core.memory import budget_beside
from mercer.core.results import SolverReport
from mercer.core.seeding import as_seed
from mercer.data.sample import Sample
from mercer.estimators.common.solvers import with_options
from mercer.estimators.common.state import REPORT
from mercer.estimators.transformers.fit import MapFit
from mercer.estimators.transformers.state import MAP, rows
from mercer.features import KernelProjection, PrincipalSubspace, principal_subspace
from mercer.features.principal import Powers
from mercer.files.fields import Array, Field, Fields
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.explicit import ExplicitFeatures
from mercer.solvers.eigensolvers import Krylov
from mercer.solvers.registry import EIGENSOLVERS

COPY = "a copy of the rows, which the model keeps,"


@dataclass(frozen=True, eq=False, kw_only=True)
class PrincipalSettings:
    """What a user asked for; see `KernelPCA`."""

    n_components: int | None
    kernel: Kernel
    solver: str
    tol: float
    max_iter: int
    device: Any
    memory_budget: Any
    seed: int

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Self:
        """The settings of an estimator's parameters."""
        default = Krylov()
        given = with_options(parameters, EIGENSOLVERS, tol=default.tol, max_iter=default.max_iter)
        names, count = {f.name for f in fields(cls)}, given["n_components"]
        p = {name: value for name, value in given.items() if name in names}
        p["n_components"], p["kernel"] = None if count is None else int(count), as_kernel(p["kernel"])
        return cls(**p, seed=as_seed(parameters["random_state"]))

    def device_for(self, points: Points, torch_in: bool) -> torch.device:
        """Where kernel values at the points are found: objects stay on the CPU."""
        return (
            choose_device(self.device, points.values if torch_in else None) if points.is_tensor else torch.device("cpu")
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class PrincipalFit(MapFit[KernelProjection]):
    """What a fit knows: the eigenvalues, the sum of all of them, and how they were found."""

    eigenvalues: Tensor
    total: float
    report: SolverReport

    @property
    def shares(self) -> Tensor:
        """Each eigenvalue as a share of the sum of all."""
        return self.eigenvalues / self.total if self.total > 0 else torch.zeros_like(self.eigenvalues)

    def powers(self, theta: float) -> Powers:
        """Features of a power space."""
        return Powers(self.features, self.eigenvalues, theta)


def exact_subspace(settings: PrincipalSettings, kernel: Kernel, sample: Sample, *, center: bool) -> PrincipalSubspace:
    """The principal directions in the span of all rows, of which the fit keeps a copy."""
    budget = budget_beside(settings.memory_budget, sample.rows.borrowed_bytes, COPY)
    return principal_subspace(
        kernel,
        sample.rows.owned(),
        settings.n_components,
        center=center,
        solver=settings.solver,
        tol=settings.tol,
        max_iter=settings.max_iter,
        seed=settings.seed,
        device=settings.device_for(sample.rows, sample.torch_in),
        memory_budget=budget,
    )


def _origin(fit: PrincipalFit) -> Tensor | None:
    """The mean of the rows in the features of the kernel, where directions are there."""
    features, directions = fit.features.features, fit.features.directions
    if features is None or directions is None:
        return None
    return directions.new_zeros(len(directions)) if features.shift is None else features.shift


PRINCIPAL: Fields = {
    **MAP,
    **rows(at="features.points"),
    "report": Field(REPORT),
    "coef": Array("m q", at="features.coef"),
    "shift": Array("q", at="features.shift"),
    "eigenvalues": Array("q", least=0.0),
    "directions": Array("p q", at="features.directions", may_lack=True),
    "origin": Array("p", at=_origin, may_lack=True),
}
"""What is saved of both; q is the number of components, p that of the kernel's features."""


def projection_of(settings: PrincipalSettings, found: Any) -> KernelProjection:
    """The map of a file."""
    if not found.coef.shape[1]:
        raise ModelFileError("array 'coef' has no columns")
    if (found.directions is None) != (found.origin is None):
        raise ModelFileError("the arrays 'directions' and 'origin' go together")
    device, kernel, rows = settings.device_for(found.rows, found.torch_in), found.kernel, found.rows
    known = {} if found.origin is None else _in_features(kernel, rows, found.directions, found.origin)
    return KernelProjection(kernel, rows, found.coef, found.shift, device, settings.memory_budget, **known)


def _in_features(kernel: Kernel, points: Points, directions: Tensor, origin: Tensor) -> dict[str, Any]:
    """The directions in the features of the kernel, and these."""
    p = len(directions)
    features = ExplicitFeatures.of(kernel, points, p)
    if features is None or features.n_features != p:
        raise ModelFileError(f"the kernel {kernel!r:.60} does not have {p} features")
    return {"features": replace(features, shift=origin), "directions": directions}
