"""The squared loss on landmarks is ridge regression: it needs sums over rows alone, which further rows can join."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from mercer.core.errors import InputError
from mercer.data.engines import Engine
from mercer.data.rows import RowSource, signs_of
from mercer.data.sample import Sample
from mercer.estimators.by_loss.fit import Later, LossFit
from mercer.estimators.by_loss.plan import LossPlan, plan_loss
from mercer.estimators.by_loss.problem import few_problem, landmarks_of
from mercer.estimators.by_loss.settings import LossSettings
from mercer.estimators.by_loss.solving import at_best_alpha, scale_of
from mercer.estimators.by_loss.tuned import tuned
from mercer.estimators.common.parts import same_setting
from mercer.estimators.dials import TOL
from mercer.estimators.ridge.few import left_out_of_few, solve_source, with_more
from mercer.estimators.ridge.fit import RidgeFit
from mercer.estimators.ridge.plan import RidgePlan
from mercer.estimators.ridge.settings import RidgeSettings
from mercer.functions.sums import KernelSum
from mercer.selection import AlphaPath, Tuned
from mercer.selection.calibration import Calibration, calibrate

FIXED = ("kernel", "loss", "fit_intercept", "landmarks", "n_landmarks")
"""Settings that stay what they were in the first of several partial fits."""


def solve_squared_source(
    plan: LossPlan, source: RowSource, some: Sample, engine: Engine | None, tuning: Tuned | None
) -> LossFit:
    """Fit to all rows of a source, whose targets are numbers or signs; `some` have numbers or codes."""
    plan, path = _with_alpha(plan, some)
    ridge = solve_source(_ridge(plan, source.n_rows), source, _as_numbers(plan, some), engine)
    return _loss_fit(plan, ridge, path, tuning)


def more_rows(
    begun: LossFit | None, settings: LossSettings, sample: Sample, classes: np.ndarray | None = None
) -> LossFit:
    """A fit to the rows so far and these, with numbers or codes as targets; the first rows choose all that is open."""
    if begun is None:
        plan, tuning = tuned(plan_loss(replace(settings, solver="nystrom"), sample, classes), sample)
        plan, path = _with_alpha(plan, sample)
        return _loss_fit(plan, with_more(None, _ridge(plan, len(sample)), _as_numbers(plan, sample)), path, tuning)
    if begun.running is None and begun.sample is not None:  # a fit to all rows, which it keeps
        first = more_rows(None, replace(begun.plan.settings, alpha=begun.alpha), begun.sample, classes)
        begun = replace(first, path=begun.path)
    if begun.running is None:
        raise InputError(
            "Models fitted by fit() or loaded from a file do not store the sums that partial_fit needs: start from a "
            "new model."
        )
    before = begun.plan.settings
    changed = [name for name in FIXED if not same_setting(getattr(before, name), getattr(settings, name))]
    if changed:
        raise InputError(f"partial_fit cannot continue with another {' and '.join(changed)}: start from a new model.")
    alpha = begun.plan.alpha if isinstance(settings.alpha, str) else settings.alpha
    plan = replace(begun.plan, settings=replace(settings, solver="nystrom"), alpha=float(alpha))
    ridge = with_more(begun.running, _ridge(plan, len(sample)), _as_numbers(plan, sample))
    return _loss_fit(plan, ridge, begun.path, begun.tuning)


def _with_alpha(plan: LossPlan, some: Sample) -> tuple[LossPlan, AlphaPath | None]:
    """The plan with a number for alpha, from some rows where a word asks for it."""
    if not isinstance(plan.alpha, str):
        return plan, None
    problem = few_problem(plan, some, landmarks_of(plan, some.positive()[0]))
    found = at_best_alpha(plan, problem, scale_of(plan, problem.data))
    return replace(plan, alpha=found.alpha), found.path


def _ridge(plan: LossPlan, n_rows: int) -> RidgePlan:
    """The same problem as ridge regression on landmarks."""
    settings = plan.settings
    shared = {f.name: getattr(settings, f.name) for f in fields(RidgeSettings) if hasattr(settings, f.name)}
    known = {"alpha": plan.alpha, "alphas": None, "tune": False, "solver": "nystrom", "method": None}
    ridge = RidgeSettings(**shared | known | {"tol": TOL, "max_iter": None, "n_features": None})
    return RidgePlan(ridge, plan.kernel, plan.alpha, "nystrom", plan.reason, plan.place, n_rows, plan.reserved)


def _as_numbers(plan: LossPlan, sample: Sample) -> Sample:
    """A sample whose labels are signs."""
    if plan.classes is None:
        return sample
    signs = signs_of(sample.targets[:, 0].long(), len(plan.classes))
    return replace(sample, targets=signs, one_target=signs.shape[1] == 1)


def _loss_fit(plan: LossPlan, ridge: RidgeFit, path: AlphaPath | None, tuning: Tuned | None) -> LossFit:
    assert ridge.sums is not None
    assert isinstance(ridge.function, KernelSum)
    plan = replace(plan, reason=ridge.plan.reason, settings=replace(plan.settings, checkpoint=None))
    seen = replace(ridge.seen, n_targets=1, one_target=True)
    objective, alpha = ridge.sums.least(ridge.alpha), float(plan.alpha)
    fit = LossFit(
        plan, seen, ridge.function, ridge.intercept, alpha, objective, ridge.report, path, tuning=tuning, running=ridge
    )
    return fit if plan.classes is None else replace(fit, calibration=Later(_calibration(plan, ridge)))


def _calibration(plan: LossPlan, ridge: RidgeFit) -> Calibration:
    """Probabilities from decisions for some of the rows by fits without them."""
    some, classes = ridge.some, plan.classes
    assert some is not None
    assert classes is not None
    left_out = left_out_of_few(ridge, some)
    decisions = ridge.values(some.rows).reshape(len(some), -1) if left_out is None else left_out.values
    codes = (some.targets[:, 0] > 0).long() if len(classes) == 2 else some.targets.argmax(1)
    return calibrate(decisions.cpu().double(), codes, some.weights)
