"""The report of a fitted KernelRidge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mercer.core.report import Report, make_report
from mercer.estimators.ridge_model import DESCENTS, SINGLE
from mercer.solvers.error_bound import far_words, too_far

if TYPE_CHECKING:
    from mercer.estimators.kernel_ridge import KernelRidge

CRITERIA = {"loo": "leave-one-out", "gcv": "generalised cross-validation"}


def ridge_report(model: KernelRidge) -> Report:
    """What was fitted, how it was solved, and what to worry about."""
    seen, path, tuning, solved = model._seen, model.alpha_path_, model.tuning_, model.solver_report_
    size = f"{seen.n_rows:,} rows"
    d = getattr(model, "n_features_in_", None)
    if d is not None:
        size += f", {d} feature{'s' * (d != 1)}"
    if not seen.one_target:
        size += f", {seen.n_targets} targets"
    lines: list[tuple[str, object]] = [("data", size), ("kernel", model.kernel_.rounded())]
    if tuning is not None:
        gain = f"relative error {tuning.start_error:.4g} -> {tuning.error:.4g}"
        lines.append(("tuning", f"{gain}, {tuning.message}"))
    chosen = "given" if path is None else f"by {CRITERIA[path.criterion]} over {len(path.alphas)} values"
    lines.append(("alpha", f"{_numbers(model.alpha_)} ({chosen})"))
    if path is not None and model._data is not None and solved.solver not in DESCENTS:
        lines.append(("loo error", _numbers(_loo_error(model)) + " (root mean square)"))
    elif path is not None and path.criterion == "loo":
        lines.append(("loo error", _numbers(path.errors.amin(0).sqrt().cpu().numpy()) + " (root mean square)"))
    lines.append(("solver", str(solved)))
    return make_report("Kernel ridge regression", lines, _concerns(model))


def _loo_error(model: KernelRidge) -> np.ndarray:
    data = model._data
    assert data is not None
    residuals = data.targets - model._loo_columns()
    weights = np.ones(len(data.rows)) if data.weights is None else data.weights.numpy()
    return np.sqrt(np.average(residuals.cpu().numpy() ** 2, axis=0, weights=weights))


def _concerns(model: KernelRidge) -> list[str]:
    found = []
    path, solved = model.alpha_path_, model.solver_report_
    if too_far(solved.error_bound):
        found.append(far_words(solved.error_bound))
    elif not solved.converged:
        advice = "see the solver" if solved.solver in SINGLE else "use a larger alpha"
        found.append(f"the system was not solved to its tolerance (residual {solved.residual:.1e}): {advice}")
    if solved.jitter:
        found.append(f"a jitter of {solved.jitter:.0e} was added to the diagonal to make the factorisation succeed")
    if path is not None and bool(path.at_edge.any()):
        found.append("alpha is at the edge of its path: search a wider one with alphas=, or look at the kernel")
    if model.tuning_ is not None and "limit" in model.tuning_.message:
        found.append("tuning stopped at its iteration limit: the kernel may still improve")
    return found


def _numbers(values: float | np.ndarray) -> str:
    return ", ".join(f"{v:.4g}" for v in np.atleast_1d(values))
