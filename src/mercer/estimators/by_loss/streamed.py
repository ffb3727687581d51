"""Fits with any loss to rows that are read in parts: they begin where a sample ends, and pass over all rows."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.core.memory import give_back
from mercer.data.engines import Arrays, Engine, Labels, labels_of
from mercer.data.rows import CodedRows, RowSource, picked, signs_of
from mercer.data.sample import Sample
from mercer.estimators.by_loss.fit import Later, LossFit
from mercer.estimators.by_loss.plan import LossPlan, plan_source
from mercer.estimators.by_loss.probabilities import calibrated, decisions_left_out
from mercer.estimators.by_loss.problem import Problem, few_problem, landmarks_of
from mercer.estimators.by_loss.settings import LossSettings
from mercer.estimators.by_loss.solving import Found, at_alpha, at_best_alpha, loss_report, scale_of
from mercer.estimators.by_loss.squared import solve_squared_source
from mercer.estimators.by_loss.tuned import tuned
from mercer.estimators.common.labels import class_weights, encoded
from mercer.estimators.common.parts import blocks_in_parts, checkpoint_of, rows_to_sample, where_read
from mercer.estimators.common.samples import sampled
from mercer.estimators.dials import BEGUN_TOL, FEW_KINKED
from mercer.losses import Multinomial, PiecewiseLinear, Squared
from mercer.selection import Tuned
from mercer.selection.calibration import Calibration
from mercer.selection.loss_alpha import LeftOut
from mercer.solvers.journal import Journal
from mercer.solvers.loss_sums import Aim
from mercer.solvers.minimise import minimise
from mercer.solvers.passes import Search, kinked_search, minima, smooth_search
from mercer.solvers.row_blocks import total
from mercer.solvers.sampled_curvature import SampledCurvature


def fit_labels(settings: LossSettings, source: RowSource, engine: Engine | None) -> LossFit:
    """A classifier of the rows of a source."""
    labels = labels_of(source, engine)
    encoded(labels.classes)  # refuses what are no labels
    t = len(labels.classes)
    by_class = torch.from_numpy(class_weights(settings.class_weight, labels.classes, np.arange(t), labels.weights))
    weights = labels.weights * by_class
    if int((weights > 0).sum()) < 2:
        one = labels.classes.tolist()[int(weights.argmax())]
        raise InputError(
            f"y has one class, {one!r}, among the rows that have weight: a classifier needs at least two classes."
        )
    coded = CodedRows(source, labels.values, None if bool((by_class == 1).all()) else by_class)
    some = sampled(coded, rows_to_sample(settings, source), settings.seed, engine)
    some = _with_all_classes(some, coded, labels, weights)
    if coded.by_class is not None:
        some = replace(some, units=by_class[some.targets[:, 0].long()])
    plan, tuning = tuned(plan_source(settings, source, some, labels.classes), some)
    joint = t > 2 and settings.losses[0].name == "logistic"
    rows = coded if joint else CodedRows(source, labels.values, coded.by_class, signs=True)
    return solve_source(plan, rows, some, engine, tuning)


def fit_numbers(settings: LossSettings, source: RowSource, engine: Engine | None) -> LossFit:
    """A regression of the rows of a source."""
    if source.n_targets != 1:
        raise InputError(f"y has {source.n_targets} columns; KernelRegressor has one target.")
    some = replace(sampled(source, rows_to_sample(settings, source), settings.seed, engine), one_target=True)
    plan, tuning = tuned(plan_source(settings, source, some), some)
    return solve_source(plan, source, some, engine, tuning)


def solve_source(
    plan: LossPlan, source: RowSource, some: Sample, engine: Engine | None, tuning: Tuned | None = None
) -> LossFit:
    """Fit to all rows of a source, of which there are `some`; targets of the source are those of `aims_of`."""
    if isinstance(plan.settings.losses[0], Squared):
        return solve_squared_source(plan, source, some, engine, tuning)
    started = time.perf_counter()
    data = some.positive()[0]
    centres = landmarks_of(plan, data)
    checkpoint = checkpoint_of(plan.settings, source, centres)
    journal = Journal(checkpoint)
    blocks = blocks_in_parts(plan.settings, centres, source, plan.place, engine, normal_equations=False)
    problem = few_problem(plan, some, centres)
    found = _begun(plan, problem)
    aims = aims_of(plan, found.alpha)
    searches = _searches(plan, problem, aims, found, source.n_rows / len(some))
    basis, left_out = problem.span.basis, _left_out(plan, problem, found, source)
    span_note, problem = problem.span.m, replace(problem, span=None)
    del found.minima[:]
    give_back()
    ended = minima(searches, blocks, basis, journal)
    if checkpoint is not None:
        checkpoint.finish()
    coef = basis @ torch.cat([minimum.value for minimum in ended], dim=1)
    intercept = torch.cat([minimum.intercept for minimum in ended])
    crossed = _crossings(plan, blocks, coef, intercept)
    seen = replace(some.seen, n_rows=source.n_rows, total_weight=blocks.total_weight, one_target=True)
    words = f"{plan.reason}; {where_read(source, engine)}; {len(journal.entries)} passes"
    if span_note < len(basis):
        words += f"; {span_note} of {len(basis)} landmarks are independent to rounding"
    settings = replace(plan.settings, checkpoint=None)
    plan = replace(plan, reason=words, settings=settings)
    report = loss_report(plan, problem, replace(found, minima=ended), time.perf_counter() - started)
    objective = sum(minimum.objective for minimum in ended)
    function, alpha = centres.sum(coef), found.alpha
    fit = LossFit(plan, seen, function, intercept, alpha, objective, report, found.path, None, crossed, tuning=tuning)
    if not plan.calibrates:
        return fit
    return replace(fit, calibration=Later(_calibration(fit, data, left_out)))


def aims_of(plan: LossPlan, alpha: float) -> list[Aim]:
    """The problems of a plan: their predictions side by side are the columns of the model.

    Those of classes are for codes with the multinomial loss, for signs with the others.
    """
    intercept = plan.settings.fit_intercept
    if plan.classes is None:
        return [Aim(loss, alpha, intercept) for loss in plan.losses]
    loss, t = plan.losses[0], len(plan.classes)
    if t > 2 and loss.name == "logistic":
        return [Aim(Multinomial(), alpha, intercept, outputs=t)]
    return [Aim(loss, alpha, intercept, column) for column in range(1 if t == 2 else t)]


def _begun(plan: LossPlan, problem: Problem) -> Found:
    """Alpha, where it is to be chosen, and the minima at it, by the sample alone."""
    if not isinstance(plan.alpha, str):
        return Found(plan.alpha, [])
    few = problem
    if plan.settings.kinked and len(problem.data) > FEW_KINKED:
        drawn = torch.randperm(len(problem.data), generator=torch.Generator().manual_seed(plan.settings.seed))
        few = few_problem(plan, problem.data.take(drawn[:FEW_KINKED]), problem.centres)
    held = plan.reserved + 8 * problem.span.m * (len(problem.data) if problem.span.kept is not None else 0)
    rough = replace(
        plan, place=plan.place.beside(held), settings=replace(plan.settings, tol=max(plan.settings.tol, BEGUN_TOL))
    )
    found = at_best_alpha(rough, few, scale_of(plan, few.data))
    rows = f"alpha was chosen on {len(few.data):,} rows"
    return replace(
        found, left_out=None, minima=[], note=found.note or (rows if len(few.data) < (plan.n_rows or 0) else "")
    )


def _searches(plan: LossPlan, problem: Problem, aims: list[Aim], found: Found, scale: float) -> list[Search]:
    """A search for each problem, from the minimum on the sample with weights that stand for all rows."""
    settings, data, span = plan.settings, problem.data, problem.span
    device = span.device
    targets = data.targets
    if plan.classes is not None and not aims[0].loss.joint:
        targets = signs_of(targets[:, 0].long(), len(plan.classes))
    ones = torch.ones(len(data), dtype=torch.float64) if data.weights is None else data.weights
    weights, targets = (scale * ones).to(device), targets.to(device)
    tell = plan.options()["callback"]
    searches = []
    for aim in aims:
        objective = aim.objective(targets, weights)
        start = minimise(span, objective, tol=max(settings.tol, BEGUN_TOL))
        u, b = start.value, start.intercept
        if isinstance(aim.loss, PiecewiseLinear):
            searches.append(kinked_search(aim, span.mean_diag, u, b, settings.tol, settings.max_iter, tell))
        else:
            curvature = SampledCurvature.at(span, objective, start)
            searches.append(smooth_search(aim, curvature, u, b, settings.tol, settings.max_iter, tell))
    return searches


def _left_out(plan: LossPlan, problem: Problem, found: Found, source: RowSource) -> list[LeftOut] | None:
    """Decisions for rows left out where the sample has all rows; of more rows few coefficients have not learned any."""
    if not plan.calibrates or len(problem.data) < source.n_rows:
        return None
    minima_here = at_alpha(plan, problem, found.alpha).minima
    return decisions_left_out(plan, problem, found.alpha, minima_here)


def _calibration(fit: LossFit, data: Sample, left_out: list[LeftOut] | None) -> Calibration:
    if left_out is None:
        left_out = [LeftOut(fit.values(data.rows).cpu(), "sample")]
    return calibrated(data, left_out)


def _with_all_classes(some: Sample, coded: CodedRows, labels: Labels, weights: Tensor) -> Sample:
    """A sample with a row of each class: one that it lacks gives its first row, for all of its weight."""
    there = some.targets[:, 0][some.positive()[1]] if some.weights is not None else some.targets[:, 0]
    missing = [k for k in range(len(weights)) if weights[k] > 0 and not bool((there == k).any())]
    if not missing:
        return some
    places = labels.first[missing]
    order = places.argsort()
    X, targets, _ = picked(coded, coded.parts(), places[order])
    assert targets is not None
    own = torch.ones(len(some), dtype=torch.float64) if some.weights is None else some.weights
    more = weights[targets[:, 0].long()] * len(some) / coded.n_rows
    rows = replace(some.rows, values=torch.cat([some.rows.values, X.to(some.rows.values)]))
    return replace(
        some, rows=rows, targets=torch.cat([some.targets, targets]), weights=torch.cat([own, more]), one_target=True
    )


def _crossings(plan: LossPlan, blocks: Any, coef: Tensor, intercept: Tensor) -> int:
    """The number of rows at which quantiles cross, in one more pass."""
    if plan.settings.quantiles is None or coef.shape[1] < 2:
        return 0
    return int(total(blocks, _crossed, coef, intercept)["rows"])


def _crossed(blocks: Any, coef: Tensor, intercept: Tensor) -> Arrays:
    count = torch.zeros(1, dtype=torch.float64)
    for block in blocks:
        for K, _, _ in block.parts():
            values = K.to(coef) @ coef + intercept.to(coef)
            count += float((values.diff(dim=1) < 0).any(1).sum())
    return {"rows": count}
