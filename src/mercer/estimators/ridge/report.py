"""The report of a fitted KernelRidge."""

from __future__ import annotations

import numpy as np

from mercer.core.report import Report, make_report
from mercer.estimators.common.tuned import tuning_text
from mercer.estimators.ridge.fit import RidgeFit
from mercer.estimators.ridge.left_out import with_left_out
from mercer.kernels.shown import kernel_text
from mercer.solvers.error_bound import far_words, too_far

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
        ("kernel", kernel_text(fit.plan.kernel, fit.plan.settings.kernel)),
    ]
    if tuning is not None:
        lines.append(("tuning", tuning_text(tuning)))
    chosen = "given" if path is None else f"by {CRITERIA[path.criterion]} over {len(path.alphas)} values"
    lines.append(("alpha", f"{_numbers(fit.given_alpha)} ({chosen})"))
    if path is not None and fit.sample is not None and not fit.plan.traits.stops_early:
        lines.append(("loo error", _numbers(_loo_error(with_left_out(fit))) + " (root mean square)"))
    elif path is not None and path.criterion == "loo":
        lines.append(("loo error", _numbers(path.errors.amin(0).sqrt().cpu().numpy()) + " (root mean square)"))
    lines.append(("solver", str(fit.report)))
    return make_report("Kernel ridge regression", lines, _concerns(fit))


def _loo_error(fit: RidgeFit) -> np.ndarray:
    sample = fit.sample
    assert sample is not None
    assert fit.loo is not None
    residuals = sample.targets - fit.loo.cpu()
    weights = np.ones(len(sample)) if sample.weights is None else sample.weights.numpy()
    size = np.abs(residuals.numpy()).max(axis=0)
    unit = np.where(size > 0, size, 1.0)  # squares of what is beyond 1e154 are no numbers
    return unit * np.sqrt(np.average((residuals.numpy() / unit) ** 2, axis=0, weights=weights))


def _concerns(fit: RidgeFit) -> list[str]:
    found = []
    path, solved = fit.path, fit.report
    if too_far(solved.error_bound):
        found.append(far_words(solved.error_bound))
    elif not solved.converged:
        advice = "see the solver" if fit.plan.traits.iterates else "use a larger alpha"
        found.append(f"the system was not solved to its tolerance (residual {solved.residual:.1e}): {advice}")
    if solved.jitter:
        found.append(f"a jitter of {solved.jitter:.0e} was added to the diagonal to make the factorisation succeed")
    if path is not None and bool(path.at_edge.any()):
        found.append("alpha is at the edge of its path: search a wider one with alphas=, or look at the kernel")
    if fit.tuning is not None and "limit" in fit.tuning.message:
        found.append("tuning stopped at its iteration limit: the kernel may still improve")
    return found


def _numbers(values: float | np.ndarray) -> str:
    return ", ".join(f"{v:.4g}" for v in np.atleast_1d(values))
