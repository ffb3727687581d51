"""Today's names of what the golden cases use: the one place to change when something is renamed."""

from __future__ import annotations

from typing import Any

import mercer
from mercer.kernels import as_kernel

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
    made = getattr(mercer, name)(**{PARAMETERS.get(key, key): value for key, value in settings.items()})
    if name.startswith("GaussianProcess") or not isinstance(getattr(made, "kernel", None), str):
        return made
    return made.set_params(kernel=by_median(made.kernel))


def by_median(kernel: Any) -> Any:
    """The kernel of a name with the median length scale, which names stood for when the file was recorded."""
    named = as_kernel(kernel)
    return named.replace(length_scale="median") if getattr(named, "length_scale", None) == "auto" else kernel


def result(model: Any, name: str) -> Any:
    """A fitted number of a model."""
    return getattr(model, RESULTS[name])


def solver_name(model: Any) -> str:
    """The solver or method that a fitted model was found by."""
    return model.solver_report_.solver
