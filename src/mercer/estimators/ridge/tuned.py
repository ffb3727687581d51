"""The plan with the kernel's parameters fitted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mercer.data.sample import Sample
from mercer.estimators.ridge.plan import RidgePlan
from mercer.selection import Tuned, tune_kernel


def tuned(plan: RidgePlan, sample: Sample) -> tuple[RidgePlan, Tuned | None]:
    """The plan with a kernel of smaller leave-one-out error, and the account of it; the same where it was not asked."""
    if not plan.settings.tune:
        return plan, None
    data, settings = sample.positive()[0], plan.settings
    progress = _print_progress if settings.verbose else None
    options: dict[str, Any] = {"seed": settings.seed, "intercept": settings.fit_intercept, "progress": progress}
    found = tune_kernel(plan.kernel, data.rows, data.targets, data.weights, plan.alpha, **options)
    return replace(plan, kernel=found.kernel), found


def _print_progress(iteration: int, error: float) -> None:
    print(f"tuning step {iteration}: relative error {error:.6g}", flush=True)
