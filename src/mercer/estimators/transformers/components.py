"""Principal components in the RKHS: what was asked for, and what was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from mercer.core.errors import InputError
from mercer.data.given import Alpha
from mercer.data.sample import Sample, Seen
from mercer.estimators.common.kernels import resolved_kernel
from mercer.estimators.transformers.pre_images import Inverse, check_pre_image
from mercer.estimators.transformers.principal import PrincipalFit, PrincipalSettings, exact_subspace
from mercer.estimators.transformers.report import Lines
from mercer.features import NystromMap, PrincipalSubspace
from mercer.features.pre_image import fixed_point_pre_images
from mercer.features.principal import principal_subspace_of_landmarks
from mercer.kernels import Kernel
from mercer.kernels.names import KernelLike
from mercer.solvers.choose import landmark_count
from mercer.solvers.landmarks import check_landmarks, choose_landmarks


@dataclass(frozen=True, eq=False, kw_only=True)
class PCASettings(PrincipalSettings):
    """What a user asked for; see `KernelPCA`. Without `landmarks` the components are exact."""

    center: bool
    landmarks: Any
    n_landmarks: int | None
    pre_image: str

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> PCASettings:
        """The settings of an estimator's parameters."""
        p = dict(parameters)
        if p["landmarks"] is not None or p["n_landmarks"] is not None:
            p["landmarks"] = "uniform" if p["landmarks"] is None else p["landmarks"]
            p["n_landmarks"] = check_landmarks(p["landmarks"], p["n_landmarks"])
        return super().of(p)


@dataclass(frozen=True, eq=False, kw_only=True)
class PCAFit(PrincipalFit):
    """What a fit knows.

    Attributes
    ----------
    mean_coef : Tensor
        Coefficients of the mean of the features at the points of the map.
    coordinates : Tensor or None
        Those of the training rows, where they were found on the way.
    inverse : Inverse or None
        The way back, once it was asked for.
    """

    settings: PCASettings
    mean_coef: Tensor
    coordinates: Tensor | None = None
    inverse: Inverse | None = None

    @classmethod
    def of(cls, settings: PCASettings, seen: Seen, found: PrincipalSubspace, note: str = "") -> PCAFit:
        """A subspace as a fit."""
        return cls(
            seen,
            found.projection.kernel,
            found.projection,
            note,
            settings=settings,
            eigenvalues=found.values,
            total=found.total,
            report=found.report,
            mean_coef=found.mean_coef,
            coordinates=found.coordinates,
        )

    def with_inverse(self, kernel: KernelLike, alpha: Alpha) -> PCAFit:
        """The fit with the way back, which is learned when it is first needed."""
        if self.inverse is not None:
            return self
        given = self.settings
        options = {"device": given.device, "memory_budget": given.memory_budget, "random_state": given.seed}
        return replace(self, inverse=Inverse.learned(self.features, kernel, alpha, **options))

    def pre_images(self, Y: Tensor, how: str) -> Tensor:
        """Points whose coordinates are near the rows of Y."""
        assert self.inverse is not None
        found = self.inverse(Y)
        return fixed_point_pre_images(self.features, self.mean_coef, Y, found) if how == "fixed_point" else found


def find_components(settings: PCASettings, sample: Sample) -> PCAFit:
    """The principal components of the rows of a sample in the RKHS."""
    kernel = resolved_kernel(settings.kernel, sample, settings.seed)
    check_pre_image(settings.pre_image, kernel)
    if settings.landmarks is None:
        found, note = exact_subspace(settings, kernel, sample, center=settings.center), ""
    else:
        found, note = subspace_of_landmarks(settings, kernel, sample)
    return PCAFit.of(settings, sample.seen, found, note)


def subspace_of_landmarks(settings: PCASettings, kernel: Kernel, sample: Sample) -> tuple[PrincipalSubspace, str]:
    """The principal directions in the span of landmarks, and how these were chosen."""
    if sample.square:
        raise InputError("landmarks are chosen among rows, which a precomputed kernel does not have.")
    rows, how, budget = sample.rows, settings.landmarks, settings.memory_budget
    device = settings.device_for(rows, sample.torch_in)
    most = len(rows) if isinstance(how, str) else len(how)
    m = landmark_count(most, settings.n_landmarks, "nystrom", budget, device)
    chosen = choose_landmarks(kernel, rows, m, how, settings.seed, memory_budget=budget)
    nystrom = NystromMap.of(kernel, chosen.points, device=device, memory_budget=budget)
    found = principal_subspace_of_landmarks(nystrom, rows, settings.n_components, center=settings.center)
    return found, chosen.note


def pca_lines(fit: PCAFit) -> Lines:
    """What the report says of the components."""
    shares = fit.shares.cpu().numpy()
    shown = ", ".join(f"{share:.1%}" for share in shares[:5]) + (", ..." if len(shares) > 5 else "")
    found = f"{len(shares):,} with {shares.sum():.1%} of the variance ({shown})"
    lines: Lines = [("components", found), ("solver", str(fit.report))]
    return lines + ([("landmarks", fit.note)] if fit.note else [])


def pca_concerns(fit: PCAFit) -> list[str]:
    """What to worry about."""
    found = []
    if not fit.report.converged:
        found.append("the eigenvectors are not as accurate as asked for: allow a larger max_iter")
    zero = int((fit.eigenvalues == 0).sum())
    if zero:
        found.append(f"{zero} of {len(fit.eigenvalues)} components have no variance")
    return found
