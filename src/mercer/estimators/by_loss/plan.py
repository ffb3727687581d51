"""What a fit with any loss will do and why: decided from settings and a sample before any work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mercer.core.errors import InputError
from mercer.core.memory import resolve_budget
from mercer.data.given import Alpha, Budget
from mercer.data.rows import RowSource
from mercer.data.sample import Sample, Seen
from mercer.estimators.by_loss.settings import LossSettings
from mercer.estimators.common.alpha import checked_alpha
from mercer.estimators.common.kernels import resolved_kernel
from mercer.estimators.common.parts import reserved_bytes
from mercer.estimators.common.place import budget_if_kept, budget_left, device_of, dtype_of
from mercer.kernels import Kernel, resolve
from mercer.kernels.overflow import check_kernel_values
from mercer.kernels.spread import robust_spread
from mercer.losses import Loss
from mercer.operators.placement import Placement
from mercer.solvers.choose import choose_for_loss
from mercer.solvers.system import SMALLEST_ALPHA


@dataclass(frozen=True, eq=False)
class LossPlan:
    """The kernel with its length scales found, alpha (a number or the word for how to choose it), the solver and why.

    Parameters of losses are multiples of `unit` in the units of targets.
    `classes` are the sorted labels, of which targets are the places; None for a regression. `n_rows` are all rows where
    these are read in parts, which takes `reserved` bytes.
    """

    settings: LossSettings
    kernel: Kernel
    alpha: float | str
    solver: str
    reason: str
    place: Placement
    classes: np.ndarray | None = None
    unit: float = 1.0
    n_rows: int | None = None
    reserved: int = 0

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        """One loss for each of the quantiles, else one alone, in the units of the targets."""
        return tuple(loss.in_units(self.unit) for loss in self.settings.losses)

    @property
    def keeps_rows(self) -> bool:
        """Whether each row has a coefficient."""
        return self.solver != "nystrom"

    @property
    def landmark_budget(self) -> Any:
        """The memory for landmarks beside rows that are read in parts."""
        if not self.reserved or self.place.device.type != "cpu":
            return self.place.memory_budget
        return resolve_budget(self.place.memory_budget, "cpu") - self.reserved

    @property
    def calibrates(self) -> bool:
        """Whether probabilities are fitted to decisions for rows left out."""
        return self.classes is not None and self.settings.losses[0].name != "logistic"

    def options(self, *, tell: bool = True) -> dict[str, Any]:
        """What `minimise` is told; with `tell` it prints its steps where that was asked for."""
        settings = self.settings
        callback = _print_residual if settings.verbose and tell else None
        return {"tol": float(settings.tol), "max_iter": settings.max_iter, "callback": callback}


def by_spectrum(plan: LossPlan) -> bool:
    """Whether alpha is found by the eigenvectors of the kernel: it is open, and the loss smooth and convex."""
    return plan.alpha == "auto" and not plan.settings.kinked and plan.losses[0].convex


def plan_loss(settings: LossSettings, sample: Sample, classes: np.ndarray | None = None) -> LossPlan:
    """The plan for a sample whose targets are numbers or, given the classes, their places."""
    for name in ("client", "checkpoint"):
        if getattr(settings, name) is not None:
            raise InputError(f"{name}= is for rows that are read in parts: wrap arrays in mercer.rows.ArrayRows.")
    alpha = checked_loss_alpha(settings.alpha)
    data, seen, rows = sample.positive()[0], sample.seen, sample.rows
    device, if_kept = device_of(settings.device, seen), budget_if_kept(settings.memory_budget, rows)
    solver, reason = choose_for_loss(len(data), settings.solver, if_kept, device, settings.n_landmarks)
    if solver == "nystrom" and sample.square:
        raise InputError("Landmarks need feature rows; kernel='precomputed' has none.")
    place = place_of(settings, solver, seen, budget_left(settings.memory_budget, rows, kept=solver != "nystrom"))
    kernel = resolve(settings.kernel.bind(data.rows.names), data.rows, data.weights, seed=settings.seed)
    check_kernel_values(kernel, rows)
    return LossPlan(settings, kernel, alpha, solver, reason, place, classes, _unit(settings, data))


def plan_source(settings: LossSettings, source: RowSource, some: Sample, classes: np.ndarray | None = None) -> LossPlan:
    """The plan for rows that are read in parts; `some` of them show what the kernel needs to know."""
    if settings.solver not in ("auto", "nystrom"):
        raise InputError(
            f"solver={settings.solver!r} needs all rows in memory: pass arrays, or use solver='nystrom' for rows that "
            "are read in parts."
        )
    alpha, reserved = checked_loss_alpha(settings.alpha), reserved_bytes(settings.memory_budget, source)
    data = some.positive()[0]
    kernel = resolved_kernel(settings.kernel, data, settings.seed)
    if kernel.domain == "matrix":
        raise InputError("Landmarks need feature rows; kernel='precomputed' has none.")
    place = place_of(settings, "nystrom", some.seen, settings.memory_budget)
    reason = "landmarks because the rows are read in parts"
    settings = replace(settings, client=None)  # a connection is of now and here
    return LossPlan(
        settings, kernel, alpha, "nystrom", reason, place, classes, _unit(settings, data), source.n_rows, reserved
    )


def _unit(settings: LossSettings, data: Sample) -> float:
    """What the parameters of losses are multiples of: the spread of the targets, one for a constant, or one."""
    if not settings.in_spreads:
        return 1.0
    weights = np.ones(len(data)) if data.weights is None else data.weights.numpy()
    return robust_spread(data.targets[:, 0].numpy(), weights) or 1.0


def place_of(settings: LossSettings, solver: str, seen: Seen, budget: Budget) -> Placement:
    """Where and in which precision kernel values are found."""
    dtype = dtype_of(settings.dtype, seen, single=solver == "pcg")
    return Placement(device_of(settings.device, seen), dtype, budget)


def checked_loss_alpha(alpha: Alpha) -> float | str:
    """The word of a criterion, or a number of at least `SMALLEST_ALPHA`, as the one target may have it in a list."""
    found = checked_alpha(alpha, 1)
    if isinstance(found, str):
        return str(alpha)
    if not float(found) >= SMALLEST_ALPHA:
        raise InputError(f'alpha={alpha!r}: must be at least {SMALLEST_ALPHA:.2g}, or "auto".')
    return float(found)


def _print_residual(iteration: int, residual: float) -> None:
    print(f"step {iteration}: relative residual {residual:.2e}", flush=True)
