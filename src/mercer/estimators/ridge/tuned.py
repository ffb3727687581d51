"""The plan with the kernel's parameters fitted."""

from __future__ import annotations

from dataclasses import replace

from mercer.data.sample import Sample
from mercer.estimators.common.tuned import tuned_kernel
from mercer.estimators.ridge.plan import RidgePlan
from mercer.selection import Tuned


def tuned(plan: RidgePlan, sample: Sample) -> tuple[RidgePlan, Tuned | None]:
    """The plan with a kernel of smaller leave-one-out error, and the account of it; the same where it was not asked."""
    if not plan.settings.tune:
        return plan, None
    data = sample.positive()[0]
    alpha = "loo" if plan.settings.automatic or not plan.traits.ridge else plan.alpha
    found = tuned_kernel(plan.settings, plan.kernel, data, data.targets, alpha)
    return replace(plan, kernel=found.kernel), found
