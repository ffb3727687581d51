"""GaussianProcessClassifier as plain data and arrays, for model files; everything read back is checked before use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from mercer.estimators.common.state import (
    CLASSES,
    check_codes,
    float_array,
    nothing_left,
    plain_classes,
    read_classes,
    read_params,
)
from mercer.estimators.gaussian.labels_fit import LabelsFit
from mercer.estimators.gaussian.labels_plan import LabelsPlan
from mercer.estimators.gaussian.learned_state import LEARNED, learned_state, read_learned
from mercer.estimators.gaussian.plan import place_of
from mercer.estimators.gaussian.settings import LearningSettings
from mercer.files.kinds import Table
from mercer.processes import Observations
from mercer.processes.laplace_posterior import LaplacePosterior

if TYPE_CHECKING:
    from mercer.estimators.gaussian.classifier import GaussianProcessClassifier

LABELS = Table(LEARNED | CLASSES)


def labels_state(model: GaussianProcessClassifier, fit: LabelsFit) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain data and arrays from which `labels_from_state` makes an equal model."""
    meta, arrays = learned_state(model, fit)
    return meta | plain_classes(fit.plan.classes), arrays


def labels_from_state(
    cls: type[GaussianProcessClassifier], meta: dict[str, Any], arrays: dict[str, Tensor]
) -> tuple[GaussianProcessClassifier, LabelsFit]:
    """The model that `labels_state` described, and its fit."""
    LABELS.check(meta, "meta")
    arrays = dict(arrays)
    model, classes = read_params(cls, meta["params"]), read_classes(meta)
    settings = LearningSettings.of(model.get_params(deep=False))
    read = read_learned(model, meta, arrays, 1.0)
    seen, kernel, n = read.seen, read.kernel, read.seen.n_rows
    codes = float_array(arrays, "targets", (n, 1))
    check_codes(codes, len(classes))
    weights = float_array(arrays, "weights", (n, 1 if len(classes) == 2 else len(classes)))
    nothing_left(arrays, "GaussianProcessClassifier")
    place = place_of(settings, seen, settings.memory_budget)
    data = Observations(read.X, codes, square=kernel.domain == "matrix").to(place.device)
    posterior = LaplacePosterior(kernel, data, len(classes), weights.to(place.device), place, read.report)
    plan = LabelsPlan(settings, read.hyper, read.scales, read.optimum is not None, place, classes)
    return model, LabelsFit(plan, seen, posterior, read.likelihood, read.optimum)
