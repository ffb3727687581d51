"""What a Gaussian process classification will do: decided from settings and a sample before any learning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from mercer.core.errors import InputError
from mercer.data.sample import Sample
from mercer.estimators.dials import LARGEST_VARIANCE
from mercer.estimators.gaussian.plan import LearningPlan, budget_left, place_of
from mercer.estimators.gaussian.settings import LearningSettings
from mercer.kernels.overflow import check_kernel_values
from mercer.processes import Hyperparameters
from mercer.processes.dials import FACTOR_REACH
from mercer.processes.laplace_posterior import check_memory
from mercer.processes.start import Scales, start_kernel


@dataclass(frozen=True, eq=False)
class LabelsPlan(LearningPlan):
    """The same with the sorted labels, whose places are the targets of the sample."""

    classes: np.ndarray


def plan_labels(settings: LearningSettings, sample: Sample, classes: np.ndarray) -> LabelsPlan:
    """The plan for a sample of codes of these classes."""
    if len(classes) < 2:
        raise InputError(f"y has one class, {classes.tolist()[0]!r}: a classifier needs at least two classes.")
    place = place_of(settings, sample.seen, budget_left(settings, sample))
    hyper, scales = _start(settings, sample)
    learns = bool(settings.tune) and hyper.open
    check_memory(len(sample), len(classes), learns, place)
    return LabelsPlan(settings, hyper, scales, learns, place, classes)


def _start(settings: LearningSettings, sample: Sample) -> tuple[Hyperparameters, Scales]:
    """The kernel at its start, in the units of the data, and the box it may move in."""
    scales = Scales.of(sample.rows, torch.ones(1, 1), sample.square)
    start = scales if settings.standardize else Scales.unit(None if scales.X is None else len(scales.X))
    kernel, tied = start_kernel(settings.kernel, sample.rows, start, settings.seed, settings.tune)
    check_kernel_values(kernel, sample.rows)
    bounds = dict(settings.bounds or {})
    if isinstance(settings.kernel, str):
        factor = kernel.tunable()["factor"]
        bounds.setdefault("factor", (factor / FACTOR_REACH, factor * LARGEST_VARIANCE))
    return Hyperparameters.of(kernel, 0.0, False, bounds=bounds, priors=settings.priors, tied=tied), scales
