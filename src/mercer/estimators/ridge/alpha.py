"""Plans with the kernel tuned and, for alpha="auto" on many rows, alpha from a sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from mercer.core.memory import resolve_budget
from mercer.data.rows import RowSource
from mercer.data.sample import Sample
from mercer.estimators.common.alpha import AUTO
from mercer.estimators.common.alpha_sample import alpha_sample
from mercer.estimators.ridge.plan import RidgePlan, plan_ridge, plan_source
from mercer.estimators.ridge.settings import RidgeSettings
from mercer.estimators.ridge.tuned import tuned
from mercer.selection import AlphaPath, Tuned, select_alpha
from mercer.solvers import Eigh
from mercer.solvers.choose import SPECTRAL, most_rows
from mercer.solvers.ridge_system import RidgeSystem

Again = Callable[[RidgeSettings], RidgePlan]
"""The plan for other settings and the same rows."""


def planned(settings: RidgeSettings, sample: Sample) -> tuple[RidgePlan, Tuned | None]:
    """The plan for rows in memory."""
    plan, tuning = tuned(plan_ridge(settings, sample), sample)
    return _with_alpha(plan, sample, lambda known: plan_ridge(known, sample)), tuning


def planned_source(settings: RidgeSettings, source: RowSource, some: Sample) -> tuple[RidgePlan, Tuned | None]:
    """The plan for rows that are read in parts, of which there are `some`."""
    plan, tuning = tuned(plan_source(settings, source, some), some)
    again: Again = lambda known: plan_source(known, source, some)  # noqa: E731
    return _with_alpha(plan, some, again, f"{source.n_rows:,} rows"), tuning


def planned_first(settings: RidgeSettings, sample: Sample) -> RidgePlan:
    """The plan that later rows go on with: alpha and all else from these rows."""
    plan = tuned(plan_ridge(settings, sample), sample)[0]
    plan = replace(plan, alpha=AUTO) if settings.automatic else plan
    return _with_alpha(plan, sample, lambda known: plan_ridge(known, sample), f"the first {len(sample):,} rows")


def _with_alpha(plan: RidgePlan, sample: Sample, again: Again, origin: str | None = None) -> RidgePlan:
    """The plan that the alpha of a sample, given as a number, would have; the same where alpha needs no sample."""
    if not isinstance(plan.alpha, str) or plan.alpha != AUTO:
        return plan
    path = path_of_sample(plan, sample, origin)
    alpha = float(path.alpha[0]) if len(path.alpha) == 1 else path.alpha
    made = again(replace(plan.settings, kernel=plan.kernel, alpha=alpha))
    return replace(made, settings=replace(made.settings, kernel=plan.settings.kernel, alpha=AUTO), path=path)


def path_of_sample(plan: RidgePlan, sample: Sample, origin: str | None = None) -> AlphaPath:
    """The path of alphas by leave-one-out on some distinct rows, all of them where there are few."""
    settings, place = plan.settings, plan.place
    budget = resolve_budget(place.memory_budget, place.device)
    rows, count = alpha_sample(sample, most_rows(SPECTRAL, sample.targets.shape[1], budget), settings.seed)
    system = RidgeSystem.of(rows, plan.kernel, place, torch.float64, intercept=settings.fit_intercept)
    spectrum = Eigh().prepare(system.operator)
    path = select_alpha(spectrum, rows.targets, rows.weights, settings.alphas, "loo", place.memory_budget)
    words = origin or f"{count:,} distinct rows"
    return replace(path, rows=f"on {len(rows):,} of {words}")
