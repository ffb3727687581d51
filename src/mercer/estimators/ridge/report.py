"""The report of a fitted KernelRidge."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError, MemoryBudgetError, NotPositiveDefiniteError
from mercer.core.report import Report, make_report
from mercer.data.sample import Sample
from mercer.estimators.common.account import (
    Account,
    edge_of,
    forecast_account,
    path_account,
    regression_account,
    rows_account,
    some_of,
)
from mercer.estimators.common.tuned import tuning_text
from mercer.estimators.ridge.few import left_out_of_few
from mercer.estimators.ridge.fit import RidgeFit
from mercer.estimators.ridge.full import solve_full
from mercer.estimators.ridge.intervals import with_left_out_predictions
from mercer.estimators.ridge.left_out import with_left_out
from mercer.kernels.shown import kernel_text
from mercer.selection.left_out import LeftOutPredictions
from mercer.solvers.error_bound import far_words, too_far
from mercer.solvers.flow import told

CRITERIA = {"loo": "leave-one-out", "gcv": "generalised cross-validation"}


def ridge_report(fit: RidgeFit, n_features: int | None) -> Report:
    """What was fitted, how it was solved, and what to worry about."""
    seen, path, tuning = fit.seen, fit.path, fit.tuning
    size = f"{seen.n_rows:,} rows"
    if n_features is not None:
        size += f", {n_features} feature{'s' * (n_features != 1)}"
    if not seen.one_target:
        size += f", {seen.n_targets} targets"
    lines: list[tuple[str, object]] = [
        ("data", size),
        ("kernel", kernel_text(fit.plan.kernel, None if tuning is not None else fit.plan.settings.kernel)),
    ]
    if tuning is not None:
        lines.append(("tuning", tuning_text(tuning)))
    chosen = "given" if path is None else f"by {CRITERIA[path.criterion]} over {len(path.alphas)} values"
    if path is not None and path.rows:
        chosen += f", {path.rows}"
    alpha = ("alpha", f"{_numbers(fit.given_alpha)} ({chosen})")
    lines.append(alpha if fit.stop is None else ("stopping time", told(fit.stop)))
    account = account_of(fit)
    lines += [*account.lines, ("solver", str(fit.report))]
    return make_report("Kernel ridge regression", lines, [*_concerns(fit), *account.concerns])


def account_of(fit: RidgeFit) -> Account:
    """How good the fit is at rows left out, and what these rows say."""
    rows = fit.some if fit.sample is None else fit.sample
    if rows is None:
        return fit.told or path_account(fit.path)
    sample, which = some_of(rows)
    left_out = left_out_of_few(fit, sample) if fit.sample is None else _left_out(fit, sample, which)
    found = regression_account(sample, left_out, intercept=fit.plan.settings.fit_intercept, given=fit.path is None)
    if left_out is None:
        found = path_account(fit.path)
    if fit.order is not None and fit.sample is not None:
        with contextlib.suppress(InputError):  # an order of too few values
            later = with_left_out_predictions(fit).left_out
            assert later is not None
            ahead = forecast_account(later, found.skill)
            found = replace(found, lines=found.lines + ahead.lines).with_concerns(ahead.concerns)
    return found.with_concerns(
        [*rows_account(sample, fit.plan.kernel, fit.plan.place, found.skill), *edge_of(fit.path)]
    )


def _left_out(fit: RidgeFit, sample: Sample, which: str) -> LeftOutPredictions | None:
    """Predictions for rows left out: of the fit itself, else of one with its kernel and alpha to these rows alone."""
    if fit.order is None and fit.left_out is not None and not which:
        return fit.left_out
    untrained = fit.stop is not None and not bool(fit.stop.equivalent_alpha.isfinite().all())
    if len(sample) < 2 or untrained:  # no ridge is like a flow that has not begun
        return None
    own = not which and not fit.plan.traits.stops_early
    try:
        out = with_left_out(fit if own else _refitted(fit, sample)).loo
    except (MemoryBudgetError, NotPositiveDefiniteError):  # a matrix that no fit has seen can come from a file alone
        return None
    which += "" if fit.stop is None else ", of the ridge like it"
    assert out is not None
    assert fit.sample is not None
    out = out[_positive(fit.sample)] if own else out
    return LeftOutPredictions.of(out, sample.targets, sample.weights, f"leave-one-out{which}")


def _refitted(fit: RidgeFit, sample: Sample) -> RidgeFit:
    """The full fit with the same kernel and alpha, or the ridge that acts like stopping, to other rows."""
    plan = fit.plan
    settings = replace(plan.settings, method=None, solver="auto")
    alpha = fit.alpha if fit.stop is None else fit.stop.equivalent_alpha
    solver = "cholesky" if isinstance(alpha, float) and alpha > 0 else "eigh"
    plan = replace(plan, settings=settings, solver=solver, alpha=alpha, n_rows=len(sample))
    return solve_full(plan, sample)


def _positive(sample: Sample) -> Tensor:
    places = sample.positive()[1]
    return torch.arange(len(sample)) if places is None else places


def _concerns(fit: RidgeFit) -> list[str]:
    found = []
    solved = fit.report
    if too_far(solved.error_bound):
        found.append(far_words(solved.error_bound))
    elif not solved.converged:
        advice = "see the solver" if fit.plan.traits.iterates else "use a larger alpha"
        found.append(f"the system was not solved to its tolerance (residual {solved.residual:.1e}): {advice}")
    if solved.jitter:
        found.append(f"a jitter of {solved.jitter:.0e} was added to the diagonal to make the factorisation succeed")
    if fit.tuning is not None and "limit" in fit.tuning.message:
        found.append("tuning stopped at its iteration limit: the kernel may still improve")
    return found


def _numbers(values: float | np.ndarray) -> str:
    return ", ".join(f"{v:.4g}" for v in np.atleast_1d(values))
