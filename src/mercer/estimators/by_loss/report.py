"""The reports of KernelClassifier and KernelRegressor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import torch

from mercer.core.errors import NotPositiveDefiniteError
from mercer.core.report import Report, make_report
from mercer.data.sample import Sample
from mercer.estimators.by_loss.fit import LossFit
from mercer.estimators.by_loss.intervals import left_out_predictions
from mercer.estimators.by_loss.probabilities import left_out_of, probabilities
from mercer.estimators.by_loss.solving import solve_loss
from mercer.estimators.common.account import (
    Account,
    classification_account,
    edge_of,
    path_account,
    quantile_account,
    regression_account,
    rows_account,
    some_of,
)
from mercer.estimators.common.tuned import tuning_text
from mercer.estimators.dials import FEWEST_LEFT, MOST_CLASSES, MOST_JUDGED
from mercer.kernels.shown import kernel_text
from mercer.losses import Loss
from mercer.selection.left_out import LeftOutPredictions

CRITERIA = {
    "loo": "approximate leave-one-out",
    "gcv": "generalised approximate cross-validation",
    "folds": "five folds",
}


def classifier_report(fit: LossFit, n_features: int | None) -> Report:
    """What was fitted, how, and what to worry about."""
    lines, classes = _first_lines(fit, n_features), fit.plan.classes
    assert classes is not None
    named = ", ".join(map(str, classes[:MOST_CLASSES])) + (", ..." if len(classes) > MOST_CLASSES else "")
    lines.insert(1, ("classes", named))
    account = _or_of_path(_classes_account, fit)
    lines += [*account.lines, ("solver", str(fit.report))]
    return make_report("Kernel classification", lines, [*_concerns(fit), *account.concerns])


def regressor_report(fit: LossFit, n_features: int | None) -> Report:
    """What was fitted, how, and what to worry about."""
    lines, concerns = _first_lines(fit, n_features), _concerns(fit)
    levels, crossed = fit.plan.settings.quantiles, fit.crossings
    if levels is not None:
        lines.append(("quantiles", ", ".join(f"{q:g}" for q in levels)))
        lines.append(("crossings", f"{crossed:,} of {fit.seen.n_rows:,} training rows before sorting"))
        if crossed:
            concerns.append(f"quantiles crossed at {crossed:,} training rows; predictions are sorted, so none do")
    account = _or_of_path(_numbers_account, fit)
    lines += [*account.lines, ("solver", str(fit.report))]
    return make_report("Kernel regression", lines, [*concerns, *account.concerns])


def _or_of_path(account: Callable[[LossFit], Account], fit: LossFit) -> Account:
    """What rows left out say, or the path where systems without them are lost in rounding."""
    try:
        return account(fit)
    except NotPositiveDefiniteError:
        return path_account(fit.path)


def _numbers_account(fit: LossFit) -> Account:
    """How good a regression is at rows left out, and what these rows say."""
    if fit.sample is None:
        return path_account(fit.path)
    sample, which = some_of(fit.sample, MOST_JUDGED, MOST_JUDGED)
    left_out = _left_out(fit, sample, which)
    middle = left_out.values.shape[1] // 2
    values = left_out.values[:, middle : middle + 1]
    settings = fit.plan.settings
    if settings.quantiles is None:
        judged = LeftOutPredictions(values, left_out.targets, left_out.weights, left_out.how)
        found = regression_account(sample, judged, intercept=settings.fit_intercept, given=fit.path is None)
    else:
        found = quantile_account(sample, left_out, settings.quantiles)
    rows = rows_account(sample, fit.plan.kernel, fit.plan.place, found.skill)
    return found.with_concerns([*rows, *edge_of(fit.path)])


def _left_out(fit: LossFit, sample: Sample, which: str) -> LeftOutPredictions:
    """Predictions for rows left out: of the fit itself, else of one with its kernel and alpha to these rows alone."""
    if not which and fit.order is None:
        return left_out_predictions(replace(fit, order=None))
    plan = replace(fit.plan, alpha=fit.alpha, solver="dense")
    found = left_out_predictions(solve_loss(plan, sample))
    return replace(found, how=found.how + which)


def _classes_account(fit: LossFit) -> Account:
    """How good a classification is at rows left out, and what these rows say."""
    plan, classes = fit.plan, fit.plan.classes
    if fit.sample is None or classes is None:
        return path_account(fit.path)
    known_out, most = fit.out, max(FEWEST_LEFT, MOST_JUDGED // (len(classes) // 2))
    sample, which = some_of(fit.sample, max(most, len(fit.sample) * (known_out is not None)), most)
    if known_out is None:
        judged = solve_loss(replace(plan, alpha=fit.alpha, solver="dense"), sample) if which else fit
        assert judged.sample is not None
        known_out = left_out_of(judged, judged.sample)
    decisions = torch.cat([part.fitted for part in known_out], dim=1).cpu()
    own, how = probabilities(fit, decisions), f"{CRITERIA[known_out[0].how]}{which}"
    found = classification_account(sample, classes, own, how, given=fit.path is None)
    rows = rows_account(sample, plan.kernel, plan.place, found.skill, labels=True)
    return found.with_concerns([*rows, *edge_of(fit.path)])


def _first_lines(fit: LossFit, n_features: int | None) -> list[tuple[str, object]]:
    settings, path, n_rows = fit.plan.settings, fit.path, fit.seen.n_rows
    size = f"{n_rows:,} rows"
    if n_features is not None:
        size += f", {n_features} feature{'s' * (n_features != 1)}"
    exact = path is not None and path.criterion == "loo" and settings.losses[0].quadratic
    how = "" if path is None else "exact leave-one-out" if exact else CRITERIA[path.criterion]
    chosen = "given" if path is None else f"by {how} over {len(path.alphas)} values"
    lines: list[tuple[str, object]] = [
        ("data", size),
        ("kernel", kernel_text(fit.plan.kernel, None if fit.tuning is not None else settings.kernel)),
        ("loss", _loss_text(fit)),
        ("alpha", f"{fit.alpha:.4g} ({chosen})"),
        ("objective", f"{fit.objective:.6g}"),
    ]
    if fit.tuning is not None:
        lines.insert(2, ("tuning", f"by least squares, {tuning_text(fit.tuning)}"))
    if settings.kinked and fit.plan.keeps_rows:
        lines.append(("support", f"{len(fit.support):,} of {n_rows:,} rows"))
    return lines


def _loss_text(fit: LossFit) -> str:
    """The loss as it was asked for, and as it is where it follows the spread of y."""
    asked, found = fit.plan.settings.loss, fit.plan.losses[0]
    if not isinstance(asked, str):
        return repr(asked)
    return asked if found == fit.plan.settings.losses[0] else f"{asked}, {_parameters(found)} in the units of y"


def _parameters(loss: Loss) -> str:
    return ", ".join(f"{f.name} = {getattr(loss, f.name):.4g}" for f in fields(loss))


def _concerns(fit: LossFit) -> list[str]:
    found, solved = [], fit.report
    if not solved.converged:
        way_out = "raise max_iter" if "max_iter" in solved.reason else "the solver says why"
        found.append(f"the minimum was not reached (residual {solved.residual:.1e}): {way_out}")
    if "local solution" in solved.reason:
        found.append("the loss is not convex: this is a local solution, another start may find a better one")
    return found
