"""The samples of the golden cases: the same numbers on every machine."""

from __future__ import annotations

import numpy as np

ROWS, COLUMNS, NEW_ROWS = 60, 3, 10

_rng = np.random.default_rng(20)
X = _rng.uniform(0, 3, (ROWS, COLUMNS))
X_NEW = _rng.uniform(0.2, 2.8, (NEW_ROWS, COLUMNS))
NOISE = 0.3 * _rng.normal(size=(ROWS, 2))
Y = np.c_[np.sin(2 * X[:, 0]) + X[:, 1], np.cos(X[:, 2]) * X[:, 0] - 0.5] + NOISE
WEIGHTS = _rng.integers(0, 4, ROWS).astype(float)
VARIANCES = _rng.uniform(0.05, 0.3, ROWS)
TWO = np.where(Y[:, 0] > np.median(Y[:, 0]), "yes", "no")
THREE = np.digitize(Y[:, 0], np.quantile(Y[:, 0], [0.35, 0.7]))
REPEATED = np.arange(ROWS) % 40
WORDS = ["".join(_rng.choice(list("abcd"), 8)) for _ in range(ROWS)]
NEW_WORDS = [*WORDS[3:9], "abcdabcd", "ddddcccc"]


def inner_product(x: np.ndarray, z: np.ndarray) -> float:
    """A kernel written as a function: the inner product plus one."""
    return float(x @ z) + 1.0
