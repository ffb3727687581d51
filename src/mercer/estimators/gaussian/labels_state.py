"""What is saved of GaussianProcessClassifier, and how a fit is made of it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mercer.core.errors import ModelFileError
from mercer.estimators.common.state import Classes, Saved, check_codes
from mercer.estimators.gaussian.labels_fit import LabelsFit
from mercer.estimators.gaussian.labels_plan import LabelsPlan
from mercer.estimators.gaussian.learned_state import LEARNED, learned
from mercer.estimators.gaussian.plan import place_of
from mercer.estimators.gaussian.settings import LearningSettings
from mercer.files.fields import Array
from mercer.processes import Observations
from mercer.processes.laplace_posterior import LaplacePosterior

if TYPE_CHECKING:
    from mercer.estimators.gaussian.classifier import GaussianProcessClassifier


def _restored(model: GaussianProcessClassifier, found: Any) -> LabelsFit:
    settings, classes = LearningSettings.of(model.get_params(deep=False)), found.classes
    read, seen, kernel, codes = learned(model, found, 1.0), found.seen, found.kernel, found.targets
    if seen.n_targets != 1:
        raise ModelFileError(f"seen.n_targets is {seen.n_targets}, expected 1")
    check_codes(codes, len(classes))
    place = place_of(settings, seen, settings.memory_budget)
    data = Observations(found.rows, codes, square=kernel.domain == "matrix").to(place.device)
    posterior = LaplacePosterior(kernel, data, len(classes), found.weights.to(place.device), place, found.report)
    plan = LabelsPlan(settings, read.hyper, read.scales, read.optimum is not None, place, classes)
    return LabelsFit(plan, seen, posterior, read.likelihood, read.optimum)


LABELS = Saved(
    {"classes": Classes(at="plan.classes"), **LEARNED, "weights": Array("n c", at="posterior.weights")}, _restored
)
