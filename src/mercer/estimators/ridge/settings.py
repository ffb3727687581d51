"""The parameters of a ridge regression, checked and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from mercer.core.errors import InputError
from mercer.core.seeding import as_seed
from mercer.estimators.common.alpha import checked_alphas
from mercer.kernels import Kernel, as_kernel
from mercer.solvers.landmarks import check_landmarks
from mercer.solvers.registry import traits_of

FIXED = ("kernel", "fit_intercept", "landmarks", "n_landmarks", "n_features")
"""Settings that stay what they were in the first of several partial fits."""


@dataclass(frozen=True, eq=False)
class RidgeSettings:
    """What a user asked for; see `KernelRidge`. `n_landmarks` counts those that are given as points, too."""

    kernel: Kernel
    alpha: Any
    alphas: Tensor | None
    fit_intercept: bool
    tune: bool
    solver: str
    device: Any
    dtype: Any
    memory_budget: Any
    seed: int
    tol: float
    max_iter: int | None
    n_landmarks: int | None
    landmarks: Any
    n_features: int | None
    checkpoint: Any
    client: Any
    verbose: bool

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> RidgeSettings:
        """The settings of an estimator's parameters."""
        p = dict(parameters)
        p["n_landmarks"] = _checked_landmarks(p["solver"], p["landmarks"], p["n_landmarks"])
        p["kernel"], p["alphas"] = as_kernel(p["kernel"]), checked_alphas(p["alphas"])
        p["seed"] = as_seed(p.pop("random_state"))
        return cls(**p)


def _checked_landmarks(solver: Any, landmarks: Any, n_landmarks: Any) -> int | None:
    count = check_landmarks(landmarks, n_landmarks)
    named = isinstance(landmarks, str)
    takes = solver == "auto" or traits_of(solver).sums_of == "landmarks"
    if not takes and not (named and landmarks == "uniform"):
        what = f"landmarks={landmarks!r}" if named else f"landmarks, given as {count} points,"
        verb = "has" if named else "have"
        raise InputError(f"{what} {verb} no meaning for solver={solver!r}: use 'nystrom' or 'falkon'.")
    return count
