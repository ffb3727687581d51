"""What was learned of a kernel, in words: the same for numbers and labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.core.errors import InputError
from mercer.data.given import Axes
from mercer.estimators.dials import IRRELEVANT
from mercer.estimators.gaussian.fit import ProcessFit
from mercer.estimators.gaussian.labels_fit import LabelsFit
from mercer.kernels.dials import MANY
from mercer.plots import feature_relevance

AnyFit = ProcessFit | LabelsFit


def relevances(fit: AnyFit) -> np.ndarray | None:
    """Deviation / length scale of each feature: the largest over length scales of the kernel; None without any."""
    spread = fit.plan.scales.X
    if spread is None:
        return None
    parameters = fit.posterior.kernel.tunable()
    found = [value for path, value in parameters.items() if path.endswith("length_scale") and np.ndim(value) == 1]
    fitting = [spread / np.asarray(v) for v in found if len(v) == len(spread)]
    return np.max(fitting, axis=0) if fitting else None


def feature_names(fit: AnyFit) -> list[str]:
    """The names of the features, or their numbers."""
    data = fit.posterior.data
    return (
        [f"feature {i}" for i in range(data.n_features or 0)] if data.X.names is None else list(map(str, data.X.names))
    )


def relevance_plot(fit: AnyFit, ax: Axes | None) -> Any:
    """The relevance of each feature as a picture."""
    relevance = relevances(fit)
    if relevance is None:
        raise InputError(
            "plot() shows the relevance of each feature, which needs one length scale per feature; pass X and y "
            "instead."
        )
    return feature_relevance(relevance, feature_names(fit), ax=ax)


def irrelevant(fit: AnyFit) -> list[str]:
    """The features that hardly matter."""
    relevance = relevances(fit)
    if relevance is None or len(relevance) < 2 or fit.plan.hyper.tied:
        return []
    names = feature_names(fit)
    weak = [names[i] for i in np.flatnonzero(relevance < IRRELEVANT * relevance.max())]
    if not weak:
        return []
    if len(weak) > MANY:
        return [f"{len(weak)} features look irrelevant, such as {', '.join(weak[:3])}: very long length scales"]
    verb = "looks" if len(weak) == 1 else "look"
    return [f"{', '.join(weak)} {verb} irrelevant: very long length scale{'s' * (len(weak) != 1)}"]


def at_bounds(fit: AnyFit, theta: np.ndarray) -> list[str]:
    """Parameters at an end of their range, other than length scales that are named as irrelevant features."""
    lines = []
    for label, end in fit.plan.hyper.at_bounds(theta).items():
        if "length_scale" in label and end == "upper" and relevances(fit) is not None:
            continue
        if label == "noise" and end == "lower" and is_constant(fit):
            continue
        if label == "noise" and end == "lower":
            lines.append("the noise is at its lower bound: the data look free of noise")
        else:
            lines.append(f"{label} is at its {end} bound")
    return lines[:MANY] + ([f"{len(lines) - MANY} more parameters are at a bound"] if len(lines) > MANY else [])


def is_constant(fit: AnyFit) -> bool:
    """Whether all rows have the same targets."""
    Y = fit.posterior.data.Y
    return len(Y) > 1 and bool((Y[:1] == Y).all())
