"""The parameters of Gaussian processes, checked and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from torch import Tensor

from mercer.core.errors import InputError
from mercer.core.seeding import as_seed
from mercer.estimators.gaussian.noise import checked_noise
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.names import is_open
from mercer.processes.maximise import Progress
from mercer.processes.methods import METHODS

KERNELS = ("matern52", "matern32", "laplace_l1")
"""What kernel="auto" is for numbers: that of greatest evidence. For labels it is the first."""


@dataclass(frozen=True, eq=False)
class LearningSettings:
    """What a user asked for; see `GaussianProcessClassifier`.

    A `kernel` that is a name stands for a variance times it, with a length scale for each feature from the data;
    `any_kernel` tells that learning may take one of `KERNELS` in its place.
    """

    kernel: str | Kernel
    n_restarts: int
    priors: Any
    bounds: Any
    tune: bool | str
    standardize: bool
    device: Any
    dtype: Any
    memory_budget: Any
    seed: int
    max_iter: int
    verbose: bool
    any_kernel: bool

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Self:
        """The settings of an estimator's parameters."""
        p = dict(parameters)
        p["any_kernel"] = is_open(p["kernel"])
        if p["any_kernel"]:
            p["kernel"] = KERNELS[0]
        p["kernel"] = p["kernel"] if isinstance(p["kernel"], str) else as_kernel(p["kernel"])
        p["seed"] = as_seed(p.pop("random_state"))
        return cls(**p)

    @property
    def bare_kernel(self) -> Kernel:
        """The kernel before the data say anything about it."""
        return as_kernel(self.kernel)

    @property
    def progress(self) -> Progress | None:
        """What shows the learning, where that was asked for."""
        return _print_progress if self.verbose else None


@dataclass(frozen=True, eq=False)
class ProcessSettings(LearningSettings):
    """What a user asked for; see `GaussianProcessRegressor`. `noise` is None where it is learned."""

    mean: Any
    noise: float | None
    row_noise: Tensor | None
    method: str
    n_landmarks: int | None
    n_learn: int | None

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Self:
        """The settings of an estimator's parameters."""
        method = parameters["method"]
        if not isinstance(method, str) or method not in ("auto", *METHODS):
            known = ", ".join(map(repr, ("auto", *METHODS)))
            raise InputError(f"method={method!r} is unknown; the methods are {known}.")
        noise, row_noise = checked_noise(parameters["noise"])
        return super().of({**parameters, "noise": noise, "row_noise": row_noise})


def _print_progress(iteration: int, value: float) -> None:
    print(f"step {iteration}: log marginal likelihood {value:.6g}", flush=True)
