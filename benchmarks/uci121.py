"""The 90 classification sets of the UCI table: average accuracy of a KernelClassifier, ``python -m benchmarks.uci121``.

The protocol of the table: alpha and the length scale are chosen on a split for tuning, then accuracy is averaged over
four folds. Needs the folder of data in the environment variable MERCER_DATA. Names of sets on the command line restrict
the run to them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mercer import KernelClassifier
from mercer.kernels import Laplace, resolve

WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Length scales, in units of the median distance."""

ALPHAS = (1e-3, 1e-2, 1e-1, 1.0)


def accuracy(data: dict[str, np.ndarray], loss: str = "squared") -> float:
    """The mean accuracy over the folds, with parameters from the split for tuning."""
    X, y = data["X"].astype(np.float64), data["y"]
    train, held = data["hp_train"], data["hp_val"]
    best: tuple[float, Any] = (-1.0, None)
    for model in candidates(X[train], loss):
        score = model.fit(X[train], y[train]).score(X[held], y[held])
        best = max(best, (score, model), key=lambda pair: pair[0])
    scores = []
    for i in range(4):
        train, test = data[f"kfold{i}_train"], data[f"kfold{i}_test"]
        scores.append(best[1].fit(X[train], y[train]).score(X[test], y[test]))
    return float(np.mean(scores))


def candidates(X: np.ndarray, loss: str) -> Iterator[KernelClassifier]:
    median = resolve(Laplace("median"), X).length_scale
    for width in WIDTHS:
        kernel = Laplace(width * median)
        for alpha in ALPHAS:
            yield KernelClassifier(kernel, loss=loss, alpha=alpha)


def main(names: list[str]) -> int:
    folder = Path(os.environ["MERCER_DATA"]) / "uci121"
    scores = {}
    for path in sorted(folder.glob("*.npz")):
        if names and path.stem not in names:
            continue
        with np.load(path) as data:
            scores[path.stem] = 100 * accuracy(dict(data))
        print(f"{path.stem:<40} {scores[path.stem]:6.2f}", flush=True)
    print(f"{'average of ' + str(len(scores)) + ' sets':<40} {np.mean(list(scores.values())):6.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
