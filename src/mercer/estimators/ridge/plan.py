"""What a ridge regression will do and why: decided from settings and a sample before any work."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from mercer.core.errors import InputError
from mercer.core.memory import resolve_budget
from mercer.core.progress import Iterations
from mercer.data.given import Alpha, Budget
from mercer.data.rows import RowSource
from mercer.data.sample import Sample, Seen
from mercer.estimators.common.alpha import AUTO, checked_alpha
from mercer.estimators.common.alpha_sample import few_rows
from mercer.estimators.common.kernels import resolved_kernel
from mercer.estimators.common.parts import reserved_bytes
from mercer.estimators.common.place import budget_if_kept, budget_left, device_of, dtype_of
from mercer.estimators.dials import HOLD_OUT_FROM
from mercer.estimators.ridge.settings import RidgeSettings
from mercer.kernels import Kernel
from mercer.kernels.explicit import ExplicitFeatures
from mercer.operators.placement import Placement
from mercer.selection import AlphaPath
from mercer.solvers.choose import SPECTRAL, choose, landmark_count, landmark_solver, memory_needed
from mercer.solvers.registry import RIDGE_SOLVERS, is_default, options_of, traits_of
from mercer.solvers.traits import Traits


@dataclass(frozen=True, eq=False)
class RidgePlan:
    """The kernel with its length scales found, alpha (a criterion, a number or one per target), the solver and why.

    `reserved` is the memory that reading parts of a source takes, `n_rows` the number of all rows, `path` that of the
    sample which alpha is from. An alpha "auto" is still to be found on one.
    """

    settings: RidgeSettings
    kernel: Kernel
    alpha: Any
    solver: str
    reason: str
    place: Placement
    n_rows: int
    reserved: int = 0
    path: AlphaPath | None = None

    @cached_property
    def traits(self) -> Traits:
        """What is known of the solver."""
        return traits_of(self.solver)

    @property
    def tol(self) -> float:
        """The tolerance of the solver, 0 for one that has none."""
        return float(getattr(self.settings.method or self.settings, "tol", 0.0)) if self.traits.iterates else 0.0

    def ready(self, **more: Any) -> Any:
        """The solver as the plan has it: the one given as an object, or one with the options of the settings."""
        options, takes = self._options() | more, options_of(self.solver)
        given = self.settings.method
        if given is None:
            return RIDGE_SOLVERS[self.solver](**{name: value for name, value in options.items() if name in takes})
        own = ("tol", "max_iter", "validation")
        open_ = [name for name in options if name in takes and name not in own and is_default(given, name)]
        return replace(given, **{name: options[name] for name in open_})

    def _options(self) -> dict[str, Any]:
        """What iterative solvers can be told, each what it takes."""
        settings, what = self.settings, "relative residual"
        options: dict[str, Any] = {
            "tol": settings.tol,
            "seed": settings.seed,
            "memory_budget": self.place.memory_budget,
            "refine": settings.dtype == "auto",
            "among_rows": isinstance(settings.landmarks, str),
        }
        if settings.max_iter is not None:
            options["max_iter"] = settings.max_iter
        if self.traits.stops_early:
            no_ridge = not isinstance(self.alpha, str) and not bool(torch.as_tensor(self.alpha).any())
            options["validation"] = 0.1 if self.n_rows >= HOLD_OUT_FROM and no_ridge else 0.0
            what = "error on rows held out" if options["validation"] else what
        if settings.verbose:
            options["callback"] = Iterations(self.tol, settings.max_iter, what)
        return options

    @property
    def landmark_budget(self) -> int:
        """The memory for landmarks beside rows that are read in parts."""
        device = self.place.device
        budget = resolve_budget(self.place.memory_budget, device)
        return budget if device.type != "cpu" else budget - self.reserved


def plan_ridge(settings: RidgeSettings, sample: Sample) -> RidgePlan:
    """The plan for rows in memory."""
    if settings.client is not None:
        raise InputError("client= is for rows that are read in parts: wrap arrays in mercer.rows.ArrayRows.")
    if settings.checkpoint is not None:
        raise InputError(
            f"checkpoint={settings.checkpoint!r} is for rows that are read in parts: "
            "wrap arrays in mercer.rows.ArrayRows."
        )
    data, seen, square = sample.positive()[0], sample.seen, settings.kernel.domain == "matrix"
    n, t, any_solver, automatic = len(data), seen.n_targets, settings.open, settings.automatic
    device, budget = device_of(settings.device, seen), budget_if_kept(settings.memory_budget, sample.rows)
    asked = settings.solver if settings.method is None else settings.method
    few = any_solver and automatic and few_rows(sample, merge=False)
    alpha = "loo" if few else _alpha(settings, t)
    solver, reason = _chosen(settings, asked, n, t, alpha, budget, device)
    if few and solver != SPECTRAL:  # the path does not fit
        few, alpha = False, _alpha(settings, t)
        solver, reason = _chosen(settings, asked, n, t, alpha, budget, device)
    if settings.solver == "auto":
        if solver == "nystrom" and settings.n_landmarks is None and square:
            # a matrix has no rows to choose landmarks from: an error that says what would fit
            choose(n, t, alpha, "eigh", budget, device)
        if solver == "eigenpro" and (kinds := _few_kinds(data, settings, device)):
            # least squares, which a descent that looks at some rows at a time does not reach
            solver, reason = "nystrom", f"chosen because only {kinds:,} of {n:,} rows are distinct"
    kernel = resolved_kernel(settings.kernel, data, settings.seed)
    if any_solver:
        features = own_features(kernel, data, budget, most=n - 1)
        if features is not None:
            solver, reason = "primal", _few_features(features, n)
    if automatic and not few:
        alpha = _automatic(solver, sample, budget, device)
        if alpha == "loo" and solver != "primal":
            solver, reason = _chosen(settings, asked, n, t, alpha, budget, device)
    traits = traits_of(solver)
    budget = budget_left(settings.memory_budget, sample.rows, kept=traits.keeps_rows)
    place = Placement(device, dtype_of(settings.dtype, seen, single=traits.iterates), budget)
    return RidgePlan(settings, kernel, alpha, solver, reason, place, n)


def _alpha(settings: RidgeSettings, n_targets: int) -> Any:
    """The alpha that was given, or one to begin with; zero for a solver without a ridge."""
    alpha = 1.0 if settings.automatic else checked_alpha(settings.alpha, n_targets)
    if settings.solver == "auto" or traits_of(settings.solver).ridge:
        return alpha
    if not settings.automatic and (isinstance(alpha, str) or bool(torch.as_tensor(alpha).any())):
        raise InputError(
            f"alpha={settings.alpha!r}: solver={settings.solver!r} has no alpha; its stopping time plays that role. "
            f"Leave out alpha, or pass 0; solver=Flow(t=...) of mercer.solvers sets the time."
        )
    return 0.0


def plan_source(settings: RidgeSettings, source: RowSource, some: Sample) -> RidgePlan:
    """The plan for rows that are read in parts; `some` of them show what the kernel needs to know."""
    alpha = 1.0 if settings.automatic else checked_alpha(settings.alpha, source.n_targets)
    reserved = reserved_bytes(settings.memory_budget, source)
    kernel = resolved_kernel(settings.kernel, some.positive()[0], settings.seed)
    solver = _streamed_solver(settings, alpha, kernel, some)
    device = device_of(settings.device, some.seen)
    solver, reason = _chosen(settings, solver, source.n_rows, source.n_targets, alpha, settings.memory_budget, device)
    if settings.automatic:
        alpha = _automatic(solver, some, settings.memory_budget, device)
    if settings.solver == "auto":
        reason = "chosen because the rows are read in parts"
    settings = replace(settings, client=None)  # a connection is of now and here
    place = place_of(settings, solver, some.seen, settings.memory_budget)
    return RidgePlan(settings, kernel, alpha, solver, reason, place, source.n_rows, reserved)


def place_of(settings: RidgeSettings, solver: str, seen: Seen, budget: Budget) -> Placement:
    """Where and in which precision kernel values are found."""
    dtype = dtype_of(settings.dtype, seen, single=traits_of(solver).iterates)
    return Placement(device_of(settings.device, seen), dtype, budget)


def _automatic(solver: str, sample: Sample, memory_budget: Budget, device: torch.device) -> float | str:
    """What alpha="auto" is for the solver that a number would get.

    Zero for a descent, which rows held out stop; "loo" where the fit itself has a path and there are few rows, or few
    features of the kernel itself; else "auto": the path of a sample.
    """
    traits, n = traits_of(solver), sample.n_positive
    if not traits.ridge or (traits.stops_early and n >= HOLD_OUT_FROM):
        return 0.0
    own = traits.keeps_rows and not traits.exact
    if not traits.path or not (own or few_rows(sample, merge=not traits.exact)):
        return AUTO
    return "loo" if not traits.exact or _path_fits(sample.positive()[0], memory_budget, device) else AUTO


def _path_fits(data: Sample, budget: Budget, device: torch.device) -> bool:
    """Whether an eigendecomposition of all rows, which has a path of alphas, fits the memory."""
    return memory_needed(len(data), SPECTRAL, data.targets.shape[1]) <= resolve_budget(budget, device)


def _chosen(
    settings: RidgeSettings,
    solver: Any,
    n: int,
    n_targets: int,
    alpha: str | float | torch.Tensor,
    budget: Budget,
    device: torch.device,
) -> tuple[str, str]:
    few = settings.n_landmarks, settings.n_features
    return choose(n, n_targets, alpha, solver, budget, device, n_landmarks=few[0], n_features=few[1])


def _few_kinds(data: Sample, settings: RidgeSettings, device: torch.device) -> int | None:
    """The number of different rows where all of them can be landmarks."""
    if data.square:
        return None
    kinds = len(data.positive()[0].kinds)
    most = landmark_count(len(data), None, "nystrom", settings.memory_budget, device)
    return kinds if kinds <= most else None


def own_features(
    kernel: Kernel, data: Sample, budget: Budget, device: torch.device | str = "cpu", most: int | None = None
) -> ExplicitFeatures | None:
    """The features of a kernel that has few of them, at most so many and what memory has room for; else None."""
    if data.square:
        return None
    fitting = math.isqrt(resolve_budget(budget, device) // (8 * int(traits_of("primal").matrices)))
    return ExplicitFeatures.of(kernel, data.rows, fitting if most is None else min(fitting, most))


def _few_features(features: ExplicitFeatures, n: int) -> str:
    return f"chosen because the kernel has {features.n_features:,} features, fewer than the {n:,} rows"


def _streamed_solver(settings: RidgeSettings, alpha: Alpha, kernel: Kernel, some: Sample) -> str:
    if settings.solver == "auto":
        if settings.n_features is not None:
            return "random_features"
        if settings.n_landmarks is None and own_features(kernel, some, settings.memory_budget, most=len(some) - 1):
            return "primal"
        return landmark_solver(settings.n_landmarks or 0, alpha)
    if traits_of(settings.solver).sums_of == "rows":
        raise InputError(
            f"solver={settings.solver!r} needs all rows in memory: pass arrays, or use solver='nystrom', 'falkon', "
            "'random_features' or 'primal' for rows that are read in parts."
        )
    return settings.solver


def continued(plan: RidgePlan, settings: RidgeSettings, sample: Sample) -> RidgePlan:
    """The plan of an earlier fit for more rows, with the alpha that is asked for now."""
    place = place_of(settings, plan.solver, sample.seen, settings.memory_budget)
    if settings.automatic:
        return replace(plan, settings=settings, place=place)
    alpha = checked_alpha(settings.alpha, sample.seen.n_targets)
    return replace(plan, settings=settings, alpha=alpha, place=place, path=None)
