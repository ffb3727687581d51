"""Full kernel ridge regression on 36,000 rows: conjugate gradients in 4 GiB against a dense Cholesky factor in torch.

Both fit and predict in a process of their own, whose peak memory is read at the end. Needs kin40k in MERCER_DATA, and
some 14 GiB of free memory for the dense matrix.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks import Row
from benchmarks.real_data import Split, find, split
from mercer import KernelRidge
from mercer.kernels import Matern

LENGTH_SCALE = (3.7, 3.3, 2.0, 2.4, 2.3, 1.8, 1.8, 2.5)
ALPHA = 0.03
BUDGET = "4GiB"
ROWS_AT_ONCE = 500


def run() -> list[Row]:
    if find("kin40k") is None:
        print("cpu_scale is left out: kin40k.npz is not in MERCER_DATA", file=sys.stderr)
        return []
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = (_job(solver, Path(folder) / f"{solver}.npy") for solver in ("pcg", "dense"))
        found, expected = (np.load(Path(folder) / f"{solver}.npy") for solver in ("pcg", "dense"))
    difference = float(np.linalg.norm(found - expected) / np.linalg.norm(expected))
    print(f"pcg: {ours}\ndense: {theirs}\nrelative difference of the predictions {difference:.1e}", file=sys.stderr)
    assert difference < 1e-3, difference
    name = f"kin40k, full ridge, {ours['rows']:,} rows"
    return [
        Row(f"{name}, PCG", "Cholesky, float64 torch", ours["seconds"], theirs["seconds"], unit="s"),
        Row(f"{name}, peak memory", "Cholesky, float64 torch", ours["peak"], theirs["peak"], unit="MiB"),
        Row(f"{name}, peak memory", "4 GiB", ours["peak"], 4096.0, unit="MiB", target=1.0),
    ]


def _job(solver: str, out: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.cpu_scale", solver, str(out)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(output.splitlines()[-1])


def pcg(data: Split) -> tuple[np.ndarray, dict[str, float]]:
    model = KernelRidge(
        Matern(2.5, LENGTH_SCALE),
        fit_intercept=False,
        alpha=ALPHA,
        solver="pcg",
        memory_budget=BUDGET,
        device="cpu",
        tol=1e-5,
    )
    predicted = model.fit(data.X, data.y).predict(data.X_test)
    account = model.solver_report_
    return predicted, {"iterations": account.iterations, "residual": account.residual}


def dense(data: Split) -> tuple[np.ndarray, dict[str, float]]:
    """One matrix, filled block by block and factorised in place."""
    X, X_test, y = (torch.from_numpy(a).double() for a in (data.X, data.X_test, data.y))
    K = torch.empty(len(X), len(X), dtype=torch.float64)
    for start in range(0, len(X), ROWS_AT_ONCE):
        K[start : start + ROWS_AT_ONCE] = matern(X[start : start + ROWS_AT_ONCE], X)
    K.diagonal().add_(ALPHA)
    columns, info = K.mT, torch.empty((), dtype=torch.int32)
    torch.linalg.cholesky_ex(columns, out=(columns, info))
    assert int(info) == 0
    c = torch.cholesky_solve(y.unsqueeze(1), columns)
    blocks = [matern(rows, X) @ c for rows in X_test.split(ROWS_AT_ONCE)]
    return torch.cat(blocks).squeeze(1).numpy(), {}


def matern(x: Tensor, z: Tensor) -> Tensor:
    """(1 + u + u^2 / 3) exp(-u), u = sqrt(5) r."""
    scale = torch.tensor(LENGTH_SCALE, dtype=torch.float64) / math.sqrt(5.0)
    u = torch.cdist(x / scale, z / scale)
    return (1.0 + u + u.square() / 3.0) * torch.exp(-u)


def main(solver: str, out: str) -> None:
    data = split("kin40k")
    started = time.perf_counter()
    predicted, account = {"pcg": pcg, "dense": dense}[solver](data)
    seconds = time.perf_counter() - started
    np.save(out, predicted)
    status = Path("/proc/self/status").read_text()
    peak = int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]
    numbers = {"rows": len(data.y), "seconds": seconds, "peak": peak, "rmse": data.rmse(predicted), **account}
    print(json.dumps(numbers))


if __name__ == "__main__":
    main(*sys.argv[1:])
