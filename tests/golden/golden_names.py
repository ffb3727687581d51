"""Today's names of what the golden cases use: the one place to change when something is renamed."""

from __future__ import annotations

from typing import Any

import mercer

PARAMETERS: dict[str, str] = {}
"""Parameters of estimators that have another name now, by the name that the cases use."""

RESULTS = {
    "alpha": "alpha_",
    "lambda": "lambda_",
    "noise": "noise_",
    "evidence": "log_marginal_likelihood_",
    "objective": "objective_",
    "intercept": "intercept_",
    "eigenvalues": "eigenvalues_",
    "trace": "trace_",
    "target_scale": "target_scale_",
    "crossings": "n_crossings_",
    "classes": "classes_",
    "left_out": "loo_predictions_",
}
"""Fitted attributes, by the name that the golden file uses."""


def estimator(name: str, **settings: Any) -> Any:
    """An estimator of mercer with settings by the names that the cases use."""
    return getattr(mercer, name)(**{PARAMETERS.get(key, key): value for key, value in settings.items()})


def result(model: Any, name: str) -> Any:
    """A fitted number of a model."""
    return getattr(model, RESULTS[name])


def solver_name(model: Any) -> str:
    """The solver or method that a fitted model was found by."""
    return model.solver_report_.solver
