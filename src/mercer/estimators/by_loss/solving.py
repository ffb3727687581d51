"""A plan and a sample become a fit."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.core.memory import give_back, resolve_budget
from mercer.core.results import SolverReport
from mercer.data.sample import Sample, spread
from mercer.estimators.by_loss.fit import Later, LossFit
from mercer.estimators.by_loss.plan import LossPlan, by_spectrum
from mercer.estimators.by_loss.probabilities import calibrated, decisions_left_out
from mercer.estimators.by_loss.problem import Problem, objectives_of, problem_of
from mercer.estimators.by_loss.quantiles import crossings
from mercer.estimators.dials import FEW_PATH_ROWS, FEWEST_PATH_ROWS, PATH_ROWS, ROUGH_TOL
from mercer.losses import LOSSES
from mercer.operators.placement import Placement
from mercer.selection import AlphaPath, Tuned
from mercer.selection.calibration import Calibration
from mercer.selection.dials import PATH_MATRICES
from mercer.selection.loss_alpha import LeftOut, loss_alphas, select_loss_alpha, some_of
from mercer.selection.spectral_path import Spectral, select_alpha_of_spectrum
from mercer.solvers.few_span import FewSpan
from mercer.solvers.full_span import FullSpan
from mercer.solvers.minimise import minimise
from mercer.solvers.newton import Minimum
from mercer.solvers.objective import Known
from mercer.solvers.scaling import powers_of_two


@dataclass(frozen=True, eq=False)
class Found:
    """The minima at an alpha, and what had to be made to choose it."""

    alpha: float
    minima: list[Minimum]
    path: AlphaPath | None = None
    left_out: list[LeftOut] | None = None
    note: str = ""


def solve_loss(plan: LossPlan, sample: Sample, tuning: Tuned | None = None) -> LossFit:
    """Fit all columns to the rows of the sample; those without weight get the coefficient zero."""
    started = time.perf_counter()
    if plan.keeps_rows:
        sample = replace(sample, rows=sample.rows.owned())
    problem = problem_of(plan, sample)
    scale = scale_of(plan, problem.data)
    found = at_best_alpha(plan, problem, scale) if isinstance(plan.alpha, str) else at_alpha(plan, problem, plan.alpha)
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
        loss_report(plan, problem, found, time.perf_counter() - started),
        found.path,
        sample if plan.keeps_rows else None,
        _crossings(plan, found.minima, scale),
        Later(_calibration(plan, problem, found)),
        tuning=tuning,
        out=found.left_out if plan.keeps_rows else None,
    )


def at_alpha(plan: LossPlan, problem: Problem, alpha: float, starts: Sequence[Known | Minimum] = ()) -> Found:
    """The minima at an alpha that is given, from functions nearby where some are known."""
    pairs, options = zip_longest(problem.at(alpha), starts), plan.options()
    return Found(alpha, [minimise(problem.span, objective, start, **options) for objective, start in pairs])


def at_best_alpha(plan: LossPlan, problem: Problem, scale: float) -> Found:
    """The minima at the alpha of least loss at rows left out."""
    kinked, how = plan.settings.kinked, str(plan.alpha)
    if by_spectrum(plan):
        return _at_spectral_alpha(plan, problem)
    options = plan.options(tell=False)
    if kinked:
        options["tol"] = max(options["tol"], ROUGH_TOL)
    alphas = loss_alphas(problem.span, scale or 1.0, coarse=kinked)
    path, minima, out = select_loss_alpha(problem.span, problem.objectives, lambda: problem.folds, options, alphas, how)
    path = replace(path, measure=plan.settings.measure)
    alpha = float(path.alpha[0])
    if not kinked:
        return Found(alpha, minima, path, None if how == "gcv" else out)
    return replace(at_alpha(plan, problem, alpha, minima), path=path)


def _at_spectral_alpha(plan: LossPlan, problem: Problem) -> Found:
    """The minima at the alpha that some rows choose, by the eigenvectors of their kernel."""
    span = problem.span
    if isinstance(span, FewSpan) and span.spare < PATH_MATRICES * 8 * FEW_PATH_ROWS * span.m:
        span.let_go()
    path, starts, note = _spectral_path(plan, problem)
    give_back()
    if isinstance(span, FewSpan):
        span.keep()
    found = at_alpha(plan, problem, float(path.alpha[0]), starts)
    return replace(found, path=replace(path, measure=plan.settings.measure), note=note)


def _spectral_path(plan: LossPlan, problem: Problem) -> tuple[AlphaPath, list[Known], str]:
    """The path, functions near the minima at its best alpha, and a word on the rows that were looked at."""
    data, cpu = problem.data, torch.device("cpu")
    index = some_of(data.rows, data.targets, _path_rows(plan, problem.span))
    part = data if len(index) == len(data) else data.take(index)
    objectives = problem.objectives if part is data and plan.place.device == cpu else objectives_of(plan, part, cpu)
    spectral = _spectral(plan, problem, part, replace(plan.place, device=cpu))
    path, thetas = select_alpha_of_spectrum(spectral, objectives, loss_alphas(problem.span))
    starts = [_known(problem, spectral, index, theta) for theta in thetas]
    return path, starts, "" if len(part) == len(data) else f"alpha was chosen on {len(part):,} rows"


def _spectral(plan: LossPlan, problem: Problem, part: Sample, place: Placement) -> Spectral:
    """The functions of the problem by their values at some rows."""
    span, intercept = problem.span, plan.settings.fit_intercept
    if isinstance(span, FewSpan):
        values = place.matrix(plan.kernel, part.rows, problem.centres.points)
        return Spectral.of_features(values @ span.basis.cpu(), part.weights, intercept)
    known = span.matrix if part is problem.data else None
    matrix = place.matrix(plan.kernel, part.rows) if known is None else known.to("cpu", torch.float64, copy=True)
    return Spectral.of_matrix(matrix, part.weights, intercept)


def _known(problem: Problem, spectral: Spectral, index: Tensor, theta: Tensor) -> Known:
    """A function by its eigenvectors at some rows as one of the span."""
    c = spectral.coefficients(theta).to(problem.span.device)
    c = c if spectral.turn is not None else spread(c, index, problem.span.n)
    plain = problem.span.values(c)
    b = torch.zeros_like(plain[0])
    if spectral.intercept:
        b = (spectral.at(theta).to(plain) - plain[index.to(plain.device)]).mean(0)
    return Known(c, b, plain + b)


def _path_rows(plan: LossPlan, span: FullSpan | FewSpan) -> int:
    """Rows on which alphas are compared: as many as are worth their time, and fit beside what the span stores."""
    on_cpu = torch.device(span.device).type == "cpu"
    if isinstance(span, FewSpan):
        spare = span.spare if on_cpu else resolve_budget(plan.place.memory_budget, "cpu")
        return min(FEW_PATH_ROWS, max(FEWEST_PATH_ROWS, int(spare / (PATH_MATRICES * 8 * max(1, span.m)))))
    spare = span.room if on_cpu else resolve_budget(plan.place.memory_budget, "cpu")
    return min(PATH_ROWS, max(FEWEST_PATH_ROWS, math.isqrt(int(max(0, spare) / (PATH_MATRICES * 8)))))


def scale_of(plan: LossPlan, data: Sample) -> float:
    """The scale of alpha: that of targets where the loss has their units."""
    if plan.classes is not None or not plan.settings.kinked:
        return 1.0
    y = data.targets[:, 0]
    unit = powers_of_two(y.unsqueeze(1))  # squares of what is beyond 1e154 are no numbers
    y = y / unit
    w = torch.ones_like(y) if data.weights is None else data.weights
    w = w / w.sum()
    return float((w @ (y - w @ y).square()).sqrt() * unit)


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


def loss_report(plan: LossPlan, problem: Problem, found: Found, seconds: float) -> SolverReport:
    """The account of the worst of several minima, with the steps of all."""
    worst = max(found.minima, key=lambda minimum: (not minimum.converged, minimum.residual))
    own = not worst.converged and any(type(loss) not in LOSSES.values() for loss in plan.settings.losses)
    hint = "if the loss has kinks, derive it from mercer.losses.PiecewiseLinear" if own else ""
    words = "; ".join(filter(None, [plan.reason, problem.centres.note, found.note, worst.reason, hint]))
    return worst.report(reason=words, seconds=seconds, iterations=sum(minimum.iterations for minimum in found.minima))
