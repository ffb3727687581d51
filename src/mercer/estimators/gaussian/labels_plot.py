"""The picture of a fitted Gaussian process classifier."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from mercer.core.arrays import Points
from mercer.data.given import Axes
from mercer.estimators.dials import LABELS_SIDE
from mercer.estimators.gaussian.labels_fit import LabelsFit
from mercer.estimators.gaussian.learned import relevance_plot
from mercer.plots.classification import reliability
from mercer.plots.probabilities import probability_map


def labels_plot(
    fit: LabelsFit, given: tuple[Any, Any] | None, probabilities: Callable[[Any], Any], *, ax: Axes | None = None
) -> Any:
    """The map of probabilities for two features; else how reliable they are at rows and labels that are `given`, or the
    relevance of features.

    `probabilities` gives those of the classes at the caller's rows.
    """
    data, classes = fit.posterior.data, fit.plan.classes
    if data.n_features == 2:
        if given is None:
            given = data.X.values.cpu().numpy(), classes[data.Y[:, 0].long().cpu().numpy()]
        X, y = given
        return _map(fit, np.asarray(X, dtype=np.float64), np.asarray(y), ax)
    if given is not None:
        X, y = given
        return reliability(np.asarray(y), np.asarray(probabilities(X)), classes, ax=ax)
    return relevance_plot(fit, ax)


def _map(fit: LabelsFit, shown: np.ndarray, labels: np.ndarray, ax: Axes | None) -> Any:
    low, high = shown.min(0), shown.max(0)
    margin = np.where(high > low, 0.15 * (high - low), 1.0)
    first, second = (np.linspace(low[j] - margin[j], high[j] + margin[j], LABELS_SIDE) for j in range(2))
    grid = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    columns = fit.posterior.data.X.names
    p = (
        fit.posterior.probabilities(Points(torch.from_numpy(grid), columns))
        .cpu()
        .numpy()
        .reshape(LABELS_SIDE, LABELS_SIDE, -1)
    )
    names = columns or ("first feature", "second feature")
    return probability_map(shown, labels, first, second, p, fit.plan.classes, names=names, ax=ax)
