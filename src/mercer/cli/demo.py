"""The data of the demo: 442 diabetes patients, bundled with scikit-learn."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes

from mercer.cli.problem import Problem
from mercer.cli.regression import TrainingRows
from mercer.cli.tables import has_arrow

TARGET = "progression"
TITLE = "Diabetes: disease progression one year after ten measurements"
WORDS = (
    "442 diabetes patients with ten measurements each: age, sex, body mass index, blood pressure and six blood values. "
    "The task is to predict a score of how far the disease has come one year later. "
    "Data: Efron, Hastie, Johnstone and Tibshirani, Least Angle Regression, 2004."
)


def diabetes() -> Problem:
    """The patients, in the units of the clinic."""
    data = load_diabetes(scaled=False)
    features = tuple(map(str, data.feature_names))
    return Problem(
        np.asarray(data.data, dtype=np.float64),
        np.asarray(data.target, dtype=np.float64),
        None,
        features,
        TARGET,
        "diabetes (scikit-learn)",
    )


def columns(problem: TrainingRows) -> dict[str, np.ndarray]:
    """Features and target by name."""
    assert isinstance(problem, Problem)
    return dict(zip(problem.features, problem.X.T, strict=True)) | {problem.target: problem.y}


def table_ending() -> str:
    """CSV where it can be read back, npz elsewhere."""
    return ".csv" if has_arrow() else ".npz"
