"""Times against those of an older source: ``python -m benchmarks.before_after FOLDER [--turns 5] [--groups A,B]``.

The same jobs with the same arguments in one thread, in processes that take turns. A process gives the least time of
each job, of the processor, so that what runs beside it hardly counts; the table shows their medians over the turns.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import mercer
from mercer.kernels import Gaussian, Laplace, Matern
from mercer.operators import gram

HERE = Path(__file__).parents[1]
SECONDS = 0.1
"""A job is repeated for so long, three times at least."""
SLOWER = 1.1
"""The ratio from which on a job counts as slower."""

Job = Callable[[], Any]


def data(n: int, d: int = 10, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, d))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)
    return X.astype(dtype), y.astype(dtype)


def known(name: str, *args: Any, **options: Any) -> Any:
    """An estimator with those of the options that its version has."""
    cls = getattr(mercer, name)
    has = inspect.signature(cls).parameters
    return cls(*args, **{option: value for option, value in options.items() if option in has})


def product(kernel: Any, n: int, m: int | None, dtype: str) -> Job:
    X, v = data(n, dtype=dtype)
    Z, v = (X, v) if m is None else (X[:m].copy(), v[:m])
    return (lambda: gram(kernel, X) @ v) if m is None else (lambda: gram(kernel, X, Z) @ v)


def fit(name: str, n: int, *args: Any, d: int = 10, classes: int = 0, **options: Any) -> Job:
    (X, y), model = data(n, d), known(name, *args, fit_intercept=False, random_state=0, **options)
    y = np.searchsorted(np.quantile(y, np.arange(1, classes) / classes), y) if classes else y
    return lambda: model.fit(X, y)


def one_row(name: str, n: int, *args: Any, **options: Any) -> Job:
    (X, y), model = data(n, 5), known(name, *args, fit_intercept=False, **{**options, "return_std": None})
    model.fit(X, y)
    return lambda: model.predict(X[:1], **({"return_std": True} if "Process" in name else {}))


def transform(name: str, n: int, dtype: str, *args: Any, **options: Any) -> Job:
    X = data(n, dtype=dtype)[0]
    model = known(name, *args, random_state=0, **options).fit(X)
    return lambda: model.transform(X)


RBF, NARROW = Gaussian.from_gamma(0.05), Matern(2.5, (2.0,) * 5)
GROUPS: dict[str, dict[str, Callable[[], Job]]] = {
    "products": {
        f"gram @ v, {kernel!r}, {dtype}, {'one sample of 2,500' if m is None else '5,000 x 2,000'}": (
            lambda kernel=kernel, dtype=dtype, m=m: product(kernel, 2_500 if m is None else 5_000, m, dtype)
        )
        for kernel in (Gaussian(2.0), Laplace(3.0))
        for dtype in ("float32", "float64")
        for m in (2_000, None)
    },
    "ridge": {
        "ridge, n=1,500": lambda: fit("KernelRidge", 1_500, RBF, alpha=0.1),
        "ridge, n=800, L1 Laplace": lambda: fit("KernelRidge", 800, Laplace(10.0, metric="l1"), alpha=0.1),
        "ridge, n=500, 30 alphas": lambda: fit(
            "KernelRidge", 500, RBF, alpha="loo", alphas=np.geomspace(1e-6, 100, 30)
        ),
        "ridge, n=1,500, pcg": lambda: fit("KernelRidge", 1_500, RBF, alpha=0.1, solver="pcg"),
    },
    "landmarks": {
        "ridge, n=5,000, 200 landmarks": lambda: fit("KernelRidge", 5_000, RBF, alpha=0.1, n_landmarks=200),
        "ridge, n=5,000, 200 features": lambda: fit("KernelRidge", 5_000, RBF, alpha=0.1, n_features=200),
        "ridge, n=3,000, falkon, 200 landmarks": lambda: fit(
            "KernelRidge", 3_000, RBF, alpha=0.1, n_landmarks=200, solver="falkon"
        ),
        "classes, n=3,000, 100 landmarks": lambda: fit(
            "KernelClassifier", 3_000, RBF, alpha=0.1, n_landmarks=100, classes=2
        ),
    },
    "features": {
        "Fourier transform, n=50,000, p=100": lambda: transform("RandomFourierFeatures", 50_000, "float64", 100, RBF),
        "Fourier transform, n=10,000, p=1,000": lambda: transform(
            "RandomFourierFeatures", 10_000, "float64", 1_000, RBF
        ),
        "Fourier transform, n=10,000, p=1,000, float32": lambda: transform(
            "RandomFourierFeatures", 10_000, "float32", 1_000, RBF
        ),
        "Nyström transform, n=50,000, p=100": lambda: transform(
            "NystromFeatures", 50_000, "float64", 100, kernel=RBF
        ),
        "Nyström transform, n=50,000, p=100, float32": lambda: transform(
            "NystromFeatures", 50_000, "float32", 100, kernel=RBF
        ),
        "KernelPCA fit, n=1,000": lambda: fit("KernelPCA", 1_000, 10, RBF),
    },
    "processes": {
        "process, n=100, learning": lambda: fit(
            "GaussianProcessRegressor", 100, NARROW, d=5, mean="zero", n_restarts=0
        ),
        "process, n=300, learning": lambda: fit(
            "GaussianProcessRegressor", 300, NARROW, d=5, mean="zero", n_restarts=0
        ),
        "process, n=800, as it is": lambda: fit(
            "GaussianProcessRegressor", 800, NARROW, d=5, mean="zero", noise=0.1, optimize=False, tune=False
        ),
        "process, n=2,000, sgpr": lambda: fit(
            "GaussianProcessRegressor", 2_000, NARROW, d=5, mean="zero", noise=0.1, method="sgpr", optimize=False,
            tune=False, n_inducing=200, n_landmarks=200,
        ),
    },
    "losses": {
        "classes, n=500": lambda: fit("KernelClassifier", 500, RBF, alpha=0.1, classes=2),
        "three classes, n=200": lambda: fit("KernelClassifier", 200, RBF, alpha=0.1, classes=3),
        "hinge, n=800": lambda: fit("KernelClassifier", 800, RBF, alpha=0.1, loss="hinge", classes=2),
        "huber, n=500": lambda: fit("KernelRegressor", 500, RBF, alpha=0.1, loss="huber"),
        "three quantiles, n=200": lambda: fit(
            "KernelRegressor", 200, RBF, alpha=0.1, loss="quantile", quantiles=[0.1, 0.5, 0.9]
        ),
    },
    "small": {
        "ridge, n=100": lambda: fit("KernelRidge", 100, RBF, d=5, alpha=0.1),
        "ridge, n=500": lambda: fit("KernelRidge", 500, RBF, d=5, alpha=0.1),
        "ridge, n=1,000": lambda: fit("KernelRidge", 1_000, RBF, d=5, alpha=0.1),
        "ridge, one row, n=500": lambda: one_row("KernelRidge", 500, RBF, alpha=0.1),
        "process, one row, n=200": lambda: one_row(
            "GaussianProcessRegressor", 200, NARROW, noise=0.1, optimize=False, tune=False
        ),
        "classes, n=100": lambda: fit("KernelClassifier", 100, RBF, d=5, alpha=0.1, classes=2),
    },
}  # fmt: skip


def least(job: Job) -> float:
    """The least of some times of the processor, in milliseconds, after a run that is not counted."""
    job()
    times, started = [], time.process_time()
    while len(times) < 3 or time.process_time() - started < SECONDS:
        before = time.process_time()
        job()
        times.append(1e3 * (time.process_time() - before))
    return min(times)


def measured(groups: str, source: Path) -> dict[str, float]:
    """The times of groups in a process of its own, which imports mercer from that source."""
    command = [sys.executable, "-m", "benchmarks.before_after", "--groups", groups, "--measure", str(source)]
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = os.environ | one | {"PYTHONPATH": str(source)}
    done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, check=True)
    times: dict[str, float] = json.loads(done.stdout)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the older source: the folder in which src stands")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--groups", default=",".join(GROUPS))
    parser.add_argument("--measure", action="store_true", help="print the times with the mercer that is imported")
    given = parser.parse_args()
    jobs = {name: make for group in given.groups.split(",") for name, make in GROUPS[group].items()}
    if given.measure:
        warnings.simplefilter("ignore")
        print(json.dumps({name: least(make()) for name, make in jobs.items()}))
        return
    turns = []
    for turn in range(given.turns):
        turns.append([measured(given.groups, source) for source in (given.folder / "src", HERE / "src")])
        print(f"turn {turn + 1} of {given.turns}: {json.dumps(turns[-1])}", file=sys.stderr, flush=True)
    print("| job | before, ms | now, ms | now / before |\n| --- | --- | --- | --- |")
    for name in jobs:
        before, now = (median(turn[side][name] for turn in turns) for side in (0, 1))
        ratio = now / before
        print(f"| {name} | {before:.3g} | {now:.3g} | {ratio:.2f}{' slower' * (ratio > SLOWER)} |")


if __name__ == "__main__":
    main()
