"""The report of a fitted Gaussian process classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.core.report import Report, make_report
from mercer.estimators.gaussian_process_report import MANY, _at_bounds, _irrelevant, kernel_text
from mercer.processes.maximise import MARGIN

if TYPE_CHECKING:
    from mercer.estimators.gaussian_process_classifier import GaussianProcessClassifier

TOO_WIDE = 1e3
"""Mean variance of latent functions for which Laplace's approximation hardly learns from labels."""


def labels_report(model: GaussianProcessClassifier) -> Report:
    """What was learned, how, and what to worry about."""
    optimum = model.optimum_
    size = f"{model._seen.n_rows:,} rows"
    d = getattr(model, "n_features_in_", None)
    if d is not None:
        size += f", {d} feature{'s' * (d != 1)}"
    lines: list[tuple[str, object]] = [("data", size), ("classes", classes_text(model))]
    lines.append(("kernel", kernel_text(model.kernel_)))
    lines.append(("evidence", f"log marginal likelihood {model.log_marginal_likelihood_:.6g}"))
    if optimum is None:
        lines.append(("learning", "none"))
    else:
        gain = f"log likelihood {optimum.start_value:.6g} -> {optimum.value:.6g}"
        lines.append(("learning", f"{gain}, {optimum.message}, {optimum.evaluations} evaluations"))
    lines.append(("mode", str(model.solver_report_)))
    return make_report("Gaussian process classification", lines, concerns(model))


def class_counts(model: GaussianProcessClassifier) -> np.ndarray:
    """The number of training rows of each class."""
    codes = model._posterior.data.Y[:, 0].long().cpu().numpy()
    return np.bincount(codes, minlength=len(model.classes_))


def classes_text(model: GaussianProcessClassifier) -> str:
    """The classes and how many rows each has."""
    counts = class_counts(model)
    shown = [f"{label} ({n:,})" for label, n in zip(model.classes_[:MANY], counts, strict=False)]
    return ", ".join(shown) + (f" and {len(counts) - MANY} more" if len(counts) > MANY else "")


def concerns(model: GaussianProcessClassifier) -> list[str]:
    """What is worth a look."""
    found: list[str] = []
    optimum, solved, counts = model.optimum_, model.solver_report_, class_counts(model)
    if not solved.converged:
        found.append(f"the mode was not found (residual {solved.residual:.1e}): the kernel's variance may be too large")
    if float(model._posterior.curvature.K.diagonal().mean()) > TOO_WIDE:
        found.append(
            "the functions have a very large variance: probabilities are far too careful then; bound the factor"
        )
    alone = [str(label) for label, n in zip(model.classes_, counts, strict=True) if n == 1]
    if alone:
        found.append(f"one row only: class{'es' * (len(alone) != 1)} {', '.join(alone[:MANY])}")
    if optimum is None:
        return found
    if not optimum.converged:
        found.append(f"learning stopped at its limit of {model.max_iter} iterations: raise max_iter")
    process: Any = model
    found += _irrelevant(process)
    found += _at_bounds(process, optimum.theta)
    if optimum.value < without_features(counts) + MARGIN:
        found.append("the features say little: the shares of the classes alone explain the labels about as well")
    return found


def without_features(counts: np.ndarray) -> float:
    """The greatest log likelihood of the labels by the shares of their classes."""
    return float((counts * np.log(counts / counts.sum())).sum())
