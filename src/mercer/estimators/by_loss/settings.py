"""The parameters of a classifier or regressor with any loss, checked and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mercer.core.errors import InputError
from mercer.core.seeding import as_seed
from mercer.estimators.by_loss.quantiles import checked_quantiles, is_list
from mercer.estimators.common.solvers import with_options
from mercer.estimators.dials import TOL
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.names import is_open
from mercer.losses import Loss, PiecewiseLinear, Quantile, get_loss
from mercer.losses.registry import names_for
from mercer.solvers.landmarks import check_landmarks
from mercer.solvers.registry import LOSS_SOLVERS

UNITS = ("spread", "raw")
"""What numbers in units of y are multiples of: its spread, or its unit as it is."""


@dataclass(frozen=True, eq=False)
class LossSettings:
    """What a user asked for; see `KernelClassifier` and `KernelRegressor`.

    `losses` are one for each of the `quantiles`, else one alone; `in_spreads` tells that their parameters are multiples
    of the spread of y. `n_landmarks` counts those that are given as points, too. `rank` is that of a preconditioner.
    `in_columns` tells that predictions have a column for each quantile, also for one; `any_kernel` that tuning may take
    another kernel.
    """

    kernel: Kernel
    loss: str | Loss
    losses: tuple[Loss, ...]
    alpha: Any
    fit_intercept: bool
    tune: bool | str
    solver: str
    device: Any
    dtype: Any
    memory_budget: Any
    seed: int
    tol: float
    max_iter: int | None
    n_landmarks: int | None
    landmarks: Any
    verbose: bool
    rank: int | None = None
    checkpoint: Any = None
    client: Any = None
    class_weight: Any = None
    quantiles: tuple[float, ...] | None = None
    in_columns: bool = False
    in_spreads: bool = False
    any_kernel: bool = False

    @classmethod
    def of_classifier(cls, parameters: Mapping[str, Any]) -> LossSettings:
        """The settings of the parameters of a `KernelClassifier`."""
        p = _shared(parameters)
        return cls(losses=(_checked_loss(p["loss"], "classes"),), **p)

    @classmethod
    def of_regressor(cls, parameters: Mapping[str, Any]) -> LossSettings:
        """The settings of the parameters of a `KernelRegressor`."""
        p = _shared(parameters)
        quantiles, delta, epsilon = (p.pop(name) for name in ("quantiles", "delta", "epsilon"))
        p["in_spreads"] = p.pop("units") == "spread" and isinstance(p["loss"], str)
        loss = _checked_loss(p["loss"], "numbers", huber={"delta": delta}, epsilon_insensitive={"epsilon": epsilon})
        if not isinstance(p["loss"], str) or p["loss"] != "quantile":
            return cls(losses=(loss,), **p)
        levels = checked_quantiles(quantiles)
        return cls(losses=tuple(map(Quantile, levels)), quantiles=levels, in_columns=is_list(quantiles), **p)

    @property
    def measure(self) -> str:
        """What rows left out are judged by."""
        name = self.losses[0].name
        return "mean squared error" if name == "squared" else f"{name.replace('_', ' ')} loss"

    @property
    def kinked(self) -> bool:
        """Whether losses are made of straight pieces."""
        return isinstance(self.losses[0], PiecewiseLinear)


def _shared(parameters: Mapping[str, Any]) -> dict[str, Any]:
    p = with_options(parameters, LOSS_SOLVERS, tol=TOL, max_iter=None)
    p["any_kernel"] = is_open(p["kernel"])
    p["kernel"], p["seed"] = as_kernel(p["kernel"]), as_seed(p.pop("random_state"))
    p["n_landmarks"] = check_landmarks(p["landmarks"], p["n_landmarks"])
    return p


def _checked_loss(loss: Loss | str, what: str, **parameters: dict[str, Any]) -> Loss:
    """The loss that is given, or one for "classes" or "numbers" by name, with its parameters."""
    if not isinstance(loss, str):
        return get_loss(loss)
    if loss not in names_for(what):
        known = ", ".join(map(repr, names_for(what)))
        raise InputError(f"loss={loss!r}: choose one of {known}, or give a mercer.losses.Loss.")
    return get_loss(loss, **parameters.get(loss, {}))
