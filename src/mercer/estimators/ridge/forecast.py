"""What a ridge regression says of itself and of more rows: diagnostics, learning curves, rows needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from mercer.core.errors import InputError
from mercer.data.sample import Sample
from mercer.estimators.common.forecast import Merged, by_parts
from mercer.estimators.ridge.few import solve_few
from mercer.estimators.ridge.fit import RidgeFit
from mercer.estimators.ridge.full import system_of
from mercer.estimators.ridge.plan import plan_ridge
from mercer.theory import Diagnostics, Forecaster, diagnostics, forecasters
from mercer.theory.dials import MOST_DUPLICATES

TUNED = "the kernel was tuned on these rows, which makes errors of fits to fewer of them a little too small"
ON_FEW = "the fit is on {}, whose spectrum is not that of the kernel"


def ridge_diagnostics(fit: RidgeFit) -> list[Diagnostics]:
    """The diagnostics of each target."""
    problem = _problem(fit, fit.all_rows("diagnostics"))
    alphas = np.broadcast_to(np.atleast_1d(fit.given_alpha), problem.targets.shape[1])
    intercept = fit.plan.settings.fit_intercept
    each = zip(problem.targets.T, alphas, strict=True)
    return [diagnostics(problem.gram, y, float(a), problem.weights, intercept=intercept) for y, a in each]


def ridge_forecasters(fit: RidgeFit, rows: Sample | None = None) -> list[Forecaster]:
    """The forecaster of each target; `rows` are those that a fit on few functions was fitted to."""
    if fit.plan.traits.sums_of != "rows":
        return _of_few(fit, rows)
    if rows is not None:
        raise InputError("The model stores its training rows: call this without X and y.")
    problem, settings = _problem(fit, fit.all_rows("A forecast"), MOST_DUPLICATES), fit.plan.settings
    return forecasters(
        problem.gram,
        list(problem.targets.T),
        problem.weights,
        intercept=settings.fit_intercept,
        duplicates=problem.duplicates,
        alone="" if fit.tuning is None else TUNED,
        random_state=settings.seed,
    )


def _problem(fit: RidgeFit, sample: Sample, most: float = 1.0) -> Merged:
    def gram(data: Sample) -> Any:
        return system_of(fit.plan, replace(data, weights=None), torch.float64).plain

    return Merged.of(sample, gram, fit.plan.place, most)


def _of_few(fit: RidgeFit, rows: Sample | None) -> list[Forecaster]:
    """By fits to parts of the rows, on as many landmarks or features, each with alpha by leave-one-out."""
    what = fit.plan.traits.sums_of
    if rows is None:
        raise InputError(
            f"The model (solver={fit.report.solver!r}) does not store its training rows: pass them again, "
            "learning_curve(X=X, y=y)."
        )
    solver = "nystrom" if what == "landmarks" else fit.plan.solver
    settings = replace(fit.plan.settings, solver=solver, method=None, checkpoint=None, tune=False)
    given = replace(settings, kernel=fit.plan.kernel, alpha="loo", alphas=None)

    def refit(sample: Sample) -> RidgeFit:
        return solve_few(plan_ridge(given, sample), sample)

    few = what + ("" if fit.tuning is None else ", and the kernel was tuned on these rows")
    rows = rows.positive()[0]
    left_out = refit(rows).loo
    return by_parts(lambda some: refit(some).values, rows, rows.targets, left_out, ON_FEW.format(few), given.seed)
