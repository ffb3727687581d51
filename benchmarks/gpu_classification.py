"""Classification of covtype with 500,000 rows on one GPU, after a check of every loss against the CPU.

    MERCER_DATA=folder python -m benchmarks.gpu_classification

Features are standardised; 81,012 rows are held out. The length scale was chosen on 20,000 of the training rows.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.svm import SVC

from benchmarks.real_data import find
from mercer import KernelClassifier
from mercer.kernels import Gaussian, Laplace

ROWS = 500_000
LOSSES = ("logistic", "hinge", "squared_hinge", "squared")


def covtype(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    path = find("covtype")
    assert path is not None, "covtype.npz is not in the folder MERCER_DATA"
    with np.load(path) as data:
        X, y = data["X"].astype(np.float32), data["y"].astype(int)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:rows], order[ROWS:]
    spread = X[train].std(0)
    X = (X - X[train].mean(0)) / np.where(spread > 0, spread, 1.0)
    return X[train], y[train], X[test], y[test]


def agreement(device: str) -> None:
    """The largest difference of decisions between the device and the CPU, over losses and solvers."""
    X, y, X_test, _ = covtype(600)
    for solver, more in (("dense", {}), ("pcg", {}), ("nystrom", {"n_landmarks": 100})):
        for loss in LOSSES if solver != "pcg" else ("logistic", "squared"):
            options = {"loss": loss, "alpha": 0.1, "fit_intercept": True, "solver": solver, "tol": 1e-8, **more}
            here, there = (
                KernelClassifier(Laplace(10.0), device=place, dtype="float64", **options).fit(X, y == 2)
                for place in (device, "cpu")
            )
            f, g = here.decision_function(X_test[:500]), there.decision_function(X_test[:500])
            print(f"{solver:<8} {loss:<14} largest difference from the CPU {np.abs(f - g).max() / np.abs(g).max():.1e}")


def report(name: str, model, data) -> None:
    X, y, X_test, y_test = data
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    model.fit(X, y)
    fitted = time.perf_counter()
    p = model.predict_proba(X_test)
    done = time.perf_counter()
    accuracy = np.mean(model.classes_[p.argmax(1)] == y_test)
    peak = torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else float("nan")
    note = str(getattr(model, "solver_report_", ""))
    print(
        f"| {name} | {len(y):,} | {fitted - start:.1f} | {done - fitted:.1f} | {accuracy:.4f} | "
        f"{log_loss(y_test, p, labels=model.classes_):.4f} | {peak:.1f} | {note}",
        flush=True,
    )


def main(rows: int, landmarks: int, device: str, tasks: list[str]) -> None:
    agreement(device)
    for task in tasks:
        X, y, X_test, y_test = covtype(rows)
        data = (X, y, X_test, y_test) if task == "seven classes" else (X, y == 2, X_test, y_test == 2)
        print(f"\n{task}\n| model | rows | fit s | predict s | accuracy | log loss | GiB | how |")
        few = {"solver": "nystrom", "device": device, "tol": 1e-4, "verbose": False}
        for loss in ("logistic", "squared_hinge", "hinge") if task == "binary" else ("squared", "logistic"):
            for m in (landmarks // 4, landmarks):
                if loss == "hinge" and m == landmarks:
                    continue
                model = KernelClassifier(Laplace(5.0), loss=loss, alpha=1e-2, n_landmarks=m, **few)
                report(f"{loss}, {m:,} landmarks", model, data)
        if task == "binary":
            some = data[0][:10_000], data[1][:10_000], data[2], data[3]
            report("logistic, every row a coefficient", KernelClassifier(Laplace(5.0), alpha=1e-2, device=device), some)
            gamma = 1.0 / (X.shape[1] * X.var())
            report("SVC, C = 10", SVC(C=10.0, gamma=gamma, probability=True), some)
            report("SVC's kernel, hinge", KernelClassifier(Gaussian.from_gamma(gamma), loss="hinge", alpha=0.05), some)
            report(
                "boosting, 300 trees of 63 leaves",
                HistGradientBoostingClassifier(max_iter=300, max_leaf_nodes=63),
                data,
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore", FutureWarning)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--landmarks", type=int, default=6_000)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tasks", nargs="+", default=["binary", "seven classes"])
    options = parser.parse_args()
    main(options.rows, options.landmarks, options.device, options.tasks)
