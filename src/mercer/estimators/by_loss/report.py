"""The reports of KernelClassifier and KernelRegressor."""

from __future__ import annotations

from dataclasses import fields

from mercer.core.report import Report, make_report
from mercer.estimators.by_loss.fit import LossFit
from mercer.estimators.common.tuned import tuning_text
from mercer.kernels.shown import kernel_text
from mercer.losses import Loss

CRITERIA = {
    "loo": "approximate leave-one-out",
    "gcv": "generalised approximate cross-validation",
    "folds": "five folds",
}
MOST_CLASSES = 10
"""Classes that are named."""


def classifier_report(fit: LossFit, n_features: int | None) -> Report:
    """What was fitted, how, and what to worry about."""
    lines, classes = _first_lines(fit, n_features), fit.plan.classes
    assert classes is not None
    named = ", ".join(map(str, classes[:MOST_CLASSES])) + (", ..." if len(classes) > MOST_CLASSES else "")
    lines.insert(1, ("classes", named))
    return make_report("Kernel classification", [*lines, ("solver", str(fit.report))], _concerns(fit))


def regressor_report(fit: LossFit, n_features: int | None) -> Report:
    """What was fitted, how, and what to worry about."""
    lines, concerns = _first_lines(fit, n_features), _concerns(fit)
    levels, crossed = fit.plan.settings.quantiles, fit.crossings
    if levels is not None:
        lines.append(("quantiles", ", ".join(f"{q:g}" for q in levels)))
        lines.append(("crossings", f"{crossed:,} of {fit.seen.n_rows:,} training rows before sorting"))
        if crossed:
            concerns.append(f"quantiles crossed at {crossed:,} training rows; predictions are sorted, so none do")
    return make_report("Kernel regression", [*lines, ("solver", str(fit.report))], concerns)


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
        ("kernel", kernel_text(fit.plan.kernel, settings.kernel)),
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
    if fit.path is not None and bool(fit.path.at_edge.any()):
        found.append("alpha is at the edge of its path: look at the kernel")
    return found
