"""The pictures of a fitted KernelClassifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.data.given import Axes
from mercer.estimators.by_loss.fit import LossFit
from mercer.estimators.dials import REGIONS_SIDE
from mercer.plots.classification import decision_regions, reliability


def regions_plot(fit: LossFit, given: tuple[Any, Any] | None, *, names: Sequence[str], ax: Axes | None = None) -> Any:
    """Regions of the classes over two features; `given` are rows and labels, by default the training rows."""
    X, y = _training_rows(fit) if given is None else given
    shown = np.asarray(X, dtype=np.float64)
    low, high = shown.min(0), shown.max(0)
    margin = np.where(high > low, 0.08 * (high - low), 1.0)
    sides = [np.linspace(low[j] - margin[j], high[j] + margin[j], REGIONS_SIDE) for j in range(2)]
    grid = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    decisions = fit.values(Points(torch.from_numpy(grid))).cpu().numpy().reshape(REGIONS_SIDE, REGIONS_SIDE, -1)
    return decision_regions(shown, np.asarray(y), sides[0], sides[1], decisions, fit.plan.classes, names=names, ax=ax)


def reliability_plot(fit: LossFit, given: tuple[Any, Any] | None, *, ax: Axes | None = None) -> Any:
    """Observed shares against predicted probabilities; `given` are labels and their probabilities."""
    if given is None:
        _training_rows(fit)
        raise InputError("plot() needs held-out rows X, y to show how reliable the probabilities are.")
    y, predicted = given
    return reliability(np.asarray(y), np.asarray(predicted), fit.plan.classes, ax=ax)


def _training_rows(fit: LossFit) -> tuple[Any, Any]:
    if fit.sample is None:
        raise InputError("The model does not store its training rows: pass X and y to plot().")
    assert fit.plan.classes is not None
    return fit.sample.rows.values, fit.plan.classes[fit.sample.targets[:, 0].long().numpy()]
