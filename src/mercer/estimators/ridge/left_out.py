"""What a full ridge regression says of its training rows: leave-one-out predictions and label weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points, checked_values
from mercer.core.errors import InputError
from mercer.core.memory import require, resolve_budget
from mercer.core.results import Solution
from mercer.estimators.ridge.fit import RidgeFit
from mercer.estimators.ridge.full import solve_rows, system_of, with_idle
from mercer.estimators.ridge.primal import left_out_predictions
from mercer.selection import loo_predictions
from mercer.solvers import Cholesky, Eigh
from mercer.solvers.choose import memory_needed
from mercer.solvers.traits import OWN_FEATURES


def with_left_out(fit: RidgeFit) -> RidgeFit:
    """The fit with the prediction for each row by the fit without it; found again when the fit did not need them."""
    if fit.loo is not None:
        return fit
    sample = fit.all_rows("leave-one-out")
    alone = sample.positive()[0]
    if fit.plan.settings.fit_intercept and len(alone) == 1 and (alone.weights is None or float(alone.weights[0]) <= 1):
        raise InputError("Leave-one-out needs at least two rows.")
    found = left_out_predictions(fit) if fit.plan.traits.sums_of == OWN_FEATURES else _factorised(fit)
    return replace(fit, loo=with_idle(fit, sample, found))


def _factorised(fit: RidgeFit) -> Tensor:
    plan = fit.plan
    system = system_of(plan, fit.all_rows("leave-one-out"))
    alpha: Any = fit.alpha if isinstance(fit.alpha, float) else torch.as_tensor(fit.given_alpha)
    direct = isinstance(alpha, float) and alpha > 0
    n, t = system.data.targets.shape
    require(
        memory_needed(n, "cholesky" if direct else "eigh", t),
        resolve_budget(plan.place.memory_budget, plan.place.device),
        f"leave-one-out of {n:,} rows, which factorises their Gram matrix,",
        "Use a larger memory_budget, or rows that were held out: plot(X, y).",
    )
    prepared = Cholesky().prepare(system.operator, alpha) if direct else Eigh().prepare(system.operator)
    return system.spread(loo_predictions(prepared, system.data.targets, system.data.weights, alpha))


def label_weights(fit: RidgeFit, rows: Points) -> tuple[Tensor, list[Solution]]:
    """The weights of the training labels in each prediction, (m, n) or with one alpha per target (m, n, t), and how
    they were found.
    """
    plan, sample = fit.plan, fit.all_rows("label_weights")
    cross = plan.place.gram(plan.kernel, rows, sample.rows).dense()
    checked_values(torch.as_tensor(cross), "Kernel values")
    system = system_of(plan, sample)
    budget = resolve_budget(plan.place.memory_budget, plan.place.device)
    primal = plan.traits.sums_of == OWN_FEATURES
    if primal or (plan.traits.iterates and memory_needed(len(sample), "cholesky", len(cross)) <= budget):
        settings, positive = replace(plan.settings, method=None), bool(np.all(np.asarray(fit.given_alpha) > 0))
        plan = replace(plan, settings=settings, solver="cholesky" if positive else "eigh")
        system = system_of(plan, sample, torch.float64)
    rhs = system.label_sides(cross)
    alphas = np.atleast_1d(fit.given_alpha).tolist()
    solutions = [solve_rows(plan, sample, system, rhs, alpha) for alpha in alphas]
    each = [system.label_weights(solution.value).T for solution in solutions]
    return (each[0] if isinstance(fit.given_alpha, float) else torch.stack(each, dim=2)), solutions
