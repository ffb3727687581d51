"""The same fit in one process, on a cluster of two, and while 20 workers are killed; and what an engine costs.

Rows come from a `.npy` file. Times of the cluster are those of two processes with one thread each, against one process
with one thread. The cost of the engine is that of a cluster of one worker, with tasks of about a second.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import numpy as np
import torch
from distributed import Client, LocalCluster
from sklearn.exceptions import ConvergenceWarning

from benchmarks import Row
from mercer import KernelRidge
from mercer.data.engines.dask import DaskEngine
from mercer.kernels import Gaussian
from mercer.rows import ArrayRows, npy_rows

N_ROWS, N_COLUMNS, N_LANDMARKS = 60_000, 10, 1000
KILLS = 20
SOLVERS: dict[str, dict[str, Any]] = {
    "nystrom": {"solver": "nystrom"},
    "falkon": {"solver": "falkon", "tol": 1e-9, "max_iter": 4},
    "random features": {"solver": "random_features"},
}
PRECISION = 1e-6


def run() -> list[Row]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # Falkon is stopped early: its iterations are the work
            return _all(Path(folder))
    finally:
        torch.set_num_threads(threads)


def _all(folder: Path) -> list[Row]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, N_COLUMNS))
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(N_ROWS))
    new, rows = rng.standard_normal((1000, N_COLUMNS)), []
    source = npy_rows(folder / "X.npy", folder / "y.npy", rows_at_once=2_000)
    alone: dict[str, tuple[np.ndarray, float]] = {}
    for name, options in SOLVERS.items():
        alone[name] = _timed(lambda options=options: _fit(options, None, source, new))
    with _cluster(1) as client:
        for name, options in SOLVERS.items():
            rows.append(_cost_of_the_engine(name, options, client, source, new))
    with _cluster(2) as client:
        for name, options in SOLVERS.items():
            found, seconds = _timed(lambda options=options: _fit(options, client, source, new))
            expected, before = alone[name]
            rows.append(Row(f"{name}, two processes", "one process", seconds, before, unit="s"))
            rows.append(_difference(f"{name}, difference of two processes", found, expected))
        rows += _killed(client, source, new, {name: found for name, (found, _) in alone.items()})
    return rows


def _cluster(workers: int) -> Any:
    """A client of a new cluster of processes, which ends with it."""
    dask.config.set({"distributed.deploy.lost-worker-timeout": "300s"})
    cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs="CRITICAL")
    client = Client(cluster)
    client.run(_warm_up)
    end = client.close
    client.close = lambda *args, **kwargs: (end(*args, **kwargs), cluster.close())
    return client


def _warm_up() -> float:
    return float(torch.ones(500, 500).double().matmul(torch.ones(500, 500).double()).sum())


def _fit(options: dict[str, Any], client: Any, source: ArrayRows, new: np.ndarray) -> np.ndarray:
    landmarks = {} if options["solver"] == "random_features" else {"n_landmarks": N_LANDMARKS}
    model = KernelRidge(
        Gaussian(3.0), fit_intercept=False, alpha=1.0, n_features=N_LANDMARKS, client=client, **landmarks, **options
    )
    if landmarks:
        model.set_params(n_features=None)
    return model.fit(source).predict(new)


def _timed(function: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    started = time.perf_counter()
    found = function()
    return found, time.perf_counter() - started


def _difference(name: str, found: np.ndarray, expected: np.ndarray) -> Row:
    difference = float(np.linalg.norm(found - expected) / np.linalg.norm(expected))
    return Row(name, "1e-6, times 1e9", max(1e9 * difference, 1e-7), 1e9 * PRECISION, unit="", target=1.0)


def _cost_of_the_engine(name: str, options: dict[str, Any], client: Client, source: ArrayRows, new: np.ndarray) -> Row:
    """One worker against this process, in turns; groups of rows are those that take about a second."""
    passes = 6 if options["solver"] == "falkon" else 1
    seconds = _timed(lambda: _fit(options, None, source, new))[1] / passes
    engine = DaskEngine(client, group_rows=max(2_000, int(N_ROWS / max(1.0, seconds))))
    ours, theirs = [], []
    for _ in range(3):
        theirs.append(_timed(lambda: _fit(options, None, source, new))[1])
        ours.append(_timed(lambda: _fit(options, engine, source, new))[1])
    print(f"{name}: groups of {engine.group_rows:,} rows, {ours} against {theirs}", file=sys.stderr)
    return Row(f"{name}, engine with one worker", "this process", min(ours), min(theirs), unit="s", target=1 / 1.15)


def _killed(client: Client, source: ArrayRows, new: np.ndarray, expected: dict[str, np.ndarray]) -> list[Row]:
    """Fits one after the other until 20 workers were killed; the largest difference of each kind."""
    engine = DaskEngine(client, group_rows=N_ROWS // 30, patience=300.0)
    done, kills = threading.Event(), []

    def kill() -> None:
        chance = random.Random(0)
        while len(kills) < KILLS and not done.wait(chance.uniform(0.2, 6.0)):
            there = list(client.run(os.getpid, on_error="ignore").values())
            if there:
                os.kill(chance.choice(there), signal.SIGKILL)
                kills.append(time.perf_counter())

    killer, started, fits = threading.Thread(target=kill, daemon=True), time.perf_counter(), 0
    worst = {name: np.zeros(0) for name in SOLVERS}
    killer.start()
    while len(kills) < KILLS:
        for name, options in SOLVERS.items():
            found = _fit(options, engine, source, new)
            fits += 1
            if not len(worst[name]) or np.linalg.norm(found - expected[name]) > np.linalg.norm(
                worst[name] - expected[name]
            ):
                worst[name] = found
    done.set()
    killer.join()
    seconds = time.perf_counter() - started
    print(f"{fits} fits with {len(kills)} workers killed in {seconds:.0f} s, all of them ended", file=sys.stderr)
    return [_difference(f"{name}, difference, workers killed", worst[name], expected[name]) for name in SOLVERS]
