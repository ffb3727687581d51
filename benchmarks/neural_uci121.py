"""The neural tangent kernel on the 90 classification sets, with the published protocol.

    MERCER_DATA=folder python -m benchmarks.neural_uci121 results.jsonl [set ...] --processes 16
    python -m benchmarks.neural_uci121 results.jsonl --table

For each set the number of hidden layers, how many of them are fixed and C = 1e-2 ... 1e4 are chosen on the split for
tuning, by scikit-learn's SVC on the ready matrix, one class against one; its accuracy is averaged over four folds.
Beside it `KernelClassifier` with the kernel that was chosen, and an alpha that it finds by itself in each fold.
Matrices of all kernels of a set come from one pass through the layers. Two ranges of hidden layers are given: 0 to 4,
as in the published program, and 1 to 5. Accuracies of the split for tuning go to `results.tuning.jsonl` by kernel:
a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from mercer import KernelClassifier
from mercer.core.arrays import as_points
from mercer.kernels import NNGP, NTK, Kernel, Linear
from mercer.kernels.pair import DensePair

HIDDEN = range(6)
PROTOCOLS = {"0 to 4": range(5), "1 to 5": range(1, 6)}
COSTS = tuple(10.0**power for power in range(-2, 5))
MOST_ITERATIONS = 2_000_000
"""Of one SVC: linear kernels with C = 1e4 hardly end on data that they cannot tell apart."""

Matrices = dict[tuple[int, int], np.ndarray]
"""By hidden layers and fixed layers."""


def kernel(hidden: int, fixed: int, columns: int) -> Kernel:
    """Weights of variance one and no biases; inputs are not divided by their number."""
    return columns * NTK(hidden, w_var=1.0, b_var=0.0, n_fixed=fixed) if hidden else Linear()


def matrices(X: np.ndarray) -> Matrices:
    """Of all kernels, by the recursion of `NTK`."""
    network = NNGP(max(HIDDEN), w_var=1.0, b_var=0.0)
    tangents: dict[int, torch.Tensor] = {}
    found = {}
    for layer, (covariance, slope) in enumerate(network.layers(DensePair(as_points(X)))):
        tangents = {fixed: slope * before for fixed, before in tangents.items()} | {layer: torch.zeros(())}
        tangents = {fixed: covariance + before for fixed, before in tangents.items()}
        found |= {(layer, fixed): (X.shape[1] * part).numpy() for fixed, part in tangents.items()}
    return found


def svc(K: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray, C: float) -> float:
    """The accuracy on some rows of a machine that was fitted to others."""
    model = SVC(kernel="precomputed", C=C, cache_size=1000, max_iter=MOST_ITERATIONS)
    return float(model.fit(K[np.ix_(train, train)], y[train]).score(K[np.ix_(test, train)], y[test]))


def chosen(tuning: dict[tuple[int, int, float], float], hidden: range) -> tuple[int, int, float]:
    """The first of the best."""
    return max((key for key in tuning if key[0] in hidden), key=lambda key: tuning[key])


def tuned(
    name: str, found: Matrices, y: np.ndarray, train: np.ndarray, held: np.ndarray, file: Path
) -> tuple[dict[tuple[int, int, float], float], float]:
    """Accuracies of the split for tuning by kernel and C, which a file keeps, and the seconds that they took."""
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    known = {tuple(line["kernel"]): line for line in lines if line["set"] == name}
    for key, K in found.items():
        if key not in known:
            started = time.perf_counter()
            accuracies = [svc(K, y, train, held, C) for C in COSTS]
            known[key] = {"set": name, "kernel": key, "s": time.perf_counter() - started, "accuracies": accuracies}
            with file.open("a") as out:
                print(json.dumps(known[key]), file=out)
    tuning = {(*key, C): accuracy for key in found for C, accuracy in zip(COSTS, known[key]["accuracies"], strict=True)}
    return tuning, sum(known[key]["s"] for key in found)


def result(path: Path, tunings: Path) -> dict[str, Any]:
    """Choices and accuracies of one set."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", ConvergenceWarning)
    with np.load(path) as data:
        X, y = data["X"].astype(np.float64), data["y"]
        train, held = data["hp_train"], data["hp_val"]
        folds = [(data[f"kfold{i}_train"], data[f"kfold{i}_test"]) for i in range(4)]
    started = time.perf_counter()
    found = matrices(X)
    gram = time.perf_counter() - started
    tuning, seconds = tuned(path.stem, found, y, train, held, tunings)
    line: dict[str, Any] = {
        "set": path.stem,
        "rows": len(X),
        "gram_s": round(gram, 2),
        "tuning_s": round(seconds, 2),
    }
    for name, hidden in PROTOCOLS.items():
        layers, fixed, C = chosen(tuning, hidden)
        K = found[layers, fixed]
        line[name] = {
            "chosen": [layers, fixed, C],
            "svc": 100 * float(np.mean([svc(K, y, *fold, C) for fold in folds])),
            "ours": 100 * float(np.mean([ours(kernel(layers, fixed, X.shape[1]), X, y, *fold) for fold in folds])),
        }
    return line


def ours(k: Kernel, X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return float(KernelClassifier(k, loss="squared").fit(X[train], y[train]).score(X[test], y[test]))


def table(path: Path) -> str:
    """Averages, and a line for each set."""
    lines = sorted((json.loads(line) for line in path.read_text().splitlines()), key=lambda line: line["set"])
    shown = ["| set | rows | layers, fixed, C | SVC | KernelClassifier |", "| --- | --- | --- | --- | --- |"]
    for line in lines:
        first = line[next(iter(PROTOCOLS))]
        choice, accuracies = "{}, {}, {:g}".format(*first["chosen"]), f"{first['svc']:.2f} | {first['ours']:.2f}"
        shown.append(f"| {line['set']} | {line['rows']:,} | {choice} | {accuracies} |")
    for name in PROTOCOLS:
        means = [np.mean([line[name][who] for line in lines]) for who in ("svc", "ours")]
        shown.append(f"{name} hidden layers, {len(lines)} sets: SVC {means[0]:.2f}, KernelClassifier {means[1]:.2f}")
    return "\n".join(shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_intermixed_args()
    if not given.table:
        done = (
            {json.loads(line)["set"] for line in given.results.read_text().splitlines()}
            if given.results.exists()
            else set()
        )
        folder = Path(os.environ["MERCER_DATA"]) / "uci121"
        paths = [
            path
            for path in folder.glob("*.npz")
            if path.stem not in done and (not given.sets or path.stem in given.sets)
        ]
        paths.sort(key=lambda path: -path.stat().st_size)
        with multiprocessing.get_context("spawn").Pool(given.processes) as pool, given.results.open("a") as out:
            for line in pool.imap_unordered(partial(result, tunings=given.results.with_suffix(".tuning.jsonl")), paths):
                print(json.dumps(line), file=out, flush=True)
    print(table(given.results))


if __name__ == "__main__":
    main()
