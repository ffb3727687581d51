"""Ridge regression with a coefficient for every row."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from mercer.core.memory import resolve_budget
from mercer.core.results import Solution
from mercer.data.given import Alpha
from mercer.data.sample import Sample
from mercer.estimators.dials import EVALUATED_ONCE
from mercer.estimators.ridge.fit import RidgeFit
from mercer.estimators.ridge.plan import RidgePlan
from mercer.functions.sums import KernelSum
from mercer.kernels.objects import is_unproven
from mercer.selection import Tuned, loo_predictions, select_alpha
from mercer.solvers import Eigh
from mercer.solvers.error_bound import Moments, far_words, row_bound, too_far
from mercer.solvers.flow import FlowSolution
from mercer.solvers.registry import options_of
from mercer.solvers.ridge_system import RidgeSystem
from mercer.solvers.semidefinite import require_semidefinite
from mercer.solvers.system import near_one


def solve_full(plan: RidgePlan, sample: Sample, tuning: Tuned | None = None) -> RidgeFit:
    """Solve the full system over all rows of the sample; those without weight get the coefficient zero."""
    started = time.perf_counter()
    sample = replace(sample, rows=sample.rows.owned())
    system, note = system_of(plan, sample), ""
    if is_unproven(plan.kernel):
        system, note = _looked_at(plan, system, sample)
    elif plan.traits.iterates:
        system = _kept_where_small(plan, system)
    alpha, path, loo, inverse = plan.alpha, plan.path, None, None
    if isinstance(alpha, str):
        spectrum = Eigh().prepare(system.operator)
        some, settings = system.data, plan.settings
        path = select_alpha(spectrum, some.targets, some.weights, settings.alphas, alpha, plan.place.memory_budget)
        alpha, inverse = path.alpha, spectrum.inverse(path.alpha)
        loo = system.spread(loo_predictions(inverse, some.targets, some.weights))
    accurate = _accurate(plan, sample, system)
    if inverse is not None and plan.traits.spectral:
        solution = inverse.solve(system.rhs)
    else:
        solution = _solved(plan, system, accurate, system.rhs, alpha)
    solution = _judged(solution, system, plan.tol)
    constant, coef = accurate.constant(solution.value), system.coefficients(solution.value)
    function = KernelSum(plan.kernel, sample.rows, coef.contiguous())
    reason = "; ".join(filter(None, [plan.reason, note, solution.reason]))
    report = solution.report(solver=plan.solver, reason=reason, seconds=time.perf_counter() - started)
    fit = RidgeFit(plan, sample.seen, function, constant, alpha, report, path, tuning, sample, loo)
    if isinstance(solution, FlowSolution):
        fit = replace(fit, stop=solution.stop, flowing=solution.flowing)
    return fit if loo is None else replace(fit, loo=with_idle(fit, sample, loo))


def with_idle(fit: RidgeFit, sample: Sample, loo: Tensor) -> Tensor:
    """Leave-one-out predictions with those of rows without weight, which the fit never used: the predictions."""
    if sample.weights is None or bool((sample.weights > 0).all()):
        return loo
    idle = (sample.weights == 0).nonzero().squeeze(1)
    loo[idle] = fit.values(sample.rows.take(idle)).reshape(len(idle), -1).to(loo)
    return loo


def system_of(plan: RidgePlan, sample: Sample, dtype: torch.dtype | None = None) -> RidgeSystem:
    """The linear system of the rows with weight."""
    options = {"intercept": plan.settings.fit_intercept, "singular": plan.traits.stops_early}
    return RidgeSystem.of(sample, plan.kernel, plan.place, dtype, **options)


def solve_rows(plan: RidgePlan, sample: Sample, system: RidgeSystem, rhs: Tensor, alpha: Alpha) -> Solution:
    """Solve the full system by the solver of the plan."""
    return _solved(plan, system, _accurate(plan, sample, system), rhs, alpha)


def _solved(plan: RidgePlan, system: RidgeSystem, accurate: RidgeSystem, rhs: Tensor, alpha: Alpha) -> Solution:
    more: dict[str, Any] = {} if accurate is system else {"accurate": accurate.operator}
    if "total_weight" in options_of(plan.solver):
        more["total_weight"] = system.data.seen.total_weight
    result: Solution = plan.ready(**more).solve(system.operator, rhs, alpha)
    return result


def _accurate(plan: RidgePlan, sample: Sample, system: RidgeSystem) -> RidgeSystem:
    """The system with float64 products, where the solver goes on with these when float32 is too coarse."""
    rounded = plan.settings.dtype == "auto" and system.operator.dtype == torch.float32
    takes = rounded and "accurate" in options_of(plan.solver)
    return system_of(plan, sample, torch.float64) if takes else system


def _judged(solution: Solution, system: RidgeSystem, tol: float) -> Solution:
    """A solution with a bound of its error at the rows; one that may be too far off has not converged."""
    if solution.missed is None:
        return solution
    targets, _ = near_one(system.targets)
    bound = row_bound(Moments.of(targets, system.data.weights), solution.missed)
    if not too_far(bound, tol):
        return replace(solution, error_bound=bound)
    words = "; ".join(filter(None, [solution.reason, far_words(bound)]))
    return replace(solution, error_bound=bound, converged=False, reason=words)


def _kept_where_small(plan: RidgePlan, system: RidgeSystem) -> RidgeSystem:
    """The system with a matrix that is evaluated once, where it is no larger than a tile and fits the budget."""
    place, matrix = plan.place, 8 * len(system.data) ** 2
    if matrix > EVALUATED_ONCE or 2 * matrix > resolve_budget(place.memory_budget, place.device):
        return system
    return system.stored()


def _looked_at(plan: RidgePlan, system: RidgeSystem, sample: Sample) -> tuple[RidgeSystem, str]:
    """The system of a kernel that users bring, after a test that it is positive semi-definite, and what to say.

    The test evaluates the whole matrix. Solvers that would evaluate it again and again are given it, where there is
    room for another one.
    """
    n, place = len(system.data), plan.place
    budget, matrix = resolve_budget(place.memory_budget, place.device), 8 * n * n
    if matrix > budget:
        return system, "the kernel was not tested for positive semi-definiteness: its matrix does not fit"
    if plan.traits.iterates and 2 * matrix <= budget:
        system = system.stored()
    require_semidefinite(system.plain, sample.seen.dtype)
    return system, ""
