"""The parameters of a recursive feature machine, checked and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mercer.core.errors import InputError
from mercer.core.seeding import as_seed
from mercer.estimators.dials import FACTORS
from mercer.kernels import ExponentialPower, Gaussian, Kernel, Laplace, as_kernel
from mercer.kernels.names import KernelLike
from mercer.kernels.parameters import MEDIAN
from mercer.solvers.landmarks import check_landmarks

MATRICES = ("auto", "diagonal", "full")


@dataclass(frozen=True)
class Candidate:
    """A kernel whose length scale is a number, or so many medians of the distance between rows."""

    kernel: Kernel
    factor: float = 1.0

    @property
    def by_columns(self) -> bool:
        """Whether it adds up distances column by column, so that columns have weights but no directions."""
        return getattr(self.kernel, "metric", "l2") == "l1"

    @property
    def unscaled(self) -> bool:
        return getattr(self.kernel, "length_scale", None) == MEDIAN


AUTO = (
    *(Candidate(Laplace(MEDIAN), factor) for factor in (1.0, 4.0)),
    *(Candidate(Laplace(MEDIAN, metric="l1"), factor) for factor in (1.0, 4.0)),
    *(Candidate(Gaussian(MEDIAN), factor) for factor in (0.5, 1.0, 2.0, 4.0)),
)
"""Rough and smooth kernels, and those whose corners lie along the columns. How far a machine sees hardly matters for
Laplace, and much for Gaussian kernels. Chosen on seven of the regression sets of odd places in the alphabet."""


@dataclass(frozen=True, eq=False)
class RFMSettings:
    """What a user asked for; see `RFMRegressor`."""

    candidates: tuple[Candidate, ...]
    alpha: float | None
    diagonals: tuple[bool, ...]
    max_iter: int
    n_folds: int
    n_learn: int
    solver: str
    device: Any
    dtype: Any
    memory_budget: Any
    seed: int
    n_landmarks: int | None
    landmarks: Any
    verbose: bool
    class_weight: Any = None

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> RFMSettings:
        """The settings of an estimator's parameters."""
        p = dict(parameters)
        matrix = p.pop("matrix")
        p["diagonals"] = (True, False) if matrix == "auto" else (matrix == "diagonal",)
        p["candidates"] = candidates(p.pop("kernel"))
        if matrix == "full" and all(candidate.by_columns for candidate in p["candidates"]):
            raise InputError(
                "matrix='full': a kernel of the l1 distance learns weights of columns alone; give matrix='diagonal'."
            )
        p["alpha"] = None if isinstance(p["alpha"], str) else float(p["alpha"])
        p["n_landmarks"] = check_landmarks(p["landmarks"], p["n_landmarks"])
        p["seed"] = as_seed(p.pop("random_state"))
        return cls(**p)


def candidates(kernel: KernelLike) -> tuple[Candidate, ...]:
    """The kernels to compare for what a user gave, or an error."""
    if isinstance(kernel, str) and kernel == "auto":
        return AUTO
    found = as_kernel(kernel)
    if not isinstance(found, Laplace | Gaussian | ExponentialPower):
        raise InputError(
            f"kernel={kernel!r}: recursive feature machines take 'auto', 'laplace', 'gaussian', 'exponential_power' "
            "or a kernel of these classes."
        )
    if isinstance(found.length_scale, str):
        median = replace(found, length_scale=MEDIAN)
        return tuple(Candidate(median, factor) for factor in FACTORS)
    if isinstance(found.length_scale, tuple):
        raise InputError(
            f"kernel={kernel!r}: give one length scale for all columns; the weights of columns are learned."
        )
    return (Candidate(found),)
