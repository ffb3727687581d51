"""Classification against scikit-learn: alpha by itself and a grid of SVC, the hinge and SVC, landmarks and Nystroem.

Needs the folder of data in the environment variable MERCER_DATA; without it, or a set of it, there are no rows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks import Row
from mercer import KernelClassifier
from mercer.kernels import Gaussian

GRID = {"svc__C": [0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4]}
FOLDS, GRID_ROWS = 4, 1_500
HINGES = {4_000: (1.0, 10.0, 100.0, 1_000.0, 10_000.0), 12_000: (1.0, 10.0, 100.0), 20_000: (10.0,)}
LARGE, LARGE_C = 20_000, 10.0
MOST, LANDMARKS, HELD = 200_000, 200, 50_000


def run() -> Iterator[Row]:
    folder = Path(os.environ.get("MERCER_DATA", ""))
    if "MERCER_DATA" not in os.environ:
        return
    for name in ("statlog-image", "waveform-noise"):
        if (folder / "uci121" / f"{name}.npz").exists():
            yield _grid(name, folder)
    if (folder / "large" / "covtype.npz").exists():
        for n, Cs in HINGES.items():
            for C in Cs:
                yield _svm("hinge", n, C, 1.0)
        yield _svm("logistic", LARGE, LARGE_C, None)
        yield _landmarks()


def _grid(name: str, folder: Path) -> Row:
    """The choice of alpha and 28 fits of SVC, columns scaled by hand."""
    with np.load(folder / "uci121" / f"{name}.npz") as data:
        X, y = data["X"].astype(np.float64), data["y"]
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[:GRID_ROWS], order[GRID_ROWS:]
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), GRID, cv=FOLDS)
    theirs, svc_seconds = timed(search, X[train], y[train])
    ours, seconds = timed(KernelClassifier(alpha="auto"), X[train], y[train])
    scores = f"accuracy {ours.score(X[test], y[test]):.3f}, {theirs.score(X[test], y[test]):.3f}"
    count = len(GRID["svc__C"]) * FOLDS
    return Row(
        f"KernelClassifier, {name}, n={GRID_ROWS:,} ({scores})",
        f"{count} fits of SVC",
        seconds,
        svc_seconds,
        "s",
        1 / 3,
    )


def _svm(loss: str, n: int, C: float, target: float | None) -> Row:
    X, y = covtype(n)
    gamma = 1.0 / (X.shape[1] * X.var())
    theirs, svc_seconds = timed(SVC(C=C, gamma=gamma), X, y)
    options = {"alpha": 1 / (2 * C), "fit_intercept": True, "tol": 1e-5, "dtype": "float32"}  # as LIBSVM stores K
    ours, seconds = timed(KernelClassifier(Gaussian.from_gamma(gamma), loss=loss, **options), X, y)
    worse = ""
    if loss == "hinge":
        f = theirs.decision_function(X)
        norm = theirs.dual_coef_[0] @ (f[theirs.support_] - theirs.intercept_)
        least = np.maximum(0, 1 - y * f).sum() + norm / (2 * C)
        worse = "" if ours.objective_ < least * (1 + 1e-4) else f", objective {ours.objective_ / least:.5f} of SVC's"
    name = f"KernelClassifier {loss}, covtype n={n:,}, C={C:g}{worse}"
    return Row(name, "sklearn SVC", seconds, svc_seconds, "s", target)


def _landmarks() -> Row:
    with np.load(Path(os.environ["MERCER_DATA"]) / "large" / "covtype.npz") as data:
        X, y = data["X"], data["y"].astype(int)
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[:MOST], order[MOST : MOST + HELD]
    scaler = StandardScaler().fit(X[train])
    A, B = scaler.transform(X[train]), scaler.transform(X[test])
    peer = make_pipeline(Nystroem(n_components=LANDMARKS, random_state=0), LogisticRegression())
    theirs, their_seconds = timed(peer, A, y[train])
    ours, seconds = timed(KernelClassifier(n_landmarks=LANDMARKS, alpha="auto"), A, y[train])
    losses = [log_loss(y[test], model.predict_proba(B)) for model in (ours, theirs)]
    name = f"KernelClassifier, {LANDMARKS} landmarks, covtype n={MOST:,} (log loss {losses[0]:.3f}, {losses[1]:.3f})"
    return Row(name, "Nystroem + LogisticRegression", seconds, their_seconds, "s", 1 / 3)


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
    """The fitted model and the seconds of all cores that it took: what runs beside it does not count."""
    start = time.process_time()
    model.fit(X, y)
    return model, time.process_time() - start
