"""Whether intervals of 90% hold 90%: 15 regression sets, 10 splits each, ``python -m benchmarks.intervals``.

Needs the folder of data in the environment variable MERCER_DATA. At most 300 training and 500 test rows of a split
are used. Names of models on the command line restrict the run to them. Coverage is the share of test targets inside,
width that of the intervals in units of the deviation of the training targets, both averaged over splits.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mercer import GaussianProcessRegressor, KernelRegressor, KernelRidge

SETS = (
    "autompg",
    "bike",
    "breastcancer",
    "concrete",
    "elevators",
    "energy",
    "forest",
    "housing",
    "kin40k",
    "pol",
    "protein",
    "pumadyn32nm",
    "skillcraft",
    "wine",
    "yacht",
)
SPLITS, TRAIN, TEST, LEVEL = 10, 300, 500, 0.9
Ends = tuple[np.ndarray, np.ndarray]

MODELS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], Ends]] = {
    "ridge": lambda X, y, Z: _ridge(X, y).predict_interval(Z, LEVEL),
    "jackknife+": lambda X, y, Z: _ridge(X, y).predict_interval(Z, LEVEL, method="jackknife+"),
    "tuned": lambda X, y, Z: _ridge(X, y, tune=True).predict_interval(Z, LEVEL),
    "huber": lambda X, y, Z: _by_loss(X, y, loss="huber").predict_interval(Z, LEVEL),
    "svr": lambda X, y, Z: _by_loss(X, y, loss="epsilon_insensitive").predict_interval(Z, LEVEL),
    "quantiles": lambda X, y, Z: _by_loss(X, y, loss="quantile", quantiles=[0.05, 0.95]).predict_interval(Z, LEVEL),
    "process": lambda X, y, Z: GaussianProcessRegressor(n_restarts=0).fit(X, y).predict_interval(Z, LEVEL),
}


def _ridge(X: np.ndarray, y: np.ndarray, **settings: Any) -> KernelRidge:
    return KernelRidge(alpha="auto", fit_intercept=True, **settings).fit(X, y)


def _by_loss(X: np.ndarray, y: np.ndarray, **settings: Any) -> KernelRegressor:
    return KernelRegressor(alpha="auto", fit_intercept=True, **settings).fit(X, y)


def splits(name: str) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Training rows and targets, test rows and targets."""
    with np.load(Path(os.environ["MERCER_DATA"]) / "uci" / f"{name}.npz") as data:
        X, y, masks = data["X"].astype(np.float64), data["y"].astype(np.float64).reshape(-1), data["test_mask"]
    found = []
    for k in range(SPLITS):
        rng, test = np.random.default_rng(k), masks[:, k].astype(bool)
        some, out = (rng.permutation(np.flatnonzero(m))[:most] for m, most in ((~test, TRAIN), (test, TEST)))
        found.append((X[some], y[some], X[out], y[out]))
    return found


def judged(name: str, ends: Callable[..., Ends]) -> tuple[float, float]:
    """Coverage and width of a model on a set."""
    inside, width = [], []
    for X, y, Z, target in splits(name):
        low, high = ends(X, y, Z)
        inside.append(np.mean((low <= target) & (target <= high)))
        width.append(np.mean(high - low) / y.std())
    return float(np.mean(inside)), float(np.mean(width))


def main(names: list[str]) -> int:
    chosen = names or list(MODELS)
    print(f"{'set':<14}" + "".join(f"{name:>18}" for name in chosen), flush=True)
    table = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in SETS:
            table.append([judged(name, MODELS[model]) for model in chosen])
            print(f"{name:<14}" + "".join(f"{share:>10.1%}{width:>8.2f}" for share, width in table[-1]), flush=True)
    means = np.mean(table, axis=0)
    print(f"{'mean':<14}" + "".join(f"{share:>10.1%}{width:>8.2f}" for share, width in means))
    return 0 if all(0.88 <= share <= 0.92 for share, _ in means) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
