"""What a fit searches: the functions, and what is to be as small as it can be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from mercer.core.memory import resolve_budget
from mercer.data.rows import signs_of
from mercer.data.sample import Sample, spread
from mercer.estimators.by_loss.plan import LossPlan
from mercer.functions.basis import Centres
from mercer.kernels.objects import is_unproven
from mercer.losses import Loss, Multinomial, Squared
from mercer.selection.loss_alpha import fold_numbers
from mercer.solvers.basis_blocks import blocks_of
from mercer.solvers.choose import landmark_count
from mercer.solvers.few_span import FewSpan
from mercer.solvers.full_span import FullSpan
from mercer.solvers.landmarks import choose_landmarks
from mercer.solvers.newton import Minimum
from mercer.solvers.objective import Objective
from mercer.solvers.semidefinite import require_semidefinite


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows that have weight, where they are among all, what is minimised there and the functions that a fit searches.

    There is an objective for each class or quantile, or one for all, with alpha = 1 until it is known.
    """

    data: Sample
    objectives: list[Objective]
    places: Tensor | None
    n_rows: int
    span: Any
    centres: Centres

    def at(self, alpha: float) -> list[Objective]:
        """The objectives at an alpha."""
        return [replace(objective, alpha=alpha) for objective in self.objectives]

    def coefficients(self, minima: list[Minimum]) -> Tensor:
        """The coefficients of the centres, with a column for each prediction."""
        joined = torch.cat([found.value for found in minima], dim=1)
        if isinstance(self.span, FewSpan):
            return self.span.coefficients(joined)
        return spread(joined, self.places, self.n_rows)

    @cached_property
    def folds(self) -> Tensor:
        """The fold of each row, for rows left out by folds."""
        return fold_numbers(self.data.rows, self.data.targets)


def problem_of(plan: LossPlan, sample: Sample) -> Problem:
    """The rows of a sample and the functions that the plan chooses for them."""
    settings, place = plan.settings, plan.place
    data, places = sample.positive()
    if not plan.keeps_rows:
        return few_problem(plan, sample, landmarks_of(plan, data))
    objectives = checked_objectives(plan, data)
    operator = place.operator(plan.kernel, data.rows)
    if is_unproven(plan.kernel):
        require_semidefinite(operator, sample.seen.dtype)
    matrix = torch.as_tensor(operator.dense()) if plan.solver == "dense" else None
    stored = 0 if matrix is None else matrix.nbytes
    room = resolve_budget(place.memory_budget, place.device) - stored
    full = FullSpan.of(operator, matrix, settings.seed, rank=settings.rank, room=room)
    return Problem(data, objectives, places, len(sample), full, Centres(plan.kernel, sample.rows))


def landmarks_of(plan: LossPlan, data: Sample) -> Centres:
    """The landmarks that the plan asks for, chosen among rows: all of them, or some."""
    settings, place, how = plan.settings, plan.place, plan.settings.landmarks
    budget = plan.landmark_budget
    most = (plan.n_rows or len(data)) if isinstance(how, str) else len(how)
    m = landmark_count(most, settings.n_landmarks, "nystrom", budget, place.device)
    chosen = choose_landmarks(plan.kernel, data.rows, m, how, settings.seed, data.weights, budget)
    return Centres(plan.kernel, chosen.points, chosen.note)


def few_problem(plan: LossPlan, sample: Sample, centres: Centres) -> Problem:
    """Functions on landmarks, over the rows of a sample."""
    data, places = sample.positive()
    objectives = checked_objectives(plan, data)
    span = FewSpan.of(blocks_of(centres, data, plan.place), centres.penalty(plan.place), plan.landmark_budget)
    return Problem(data, objectives, places, len(sample), span, centres)


def checked_objectives(plan: LossPlan, data: Sample) -> list[Objective]:
    """The objectives, where losses and targets are such that they can be minimised."""
    objectives = objectives_of(plan, data, plan.place.device)
    for objective in objectives:
        objective.check()
    return objectives


def objectives_of(plan: LossPlan, data: Sample, device: torch.device) -> list[Objective]:
    """What is minimised for rows that have weight; the predictions side by side are the columns of the model."""
    targets = data.targets.to(device)
    weights, units = (None if given is None else given.to(device) for given in (data.weights, data.units))

    def objective(loss: Loss, y: Tensor, outputs: int = 1) -> Objective:
        return Objective(loss, y, 1.0, weights, plan.settings.fit_intercept, outputs, units)

    if plan.classes is None:
        return [objective(loss, targets) for loss in plan.losses]
    loss, codes, t = plan.losses[0], targets[:, 0], len(plan.classes)
    if t > 2 and loss.name == "logistic":
        return [objective(Multinomial(), codes, t)]
    labels = signs_of(codes, t)
    if isinstance(loss, Squared):
        return [objective(loss, labels, labels.shape[1])]
    return [objective(loss, column) for column in labels.split(1, dim=1)]
