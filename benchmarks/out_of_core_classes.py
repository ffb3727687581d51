"""Logistic classification of 500,000 rows of covtype on 1,000 landmarks, read in parts.

``python -m benchmarks.out_of_core_classes results.jsonl [rows [kinds]]``: the most frequent kind of forest against the
others, columns by their deviations. Each fit runs in a process of its own, whose peak of memory is read at the end:
from a Parquet file, killed and going on from its checkpoint, on two Dask processes of which one is killed, and from
arrays in memory. Results are added to the file line by line.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.processor import processor
from mercer import KernelClassifier
from mercer.kernels import Gaussian
from mercer.rows import ParquetRows

DATA = Path(os.environ.get("MERCER_DATA", "")) / "large" / "covtype.npz"
ROWS, TEST, LANDMARKS, ROW_GROUP = 500_000, 80_000, 1000, 2**16
BUDGET = "1GiB"
KINDS = ("streamed", "resumed", "dask", "memory")


def prepare(folder: Path, rows: int) -> None:
    """Training rows as Parquet, test rows and landmarks as arrays."""
    import pyarrow
    import pyarrow.parquet

    found = np.load(DATA)
    order = np.random.default_rng(0).permutation(len(found["y"]))[: rows + TEST]
    X, y = found["X"][order].astype(np.float64), (found["y"][order] == 2).astype(np.int64)
    spread = X[:rows].std(0)
    X = ((X - X[:rows].mean(0)) / np.where(spread > 0, spread, 1.0)).astype(np.float32)
    table = pyarrow.table({f"x{j}": X[:rows, j] for j in range(X.shape[1])} | {"kind": y[:rows]})
    pyarrow.parquet.write_table(table, folder / "rows.parquet", row_group_size=ROW_GROUP)
    np.savez(folder / "test.npz", X=X[rows:], y=y[rows:], landmarks=X[:LANDMARKS])


def job(folder: Path, kind: str) -> None:
    """One fit, with its time, peak of memory, accuracy and a digest of its numbers."""
    test = np.load(folder / "test.npz")
    model = KernelClassifier(
        Gaussian(4.0), alpha=1.0, solver="nystrom", landmarks=test["landmarks"], memory_budget=BUDGET, device="cpu"
    )
    source = ParquetRows(folder / "rows.parquet", target="kind")
    if kind == "memory":
        model.set_params(memory_budget="6GiB")
        chunks = list(source)
        X, y = (np.concatenate([np.asarray(chunk[i]) for chunk in chunks]) for i in (0, 1))
        started = time.perf_counter()
        model.fit(X, y[:, 0].astype(np.int64))
    elif kind == "dask":
        started = _on_two(model, source)
    else:
        if kind != "streamed":
            model.set_params(checkpoint=folder / "fit.checkpoint")
        started = time.perf_counter()
        model.fit(source)
    seconds = time.perf_counter() - started
    peak = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024  # type: ignore[index]
    decisions = model.decision_function(test["X"])
    np.save(folder / f"{kind}.npy", np.append(model.dual_coef_, model.intercept_))
    np.save(folder / f"{kind}-decisions.npy", decisions)
    right = float(((decisions > 0) == test["y"]).mean())
    print(json.dumps({"seconds": seconds, "peak": peak, "accuracy": right, "report": str(model.solver_report_)}))


def _on_two(model: KernelClassifier, source: ParquetRows) -> float:
    """A fit by two processes, of which one is killed on the way; the time at which it began."""
    import dask
    from distributed import Client, LocalCluster

    dask.config.set({"distributed.deploy.lost-worker-timeout": "300s"})
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs="CRITICAL") as cluster,
        Client(cluster) as client,
    ):

        def kill() -> None:
            time.sleep(15.0)
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

        threading.Thread(target=kill, daemon=True).start()
        started = time.perf_counter()
        model.set_params(client=client).fit(source)
        model.set_params(client=None)
    return started


def run(path: Path, kinds: list[str], rows: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, rows)
        for kind in kinds:
            killed = _killed(folder) if kind == "resumed" else 0.0
            found: dict[str, Any] = {"kind": kind, "rows": rows, **_spawned(folder, kind)}
            if kind == "resumed":
                found |= {"killed after": killed, "same bits": _same(folder, "resumed", "streamed")}
            elif kind != "streamed" and (folder / "streamed.npy").exists():
                a, b = (np.load(folder / f"{k}-decisions.npy") for k in (kind, "streamed"))
                found |= {"largest difference of decisions": float(np.abs(a - b).max()), "of": float(np.abs(b).max())}
            with path.open("a") as file:
                file.write(json.dumps(found) + "\n")
            print(found, flush=True)


def _command(folder: Path, kind: str) -> tuple[list[str], dict[str, str]]:
    threads = "1" if kind == "dask" else os.environ.get("OMP_NUM_THREADS", "2")
    return [sys.executable, "-m", "benchmarks.out_of_core_classes", "job", str(folder), kind], {
        **os.environ,
        "OMP_NUM_THREADS": threads,
    }


def _spawned(folder: Path, kind: str) -> dict[str, Any]:
    command, environment = _command(folder, kind)
    found = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(found.stdout.splitlines()[-1]))


def _killed(folder: Path) -> float:
    """A fit that is killed a while after its first checkpoint was written; how long that took."""
    command, environment = _command(folder, "resumed")
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    while not (folder / "fit.checkpoint").exists() and process.poll() is None:
        time.sleep(0.1)
    time.sleep(3.0)
    process.kill()
    process.wait()
    return time.perf_counter() - started


def _same(folder: Path, a: str, b: str) -> bool:
    return bool(np.array_equal(np.load(folder / f"{a}.npy"), np.load(folder / f"{b}.npy")))


if __name__ == "__main__":
    if sys.argv[1] == "job":
        job(Path(sys.argv[2]), sys.argv[3])
    else:
        print(processor())
        run(Path(sys.argv[1]), sys.argv[3:] or list(KINDS), int(sys.argv[2]) if len(sys.argv) > 2 else ROWS)
