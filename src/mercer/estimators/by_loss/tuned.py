"""The plan with the kernel's parameters fitted."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from mercer.data.rows import signs_of
from mercer.data.sample import Sample
from mercer.estimators.by_loss.plan import LossPlan, by_spectrum
from mercer.estimators.by_loss.problem import objectives_of
from mercer.estimators.common.tuned import tuned_kernel
from mercer.estimators.dials import COMPARED_ROWS, REACH
from mercer.kernels.median import weighted_median
from mercer.losses import Squared
from mercer.selection import Tuned
from mercer.selection.loss_alpha import loss_alphas, some_of
from mercer.selection.spectral_path import Spectral, select_alpha_of_spectrum
from mercer.solvers.full_span import FullSpan


def tuned(plan: LossPlan, sample: Sample) -> tuple[LossPlan, Tuned | None]:
    """The plan with a kernel of smaller leave-one-out error, and the account of it; the same where it was not asked.

    The error is that of least squares, whatever the loss: one factorisation gives it with its gradient for all classes.
    Of the tuned kernel and those as they were, that is then taken whose own loss at rows left out is least.
    Labels are -1 and 1 for each class. Targets of other losses than the squared one are moved in where they are far
    out. The ridge is found beside the kernel where the loss is another one.
    """
    settings = plan.settings
    if not settings.tune:
        return plan, None
    data = sample.positive()[0]
    squared = isinstance(settings.losses[0], Squared)
    targets = data.targets if plan.classes is None else signs_of(data.targets[:, 0], len(plan.classes))
    if plan.classes is None and not squared:
        targets = _moved_in(targets, data.weights)
    loss_of = None
    if settings.tune is True and by_spectrum(plan) and not squared:
        index = some_of(data.rows, data.targets, COMPARED_ROWS)
        some = data if len(index) == len(data) else data.take(index)
        loss_of = lambda kernel: _loss_left_out(replace(plan, kernel=kernel), some)  # noqa: E731
    found = tuned_kernel(settings, plan.kernel, data, targets, plan.alpha if squared else "loo", loss_of)
    return replace(plan, kernel=found.kernel), found


def _loss_left_out(plan: LossPlan, some: Sample) -> float:
    """The least loss of the path of alphas at rows left out."""
    cpu = torch.device("cpu")
    place = replace(plan.place, device=cpu)
    matrix = torch.as_tensor(place.gram(plan.kernel, some.rows).dense()).double()
    alphas = loss_alphas(FullSpan.of(None, matrix=matrix))
    spectral = Spectral.of_matrix(matrix, some.weights, plan.settings.fit_intercept)
    return float(select_alpha_of_spectrum(spectral, objectives_of(plan, some, cpu), alphas)[0].errors.min())


def _moved_in(targets: Tensor, weights: Tensor | None) -> Tensor:
    """Targets of which none is further from the median than three times the median distance."""
    w = torch.ones(len(targets)).numpy() if weights is None else weights.numpy()
    middle = weighted_median(targets[:, 0].numpy(), w)
    far = REACH * weighted_median((targets[:, 0] - middle).abs().numpy(), w)
    return targets.clamp(middle - far, middle + far) if far > 0 else targets
