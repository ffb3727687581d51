"""A plan and a sample become a fit."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import torch

from mercer.core.errors import InputError
from mercer.core.results import SolverReport
from mercer.data.sample import Sample
from mercer.estimators.by_loss.fit import Later, LossFit
from mercer.estimators.by_loss.plan import LossPlan
from mercer.estimators.by_loss.probabilities import calibrated, decisions_left_out
from mercer.estimators.by_loss.problem import Problem, objectives_of, problem_of
from mercer.estimators.by_loss.quantiles import crossings
from mercer.losses import LOSSES
from mercer.selection import AlphaPath, Tuned
from mercer.selection.calibration import Calibration
from mercer.selection.loss_alpha import LeftOut, loss_alphas, select_loss_alpha
from mercer.solvers.minimise import minimise
from mercer.solvers.newton import Minimum
from mercer.solvers.objective import Objective

ROUGH = 1e-4
"""The tolerance of fits to folds that compare alphas in whole decades."""


@dataclass(frozen=True, eq=False)
class Found:
    """The minima at an alpha, and what had to be made to choose it."""

    alpha: float
    minima: list[Minimum]
    path: AlphaPath | None = None
    left_out: list[LeftOut] | None = None


def solve_loss(plan: LossPlan, tuning: Tuned | None, sample: Sample) -> LossFit:
    """Fit all columns to the rows of the sample; those without weight get the coefficient zero."""
    started = time.perf_counter()
    if plan.keeps_rows:
        sample = replace(sample, rows=sample.rows.owned())
    problem = problem_of(plan, sample)
    scale = _scale(plan, problem.data)
    found = _at_best_alpha(plan, problem, scale) if isinstance(plan.alpha, str) else _at(plan, problem, plan.alpha)
    objective = sum(minimum.objective for minimum in found.minima)
    if not math.isfinite(objective):
        name = plan.settings.losses[0].name
        raise InputError(f"The loss {name!r} is {objective} at the minimum found: it must be finite.")
    return LossFit(
        plan,
        sample.seen,
        problem.centres.sum(problem.coefficients(found.minima)),
        torch.cat([minimum.intercept for minimum in found.minima]),
        found.alpha,
        objective,
        _report(plan, problem, found.minima, time.perf_counter() - started),
        found.path,
        sample if plan.keeps_rows else None,
        _crossings(plan, found.minima, scale),
        Later(_calibration(plan, problem, found)),
        tuning=tuning,
    )


def _at(plan: LossPlan, problem: Problem, alpha: float) -> Found:
    """The minima at an alpha that is given."""
    objectives = _checked(objectives_of(plan, problem.data, alpha))
    return Found(alpha, [minimise(problem.span, objective, **plan.options()) for objective in objectives])


def _at_best_alpha(plan: LossPlan, problem: Problem, scale: float) -> Found:
    """The minima at the alpha of least loss at rows left out."""
    objectives, kinked = _checked(objectives_of(plan, problem.data, 1.0)), plan.settings.kinked
    how = str(plan.alpha)
    options = plan.options(tell=False)
    if kinked:
        options["tol"] = max(options["tol"], ROUGH)
    alphas = loss_alphas(problem.span, scale or 1.0, coarse=kinked)
    path, minima, out = select_loss_alpha(problem.span, objectives, problem.folds, options, alphas, how)
    path = replace(path, measure=plan.settings.measure)
    alpha = float(path.alpha[0])
    if not kinked:
        return Found(alpha, minima, path, None if how == "gcv" else out)
    pairs = zip(objectives_of(plan, problem.data, alpha), minima, strict=True)
    return Found(
        alpha, [minimise(problem.span, objective, rough, **plan.options()) for objective, rough in pairs], path
    )


def _checked(objectives: list[Objective]) -> list[Objective]:
    for objective in objectives:
        objective.check_loss()
    return objectives


def _scale(plan: LossPlan, data: Sample) -> float:
    """The scale of alpha: that of targets where the loss has their units."""
    if plan.classes is not None or not plan.settings.kinked:
        return 1.0
    if data.weights is None:
        return float(data.targets.std(correction=0))
    w, y = data.weights / data.weights.sum(), data.targets[:, 0]
    return float((w @ (y - w @ y).square()).sqrt())


def _crossings(plan: LossPlan, minima: list[Minimum], scale: float) -> int:
    """The number of rows at which quantiles cross."""
    if plan.settings.quantiles is None:
        return 0
    return crossings(torch.cat([found.fitted for found in minima], dim=1), scale)


def _calibration(plan: LossPlan, problem: Problem, found: Found) -> Calibration | None:
    """The calibration, where decisions for rows left out are known or the rows will soon be gone; else it can wait."""
    if not plan.calibrates or (found.left_out is None and plan.keeps_rows):
        return None
    out = found.left_out or decisions_left_out(plan, problem, found.alpha, found.minima)
    return calibrated(problem.data, out)


def _report(plan: LossPlan, problem: Problem, minima: list[Minimum], seconds: float) -> SolverReport:
    """The account of the worst of several minima, with the steps of all."""
    worst = max(minima, key=lambda found: (not found.converged, found.residual))
    own = not worst.converged and any(type(loss) not in LOSSES.values() for loss in plan.settings.losses)
    hint = "if the loss has kinks, derive it from mercer.losses.PiecewiseLinear" if own else ""
    words = "; ".join(filter(None, [plan.reason, problem.centres.note, worst.reason, hint]))
    return worst.report(reason=words, seconds=seconds, iterations=sum(found.iterations for found in minima))
