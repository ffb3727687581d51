"""The reports of KernelClassifier and KernelRegressor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.core.report import Report, make_report
from mercer.losses import get_loss

if TYPE_CHECKING:
    from mercer.estimators.kernel_classifier import KernelClassifier
    from mercer.estimators.kernel_regressor import KernelRegressor

CRITERIA = {"loo": "approximate leave-one-out", "folds": "five folds"}


def classifier_report(model: KernelClassifier) -> Report:
    """What was fitted, how, and what to worry about."""
    lines = _first_lines(model)
    lines.insert(
        1, ("classes", ", ".join(map(str, model.classes_[:10])) + (", ..." if len(model.classes_) > 10 else ""))
    )
    return make_report("Kernel classification", [*lines, ("solver", str(model.solver_report_))], _concerns(model))


def regressor_report(model: KernelRegressor) -> Report:
    """What was fitted, how, and what to worry about."""
    lines, concerns = _first_lines(model), _concerns(model)
    if model.quantiles_ is not None:
        lines.append(("quantiles", ", ".join(f"{q:g}" for q in model.quantiles_)))
        crossed = model.n_crossings_
        lines.append(("crossings", f"{crossed:,} of {model._seen.n_rows:,} training rows before sorting"))
        if crossed:
            concerns.append(f"quantiles crossed at {crossed:,} training rows; predictions are sorted, so none do")
    return make_report("Kernel regression", [*lines, ("solver", str(model.solver_report_))], concerns)


def _first_lines(model: Any) -> list[tuple[str, object]]:
    seen, path = model._seen, model.alpha_path_
    size = f"{seen.n_rows:,} rows"
    d = getattr(model, "n_features_in_", None)
    if d is not None:
        size += f", {d} feature{'s' * (d != 1)}"
    exact = path is not None and path.criterion == "loo" and get_loss(model.loss).quadratic
    how = "" if path is None else "exact leave-one-out" if exact else CRITERIA[path.criterion]
    chosen = "given" if path is None else f"by {how} over {len(path.alphas)} values"
    support = getattr(model, "support_", None)
    return [
        ("data", size),
        ("kernel", model.kernel_.rounded()),
        ("loss", model.loss if isinstance(model.loss, str) else repr(model.loss)),
        ("alpha", f"{model.alpha_:.4g} ({chosen})"),
        ("objective", f"{model.objective_:.6g}"),
        *([] if support is None else [("support", f"{len(support):,} of {seen.n_rows:,} rows")]),
    ]


def _concerns(model: Any) -> list[str]:
    found = []
    if not model.solver_report_.converged:
        way_out = "raise max_iter" if "max_iter" in model.solver_report_.reason else "the solver says why"
        found.append(f"the minimum was not reached (residual {model.solver_report_.residual:.1e}): {way_out}")
    if "local solution" in model.solver_report_.reason:
        found.append("the loss is not convex: this is a local solution, another start may find a better one")
    if model.alpha_path_ is not None and bool(np.asarray(model.alpha_path_.at_edge).any()):
        found.append("alpha is at the edge of its path: look at the kernel")
    return found
