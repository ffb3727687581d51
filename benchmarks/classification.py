"""Classification against scikit-learn's SVC: covtype made binary, 20,000 rows, C = 10.

Needs the folder of data in the environment variable MERCER_DATA; without it there are no rows.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
from sklearn.svm import SVC

from benchmarks import Row
from mercer import KernelClassifier
from mercer.kernels import Gaussian

ROWS, C = 20_000, 10.0


def run() -> list[Row]:
    if "MERCER_DATA" not in os.environ:
        return []
    X, y = covtype(ROWS)
    gamma = 1.0 / (X.shape[1] * X.var())
    theirs, svc_seconds = timed(SVC(C=C, gamma=gamma), X, y)
    rows = []
    for loss, target in (("hinge", 1.0), ("logistic", 3.0)):
        options = {"alpha": 1 / (2 * C), "fit_intercept": True, "tol": 1e-5, "dtype": "float32"}  # as LIBSVM stores K
        model = KernelClassifier(Gaussian.from_gamma(gamma), loss=loss, **options)
        ours, seconds = timed(model, X, y)
        if loss == "hinge":
            f = theirs.decision_function(X)
            norm = theirs.dual_coef_[0] @ (f[theirs.support_] - theirs.intercept_)
            least = np.maximum(0, 1 - y * f).sum() + norm / (2 * C)
            assert ours.objective_ < least * (1 + 1e-4), (ours.objective_, least)
        rows.append(
            Row(f"KernelClassifier {loss}, covtype n={ROWS:,}", "sklearn SVC", seconds, svc_seconds, "s", target)
        )
    return rows


def covtype(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Random rows with standardised features; labels say whether the class is the most frequent one."""
    with np.load(Path(os.environ["MERCER_DATA"]) / "large" / "covtype.npz") as data:
        X, labels = data["X"], data["y"]
    rows = np.random.default_rng(0).permutation(len(X))[:n]
    X = X[rows].astype(np.float64)
    spread = X.std(0)
    y = np.where(labels[rows] == np.bincount(labels.astype(int)).argmax(), 1, -1)
    return (X - X.mean(0)) / np.where(spread > 0, spread, 1.0), y


def timed(model, X, y):
    start = time.perf_counter()
    model.fit(X, y)
    return model, time.perf_counter() - start
