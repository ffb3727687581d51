"""MNIST by kernels of wide networks: error and time, ``python -m benchmarks.neural_mnist results.jsonl [job ...]``.

One-hot least squares on images as rows of unit length. Kernels and alphas are chosen by leave-one-out on training rows:
those of `ntk` and `gaussian` on 2,000 of them, the alpha of convolutional networks on all. Jobs: `ntk`, `gaussian`
(10,000 rows, or `--rows`), `conv` (no pooling, as many rows as `--minutes` allow, and 1,000 test images), `pooling`
(500 rows of 14 x 14, and as many test images as `--minutes` allow). `--threads 2` is the setting of the tables;
`--device cuda` runs them on a GPU. `cpu_s` are the seconds of all threads together.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.real_data import find
from mercer import KernelRidge
from mercer.kernels import NTK, Gaussian, Kernel
from mercer.neural import Activation, AveragePool, Conv, Dense, Flatten, LayerKernel

CHOOSE = 2000
BATCH = 50
"""Test images of `pooling` at a time."""
ALPHAS = tuple(10.0**power for power in range(-6, 1))
WIDE = tuple(NTK(depth, b_var=0.0) for depth in (1, 2, 3, 5))
ROUND = tuple(Gaussian(scale) for scale in (0.35, 0.45, 0.6, 0.8))
CONV = [Conv(3), Activation(), Conv(3), Activation(), Conv(3), Activation(), Flatten(), Dense()]
POOLED = [Conv(3), Activation(), Conv(3), Activation(), AveragePool(14), Flatten(), Dense()]

Rows = tuple[np.ndarray, np.ndarray]


def images() -> tuple[Rows, Rows]:
    """Training and test rows, the first ones in an order of their own."""
    path = find("mnist")
    if path is None:
        raise SystemExit("mnist.npz is not there: set MERCER_DATA to the folder of the data.")
    with np.load(path, allow_pickle=False) as archive:
        found = [(unit_rows(archive[f"X_{part}"]), archive[f"y_{part}"].astype(int)) for part in ("train", "test")]
    order = np.random.default_rng(0).permutation(len(found[0][1]))
    return (found[0][0][order], found[0][1][order]), found[1]


def unit_rows(pixels: np.ndarray) -> np.ndarray:
    rows = pixels.reshape(len(pixels), -1).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def half(X: np.ndarray) -> np.ndarray:
    """Images of 14 x 14, means of four pixels each."""
    return unit_rows(X.reshape(-1, 14, 2, 14, 2).mean((2, 4)))


def ridge(kernel: Kernel, alpha: Any, device: str) -> KernelRidge:
    return KernelRidge(kernel, alpha=alpha, fit_intercept=False, device=device)


def one_hot(y: np.ndarray) -> np.ndarray:
    return np.eye(10, dtype=np.float32)[y]


def result(
    name: str,
    model: KernelRidge,
    train: Rows,
    test: Rows,
    *,
    minutes: float = math.inf,
    at_once: int = 10_000,
    **more: Any,
) -> dict[str, Any]:
    """The error and the seconds of a fit and its predictions, of which no more are begun after so many minutes."""
    started, cpu = time.perf_counter(), time.process_time()
    model.fit(train[0], one_hot(train[1]))
    fitted = time.perf_counter()
    right: list[bool] = []
    for start in range(0, len(test[1]), at_once):
        if time.perf_counter() - started > 60 * minutes:
            break
        some = slice(start, start + at_once)
        right += list(model.predict(test[0][some]).argmax(1) == test[1][some])
    seconds = {"fit_s": round(fitted - started, 1), "predict_s": round(time.perf_counter() - fitted, 1)}
    sizes = {"rows": len(train[1]), "test_rows": len(right)}
    error = round(100 * (1 - float(np.mean(right))), 2)
    seconds["cpu_s"] = round(time.process_time() - cpu, 1)
    return {"job": name, **sizes, "error": error, **seconds, "kernel": str(model.kernel)} | more


def dense(name: str, kernels: tuple[Kernel, ...], given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    (X, y), test = images()
    few = X[:CHOOSE], y[:CHOOSE]
    best: tuple[float, Kernel, float] | None = None
    for kernel in kernels:
        for alpha in ALPHAS:
            model = ridge(kernel, alpha, given.device).fit(few[0], one_hot(few[1]))
            wrong = float(np.mean(np.asarray(model.loo_predictions_).argmax(1) != few[1]))
            if best is None or wrong < best[0]:
                best = wrong, kernel, alpha
    assert best is not None
    for _ in range(2 if given.device == "cuda" else 1):  # the first use compiles the loops
        rows = slice(0, given.rows)
        yield result(name, ridge(best[1], best[2], given.device), (X[rows], y[rows]), test, alpha=best[2])


def conv(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    (X, y), (X_test, y_test) = images()
    kernel, most = LayerKernel(CONV, shape=(1, 28, 28)), min(1000, len(y_test))
    started = time.perf_counter()
    part = torch.as_tensor(X[:200], device=given.device)
    part = kernel(part, part.flip(0))
    float(part.sum())
    pairs = 60 * given.minutes / ((time.perf_counter() - started) / 200**2)
    rows = int(min(given.rows, (most**2 + 2 * pairs) ** 0.5 - most))  # n^2 / 2 + 1000 n pairs
    yield {"job": "conv", "pairs_per_s": round(pairs / (60 * given.minutes)), "rows": rows}
    train, test = (X[:rows], y[:rows]), (X_test[:most], y_test[:most])
    yield result("conv", ridge(kernel, "loo", given.device), train, test, kernel="3 convolutions")


def pooling(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    (X, y), (X_test, y_test) = images()
    count = min(500, given.rows)
    kernel = LayerKernel(POOLED, shape=(1, 14, 14))
    flat = LayerKernel([layer for layer in POOLED if not isinstance(layer, AveragePool)], shape=(1, 14, 14))
    train, test = (half(X[:count]), y[:count]), (half(X_test[: given.test]), y_test[: given.test])
    deep = NTK(2, b_var=0.0)
    words = "2 convolutions"
    for name, k, shown in (("no pooling", flat, words), ("dense", deep, str(deep)), ("pooling", kernel, words)):
        model = ridge(k, "loo", given.device)
        yield result(name + " 14 x 14", model, train, test, minutes=given.minutes, at_once=BATCH, kernel=shown)


JOBS: dict[str, Callable[[argparse.Namespace], Iterator[dict[str, Any]]]] = {
    "ntk": lambda given: dense("ntk", WIDE, given),
    "gaussian": lambda given: dense("gaussian", ROUND, given),
    "conv": conv,
    "pooling": pooling,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("jobs", nargs="*", default=list(JOBS))
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--test", type=int, default=500, help="test images of `pooling`")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_intermixed_args()
    torch.set_num_threads(given.threads)
    where = {"device": given.device, "threads": given.threads}
    with given.results.open("a") as out:
        for job in given.jobs:
            for line in JOBS[job](given):
                print(json.dumps(line | where), file=out, flush=True)
                print(line, flush=True)


if __name__ == "__main__":
    main()
