"""Real data for the benchmarks of whole fits, from the folder in the environment variable MERCER_DATA."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FOLDER = "MERCER_DATA"


@dataclass(frozen=True)
class Split:
    """Training and test rows in float32; features and targets are standardised on the training rows."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def rmse(self, predicted: np.ndarray) -> float:
        """In units of the standard deviation of the training targets."""
        return float(np.sqrt(np.mean((np.asarray(predicted, dtype=np.float64) - self.y_test) ** 2)))

    def r2(self, predicted: np.ndarray) -> float:
        return 1.0 - self.rmse(predicted) ** 2 / float(np.var(self.y_test.astype(np.float64)))

    def part(self, count: int, seed: int = 0) -> Split:
        """The same test rows with at most `count` training rows, drawn at random."""
        rows = np.random.default_rng(seed).permutation(len(self.y))[:count]
        return Split(self.name, self.X[rows], self.y[rows], self.X_test, self.y_test)

    def validation(self, share: float = 0.1, most: int = 20_000) -> Split:
        """Training rows alone: some of them take the place of the test rows."""
        order = np.random.default_rng(1).permutation(len(self.y))
        held = min(int(share * len(order)), most)
        test, train = order[:held], order[held:]
        return Split(self.name, self.X[train], self.y[train], self.X[test], self.y[test])


@dataclass(frozen=True)
class Hyperparameters:
    """Of a Gaussian process, for standardised data."""

    length_scale: Sequence[float]
    signal: float
    noise: float


def find(name: str) -> Path | None:
    """The archive of that name, in the folder itself or one below; None where it is not there."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return None
    return next((p for p in (*Path(folder).glob(f"{name}.npz"), *Path(folder).glob(f"*/{name}.npz"))), None)


def split(name: str) -> Split:
    """The first published split of a regression set."""
    path = find(name)
    if path is None:
        raise SystemExit(f"{name}.npz is not there: set {FOLDER} to the folder of the data.")
    with np.load(path, allow_pickle=False) as data:
        X, y, test = np.ascontiguousarray(data["X"]), data["y"], data["test_mask"]
    test = test if test.ndim == 1 else test[:, 0]
    X, y = X.astype(np.float64), y.astype(np.float64)
    spread = X[~test].std(0)
    X = (X - X[~test].mean(0)) / np.where(spread > 0, spread, 1.0)
    y = (y - y[~test].mean()) / y[~test].std()
    X, y = X.astype(np.float32), y.astype(np.float32)
    return Split(name, X[~test], y[~test], X[test], y[test])


def published(name: str) -> Hyperparameters | None:
    """Matern-3/2 hyperparameters for the first split, where some were published."""
    path = Path(os.environ.get(FOLDER, "")) / "gp_hparams.json"
    known = json.loads(path.read_text())["data"].get(name) if path.is_file() else None
    if known is None:
        return None
    found = known["0"]
    return Hyperparameters(found["lengthscale"], found["signal_std"], found["noise_std"])
