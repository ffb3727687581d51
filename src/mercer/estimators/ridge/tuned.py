"""The plan with the kernel's parameters fitted."""

from __future__ import annotations

from dataclasses import replace

from mercer.data.sample import Sample
from mercer.estimators.ridge.plan import RidgePlan
from mercer.selection import Tuned, tune_kernel


def tuned(plan: RidgePlan, sample: Sample) -> tuple[RidgePlan, Tuned | None]:
    """The plan with a kernel of smaller leave-one-out error, and the account of it; the same where it was not asked."""
    if not plan.settings.tune:
        return plan, None
    data, progress = sample.positive()[0], _print_progress if plan.settings.verbose else None
    found = tune_kernel(
        plan.kernel, data.rows, data.targets, data.weights, plan.alpha, seed=plan.settings.seed, progress=progress
    )
    return replace(plan, kernel=found.kernel), found


def _print_progress(iteration: int, error: float) -> None:
    print(f"tuning step {iteration}: relative error {error:.6g}", flush=True)
