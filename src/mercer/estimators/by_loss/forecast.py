"""What more rows would bring a classifier: forecasts of the Brier score."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.data.sample import Sample
from mercer.estimators.by_loss.fit import LossFit
from mercer.estimators.by_loss.plan import plan_loss
from mercer.estimators.by_loss.probabilities import decisions_left_out, known, probabilities
from mercer.estimators.by_loss.problem import problem_of
from mercer.estimators.by_loss.solving import solve_loss
from mercer.estimators.common.forecast import Merged, by_parts
from mercer.theory import Forecaster, forecasters
from mercer.theory.dials import MOST_DUPLICATES

BRIER = "Brier score"
ON_LANDMARKS = "the fit is on landmarks, whose spectrum is not that of the kernel"


def classifier_forecaster(fit: LossFit, rows: Sample | None = None) -> Forecaster:
    """The change by least squares on indicators of classes with the same kernel, from the classifier's own Brier score.

    On landmarks, from fits of the classifier itself to parts of `rows`.
    """
    if not fit.plan.keeps_rows:
        return _on_landmarks(fit, rows)
    if rows is not None:
        raise InputError("The model stores its training rows: call this without X and y.")
    assert fit.sample is not None
    settings, sample = fit.plan.settings, fit.sample

    def gram(data: Sample) -> Any:
        return replace(fit.plan.place, dtype=torch.float64).gram(fit.plan.kernel, data.rows)

    hits = replace(sample, targets=_indicators(fit, sample))
    problem = Merged.of(hits, gram, fit.plan.place, MOST_DUPLICATES)
    (made,) = forecasters(
        problem.gram,
        [problem.targets],
        problem.weights,
        intercept=True,
        duplicates=problem.duplicates,
        random_state=settings.seed,
    )
    return made.scaled(_left_out_score(fit))


def _left_out_score(fit: LossFit) -> float:
    """The Brier score of probabilities for rows left out."""
    assert fit.sample is not None
    problem = problem_of(fit.plan, fit.sample)
    out = decisions_left_out(fit.plan, problem, fit.alpha, list(known(fit, problem)))
    found = _columns(probabilities(fit, torch.cat([part.fitted for part in out], dim=1)))
    squares = (found.cpu() - _indicators(fit, problem.data).cpu()).square().sum(1)
    weights = problem.data.weights
    return float(squares.mean() if weights is None else (squares * weights.cpu()).sum() / weights.sum())


def _on_landmarks(fit: LossFit, rows: Sample | None) -> Forecaster:
    if rows is None:
        raise InputError("The model (solver='nystrom') does not store its training rows: pass them again, X=X and y=y.")
    settings = replace(fit.plan.settings, kernel=fit.plan.kernel, alpha="auto")

    def refit(sample: Sample) -> Any:
        part = solve_loss(plan_loss(settings, sample, fit.plan.classes), sample)

        def predicted(points: Points) -> Tensor:
            return _columns(probabilities(part, part.values(points)))

        return predicted

    rows = rows.positive()[0]
    (made,) = by_parts(refit, rows, _indicators(fit, rows), None, ON_LANDMARKS, settings.seed, together=True)
    return made


def _indicators(fit: LossFit, sample: Sample) -> Tensor:
    """One column for each class, or the second alone of two: the squares then sum to scikit-learn's Brier score."""
    assert fit.plan.classes is not None
    return _columns(torch.nn.functional.one_hot(sample.targets[:, 0].long(), len(fit.plan.classes)).double())


def _columns(values: Tensor) -> Tensor:
    return values[:, 1:] if values.shape[1] == 2 else values
