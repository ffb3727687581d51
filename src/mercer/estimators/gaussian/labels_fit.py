"""A fitted Gaussian process for labels: the posterior, and how its kernel was found."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from mercer.data.sample import Sample, Seen
from mercer.estimators.gaussian.labels_plan import LabelsPlan
from mercer.processes import Maximum, Observations, maximise
from mercer.processes.dials import FEW_ROWS
from mercer.processes.laplace import LaplaceEvidence
from mercer.processes.laplace_posterior import LaplacePosterior


@dataclass(frozen=True, eq=False)
class LabelsFit:
    """What a fit knows.

    Attributes
    ----------
    plan : LabelsPlan
        What was done.
    seen : Seen
        What is remembered of the rows.
    posterior : LaplacePosterior
        The latent functions given the labels.
    likelihood : float
        Laplace's log marginal likelihood.
    optimum : Maximum or None
        The account of the learning, None where there was none.
    """

    plan: LabelsPlan
    seen: Seen
    posterior: LaplacePosterior
    likelihood: float
    optimum: Maximum | None


def fit_labels(plan: LabelsPlan, sample: Sample) -> LabelsFit:
    """Learn as planned, and condition on all rows."""
    data = Observations(sample.rows.owned(), sample.targets, square=sample.square).to(plan.place.device)
    optimum = _learned(plan, data) if plan.learns else None
    kernel = plan.hyper.kernel_at(plan.hyper.start if optimum is None else optimum.theta)
    posterior, likelihood = LaplacePosterior.condition(kernel, data, len(plan.classes), plan.place)
    return LabelsFit(plan, sample.seen, posterior, likelihood, optimum)


def _learned(plan: LabelsPlan, data: Observations) -> Maximum:
    n, n_classes, settings, few = len(data), len(plan.classes), plan.settings, None
    if n > FEW_ROWS:
        order = torch.randperm(n, generator=torch.Generator().manual_seed(settings.seed)).to(data.Y.device)
        few = LaplaceEvidence(data.take(order[:FEW_ROWS]), n_classes, plan.hyper, plan.place)
    return maximise(
        LaplaceEvidence(data, n_classes, plan.hyper, plan.place),
        few,
        n_restarts=settings.n_restarts,
        max_iter=settings.max_iter,
        seed=settings.seed,
        progress=settings.progress,
    )
