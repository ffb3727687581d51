"""What `KernelPCA` and `MercerDecomposition` share: the largest eigenvalues of a kernel on a sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
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
from mercer.estimators.common.base import KernelEstimator
from mercer.estimators.common.state import REPORT, float_array, read_kernel, read_points
from mercer.estimators.transformers.fit import MapFit
from mercer.estimators.transformers.state import ROWS, rows_state
from mercer.features import KernelProjection, PrincipalSubspace, principal_subspace
from mercer.features.principal import Powers
from mercer.files.kinds import Kind
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.explicit import ExplicitFeatures

COPY = "a copy of the rows, which the model keeps,"

PRINCIPAL: dict[str, Kind] = ROWS | {"report": REPORT}


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
        names, count = {f.name for f in fields(cls)}, parameters["n_components"]
        p = {name: value for name, value in parameters.items() if name in names}
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


def principal_state(fit: PrincipalFit) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What `read_principal` reads."""
    projection = fit.features
    meta, arrays = rows_state(projection.points, fit.seen)
    arrays |= {"coef": projection.coef, "shift": projection.shift, "eigenvalues": fit.eigenvalues}
    if projection.features is not None and projection.directions is not None:
        V, origin = projection.directions, projection.features.shift
        arrays |= {"directions": V, "origin": V.new_zeros(len(V)) if origin is None else origin}
    return meta | {"report": asdict(fit.report)}, arrays


def read_principal(
    settings: PrincipalSettings, model: KernelEstimator, meta: dict[str, Any], arrays: dict[str, Tensor]
) -> tuple[KernelProjection, Tensor]:
    """The projection and the eigenvalues."""
    points = read_points(meta, arrays)
    kernel = read_kernel(model, meta, points)
    coef = float_array(arrays, "coef", (len(points), None))
    q = coef.shape[1]
    if not q:
        raise ModelFileError("array 'coef' has no columns")
    device, shift = settings.device_for(points, meta["torch_in"]), float_array(arrays, "shift", (q,))
    known = _in_features(kernel, points, q, arrays) if "directions" in arrays else {}
    projection = KernelProjection(kernel, points, coef, shift, device, settings.memory_budget, **known)
    return projection, float_array(arrays, "eigenvalues", (q,), least=0.0)


def _in_features(kernel: Kernel, points: Points, q: int, arrays: dict[str, Tensor]) -> dict[str, Any]:
    """The directions in the features of the kernel, and these."""
    V = float_array(arrays, "directions", (None, q))
    origin, features = float_array(arrays, "origin", (len(V),)), ExplicitFeatures.of(kernel, points, len(V))
    if features is None or features.n_features != len(V):
        raise ModelFileError(f"the kernel {kernel!r:.60} does not have {len(V)} features")
    return {"features": replace(features, shift=origin), "directions": V}
