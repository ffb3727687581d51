"""The parameters of a ridge regression, checked and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from mercer.core.errors import InputError
from mercer.core.seeding import as_seed
from mercer.data.given import Landmarks
from mercer.estimators.common.alpha import AUTO, checked_alphas
from mercer.estimators.common.solvers import asked_for
from mercer.estimators.dials import TOL
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.names import is_open
from mercer.solvers.landmarks import check_landmarks
from mercer.solvers.registry import RIDGE_SOLVERS, traits_of

FIXED = ("kernel", "fit_intercept", "landmarks", "n_landmarks", "n_features")
"""Settings that stay what they were in the first of several partial fits."""


@dataclass(frozen=True, eq=False)
class RidgeSettings:
    """What a user asked for; see `KernelRidge`. `n_landmarks` counts those that are given as points, too.

    `any_kernel` tells that tuning may take another kernel.
    `solver` is a name, `method` the solver where it was given as an object.
    """

    kernel: Kernel
    alpha: Any
    alphas: Tensor | None
    fit_intercept: bool
    tune: bool | str
    solver: str
    method: Any
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
    any_kernel: bool = False

    @property
    def automatic(self) -> bool:
        """Whether alpha is found without a word on how."""
        return isinstance(self.alpha, str) and self.alpha == AUTO

    @property
    def open(self) -> bool:
        """Whether any solver may be chosen, with a coefficient for each row or without."""
        return self.solver == "auto" and self.n_landmarks is None and self.n_features is None

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> RidgeSettings:
        """The settings of an estimator's parameters."""
        p = dict(parameters)
        p["solver"], p["method"] = asked_for(p, RIDGE_SOLVERS, tol=TOL, max_iter=None)
        p["n_landmarks"] = _checked_landmarks(p["solver"], p["landmarks"], p["n_landmarks"])
        p["any_kernel"] = is_open(p["kernel"])
        p["kernel"], p["alphas"] = as_kernel(p["kernel"]), checked_alphas(p["alphas"])
        p["seed"] = as_seed(p.pop("random_state"))
        return cls(**p)


def _checked_landmarks(solver: Any, landmarks: Landmarks, n_landmarks: Any) -> int | None:
    count = check_landmarks(landmarks, n_landmarks)
    named = isinstance(landmarks, str)
    takes = solver == "auto" or traits_of(solver).sums_of == "landmarks"
    if not takes and not (named and landmarks == "uniform"):
        what = f"landmarks={landmarks!r}" if named else f"landmarks, given as {count} points,"
        verb = "has" if named else "have"
        raise InputError(f"{what} {verb} no meaning for solver={solver!r}: use 'nystrom' or 'falkon'.")
    return count
