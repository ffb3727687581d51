"""The report of a fitted Gaussian process classifier."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.report import Report, make_report
from mercer.data.sample import Sample
from mercer.estimators.common.account import Account, classification_account, rows_account, some_of
from mercer.estimators.common.refits import cross_fitted
from mercer.estimators.dials import FEWEST_JUDGED, FEWEST_LABELS, MOST_LABELS, TOO_WIDE
from mercer.estimators.gaussian.labels_fit import LabelsFit
from mercer.estimators.gaussian.learned import at_bounds, irrelevant
from mercer.kernels.dials import MANY
from mercer.kernels.shown import kernel_text
from mercer.processes import Observations
from mercer.processes.dials import MARGIN
from mercer.processes.laplace_posterior import LaplacePosterior
from mercer.selection.loss_alpha import fold_numbers


def labels_report(fit: LabelsFit) -> Report:
    """What was learned, how, and what to worry about."""
    optimum = fit.optimum
    size = f"{fit.seen.n_rows:,} rows"
    d = fit.posterior.data.n_features
    if d is not None:
        size += f", {d} feature{'s' * (d != 1)}"
    lines: list[tuple[str, object]] = [("data", size), ("classes", classes_text(fit))]
    lines.append(("kernel", kernel_text(fit.posterior.kernel)))
    lines.append(("evidence", f"log marginal likelihood {fit.likelihood:.6g}"))
    if optimum is None:
        lines.append(("learning", "none"))
    else:
        gain = f"log likelihood {optimum.start_value:.6g} -> {optimum.value:.6g}"
        lines.append(("learning", f"{gain}, {optimum.message}, {optimum.evaluations} evaluations"))
    account = _account(fit)
    lines += [*account.lines, ("mode", str(fit.posterior.report))]
    return make_report("Gaussian process classification", lines, [*concerns(fit), *account.concerns])


def _account(fit: LabelsFit) -> Account:
    """How good probabilities are at rows left out, and what these rows say: by folds, with the kernel as it is."""
    posterior, K = fit.posterior, len(fit.plan.classes)
    data, most = posterior.data, max(FEWEST_LABELS, MOST_LABELS // (K // 2))
    points = data.X if not data.X.is_tensor else Points(data.X.values.detach().cpu(), data.X.names)
    everything = Sample(points, data.Y.cpu().double(), None, True, square=data.square)
    sample, which = some_of(everything, most, most)

    def refit(part: Sample) -> Callable[[Points], Tensor]:
        given = Observations(part.rows, part.targets, square=part.square)
        return LaplacePosterior.condition(posterior.kernel, given, K, posterior.place)[0].probabilities

    folds = fold_numbers(sample.rows, sample.targets)
    if len(sample) < FEWEST_JUDGED or int(folds.max()) == 0:
        return Account()
    found = classification_account(sample, fit.plan.classes, cross_fitted(refit, sample), f"five folds{which}")
    rows = rows_account(sample, posterior.kernel, posterior.place, found.skill, labels=True)
    return found.with_concerns(rows)


def class_counts(fit: LabelsFit) -> np.ndarray:
    """The number of training rows of each class."""
    codes = fit.posterior.data.Y[:, 0].long().cpu().numpy()
    return np.bincount(codes, minlength=len(fit.plan.classes))


def classes_text(fit: LabelsFit) -> str:
    """The classes and how many rows each has."""
    counts = class_counts(fit)
    shown = [f"{label} ({n:,})" for label, n in zip(fit.plan.classes[:MANY], counts, strict=False)]
    return ", ".join(shown) + (f" and {len(counts) - MANY} more" if len(counts) > MANY else "")


def concerns(fit: LabelsFit) -> list[str]:
    """What is worth a look."""
    found: list[str] = []
    optimum, solved, counts = fit.optimum, fit.posterior.report, class_counts(fit)
    if not solved.converged:
        found.append(f"the mode was not found (residual {solved.residual:.1e}): the kernel's variance may be too large")
    if float(fit.posterior.curvature.K.diagonal().mean()) > TOO_WIDE:
        found.append(
            "the functions have a very large variance: probabilities are far too careful then; bound the factor"
        )
    alone = [str(label) for label, n in zip(fit.plan.classes, counts, strict=True) if n == 1]
    if alone:
        found.append(f"one row only: class{'es' * (len(alone) != 1)} {', '.join(alone[:MANY])}")
    if optimum is None:
        return found
    if not optimum.converged:
        found.append(f"learning stopped at its limit of {fit.plan.settings.max_iter} iterations: raise max_iter")
    found += irrelevant(fit)
    found += at_bounds(fit, optimum.theta)
    if optimum.value < without_features(counts) + MARGIN:
        found.append("the features say little: the shares of the classes alone explain the labels about as well")
    return found


def without_features(counts: np.ndarray) -> float:
    """The greatest log likelihood of the labels by the shares of their classes."""
    seen = counts[counts > 0]
    return float((seen * np.log(seen / seen.sum())).sum())
