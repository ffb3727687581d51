"""The data of the demo: 442 diabetes patients, bundled with scikit-learn."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes

from mercer.cli.tables import has_arrow
from mercer.cli.task import REGRESSION, Task
from mercer.data.table import Table

TARGET = "progression"
TITLE = "Diabetes: disease progression one year after ten measurements"
WORDS = (
    "442 diabetes patients with ten measurements each: age, sex, body mass index, blood pressure and six blood values. "
    "The task is to predict a score of how far the disease has come one year later. "
    "Data: Efron, Hastie, Johnstone and Tibshirani, Least Angle Regression, 2004."
)


def diabetes() -> Task:
    """The patients, in the units of the clinic."""
    data = load_diabetes(scaled=False)
    table = Table.of(dict(zip(map(str, data.feature_names), data.data.T, strict=True)))
    y = np.asarray(data.target, dtype=np.float64)
    return Task(table, y, None, TARGET, "diabetes (scikit-learn)", REGRESSION, "the target holds numbers")


def columns(task: Task) -> dict[str, np.ndarray]:
    """Features and target by name."""
    return dict(task.table.columns) | {task.target: task.y}


def table_ending() -> str:
    """CSV where it can be read back, npz elsewhere."""
    return ".csv" if has_arrow() else ".npz"
