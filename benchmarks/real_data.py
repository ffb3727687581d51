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


def find(name: str, ending: str = "npz") -> Path | None:
    """The file of that name, in the folder itself or one below; None where it is not there."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return None
    return next((p for p in (*Path(folder).glob(f"{name}.{ending}"), *Path(folder).glob(f"*/{name}.{ending}"))), None)


def split(name: str) -> Split:
    """The first published split of a regression set."""
    X, y, test = _rows(name)
    test = test if test.ndim == 1 else test[:, 0]
    return _standardised(name, X, y, ~test, test)


def random_split(name: str, seed: int, train: float = 0.64, test: float = 0.2) -> Split:
    """Random shares of the rows to train and to test; the others would be for validation."""
    X, y, _ = _rows(name)
    order = np.random.default_rng(seed).permutation(len(y))
    for_training, for_test = order[: round(train * len(y))], order[len(y) - round(test * len(y)) :]
    return _standardised(name, X, y, for_training, for_test)


def _rows(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    path = find(name)
    if path is None:
        raise SystemExit(f"{name}.npz is not there: set {FOLDER} to the folder of the data.")
    with np.load(path, allow_pickle=False) as data:
        return np.ascontiguousarray(data["X"]).astype(np.float64), data["y"].astype(np.float64), data["test_mask"]


def _standardised(name: str, X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> Split:
    spread = X[train].std(0)
    X = ((X - X[train].mean(0)) / np.where(spread > 0, spread, 1.0)).astype(np.float32)
    y = ((y - y[train].mean()) / y[train].std()).astype(np.float32)
    return Split(name, X[train], y[train], X[test], y[test])


def published(name: str) -> Hyperparameters | None:
    """Matern-3/2 hyperparameters for the first split, where some were published."""
    path = Path(os.environ.get(FOLDER, "")) / "gp_hparams.json"
    known = json.loads(path.read_text())["data"].get(name) if path.is_file() else None
    if known is None:
        return None
    found = known["0"]
    return Hyperparameters(found["lengthscale"], found["signal_std"], found["noise_std"])
