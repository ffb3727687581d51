"""Nyström regression streamed from a Parquet file against the same fit to arrays in memory.

Each fit runs in a process of its own on two threads, whose peak memory is read at the end. Reading the file into arrays
is not counted for the fit in memory. Both kinds alternate, and the best of several runs counts.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import Row
from mercer import KernelRidge
from mercer.kernels import Gaussian
from mercer.rows import ParquetRows

ROWS = (750_000, 1_500_000, 3_000_000)
COLUMNS, LANDMARKS, ROW_GROUP = 9, 500, 2**17
BUDGET = "1GiB"
REPEATS = 2


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for n in ROWS for row in _compare(n, Path(folder))]
    return rows


def _compare(n: int, folder: Path) -> list[Row]:
    file = folder / f"{n}.parquet"
    write(file, n)
    found: dict[str, list[dict[str, Any]]] = {"streamed": [], "memory": []}
    for _ in range(REPEATS):
        for kind, runs in found.items():
            runs.append(_job(kind, file))
    best = {kind: {key: min(run[key] for run in runs) for key in runs[0]} for kind, runs in found.items()}
    ours, theirs = best["streamed"], best["memory"]
    assert abs(ours["checksum"] - theirs["checksum"]) < 1e-6 * abs(theirs["checksum"])
    numbers = [f"{n:,}", f"{n / ours['seconds']:,.0f}", f"{ours['seconds']:.1f}", f"{ours['peak']:,.0f}"]
    numbers += [f"{theirs['seconds']:.1f}", f"{theirs['peak']:,.0f}", f"{ours['seconds'] / theirs['seconds']:.2f}"]
    numbers += [f"{ours['cpu']:.1f}", f"{theirs['cpu']:.1f}", f"{ours['cpu'] / theirs['cpu']:.2f}"]
    print("| " + " | ".join(numbers) + " |", file=sys.stderr, flush=True)
    name = f"Nyström, {n:,} rows from Parquet"
    return [
        Row(name, "1.3 x in memory", ours["seconds"], 1.3 * theirs["seconds"], unit="s", target=1.0),
        Row(f"{name}, peak memory", "2 GiB", ours["peak"], 2048.0, unit="MiB", target=1.0),
    ]


def write(file: Path, n: int) -> None:
    """Rows in float32, row group by row group."""
    import pyarrow
    import pyarrow.parquet

    rng, writer = np.random.default_rng(0), None
    for start in range(0, n, ROW_GROUP):
        X = rng.standard_normal((min(ROW_GROUP, n - start), COLUMNS), dtype=np.float32)
        y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.standard_normal(len(X), dtype=np.float32)
        table = pyarrow.table({f"x{j}": X[:, j] for j in range(COLUMNS)} | {"y": y})
        writer = writer or pyarrow.parquet.ParquetWriter(file, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def _job(kind: str, file: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.out_of_core", kind, str(file)]
    environment = os.environ | {"OMP_NUM_THREADS": "2"}
    output = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    return json.loads(output.splitlines()[-1])


def main(kind: str, file: str) -> None:
    landmarks = np.random.default_rng(1).standard_normal((LANDMARKS, COLUMNS), dtype=np.float32)
    model = KernelRidge(
        Gaussian(3.0),
        fit_intercept=False,
        alpha=1.0,
        solver="nystrom",
        landmarks=landmarks,
        memory_budget=BUDGET,
        device="cpu",
    )
    data = _in_memory(file) if kind == "memory" else None
    started, used = time.perf_counter(), time.process_time()
    if data is None:
        model.fit(ParquetRows(file, "y"))
    else:
        model.fit(*data)
    seconds, cpu = time.perf_counter() - started, time.process_time() - used
    peak = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024  # type: ignore[index]
    checksum = float(np.abs(model.predict(np.eye(COLUMNS, dtype=np.float32))).sum())
    print(json.dumps({"seconds": seconds, "cpu": cpu, "peak": peak, "checksum": checksum}))


def _in_memory(file: str) -> tuple[np.ndarray, np.ndarray]:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(file)
    X = np.empty((len(table), COLUMNS), dtype=np.float32)
    for j in range(COLUMNS):
        X[:, j] = table.column(f"x{j}").to_numpy()
    return X, table.column("y").to_numpy()


if __name__ == "__main__":
    main(*sys.argv[1:])
