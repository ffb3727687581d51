"""Probabilities from decisions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.data.sample import Sample
from mercer.estimators.by_loss.fit import LossFit
from mercer.estimators.by_loss.plan import LossPlan
from mercer.estimators.by_loss.problem import Problem, problem_of
from mercer.selection.calibration import Calibration, calibrate
from mercer.selection.loss_alpha import LeftOut, left_out
from mercer.solvers.newton import Minimum
from mercer.solvers.objective import Known


def probabilities(fit: LossFit, decisions: Tensor) -> Tensor:
    """Probabilities (m, classes) of decisions (m, 1) or (m, t)."""
    if fit.plan.calibrates:
        return calibration_of(fit)(decisions)
    if decisions.shape[1] == 1:
        return torch.cat([torch.sigmoid(-decisions), torch.sigmoid(decisions)], dim=1)
    return torch.softmax(decisions, 1)


def calibration_of(fit: LossFit) -> Calibration:
    """The calibration of a fit, found when it is first needed."""
    if fit.calibration.value is None:
        if fit.sample is None:
            raise InputError(
                "predict_proba needs training rows to calibrate probabilities, and the model does not store them."
            )
        fit.calibration.value = calibrated(fit.sample.positive()[0], left_out_of(fit, fit.sample))
    return fit.calibration.value


def left_out_of(fit: LossFit, sample: Sample) -> list[LeftOut]:
    """Predictions of each problem for those rows of the fit's sample that have weight, without them; found once."""
    if fit.out is not None:
        return fit.out
    if fit.calibration.out is None:
        problem = problem_of(fit.plan, sample)
        fit.calibration.out = decisions_left_out(fit.plan, problem, fit.alpha, list(known(fit, problem)))
    return fit.calibration.out


def decisions_left_out(
    plan: LossPlan, problem: Problem, alpha: float, minima: Sequence[Minimum | Known]
) -> list[LeftOut]:
    """Decisions for rows left out, from the minima for all rows."""
    options = plan.options(tell=False)
    return [
        left_out(problem.span, objective, found, lambda: problem.folds, options)
        for objective, found in zip(problem.at(alpha), minima, strict=True)
    ]


def calibrated(data: Sample, out: list[LeftOut]) -> Calibration:
    """The calibration of greatest likelihood at decisions for rows left out."""
    decisions = torch.cat([part.fitted for part in out], dim=1)
    return calibrate(decisions, data.targets[:, 0], data.weights)


def known(fit: LossFit, problem: Problem) -> Iterator[Known]:
    """The fitted functions over the rows of the problem, as each of its objectives has them."""
    device = problem.span.device
    coef, intercept = fit.function.coef.to(device), fit.intercept.to(device)
    coef = coef if problem.places is None else coef[problem.places.to(device)]
    columns = [objective.outputs for objective in problem.objectives]
    for c, b in zip(coef.split(columns, dim=1), intercept.split(columns), strict=True):
        yield Known(c, b, problem.span.values(c) + b, dual=c)
