"""What a fit to rows from a file adds to the memory of the process stays below its budget, however large the file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs the peak memory of Linux")

BUDGET = 224 * 2**20

CODE = """
    import json, re, sys
    import numpy as np, pyarrow as pa, pyarrow.parquet as pq
    from mercer import KernelRidge
    from mercer.core.memory import give_back
    from mercer.kernels import Gaussian
    from mercer.rows import ArrayRows, ParquetRows, npy_rows

    place, kind, solver = sys.argv[1:4]
    rows, columns, at_once = 4_400_000, 40, 16_384
    if kind == "parquet":
        rows, columns = 8_000_000, 10
    names = [f"x{j}" for j in range(columns)]

    def write():
        some = np.random.default_rng(0).standard_normal((100_000, columns), dtype=np.float32)
        if kind == "parquet":
            some = np.round(some.astype(np.float64), 2)  # few different values: small on the disk
            table = pa.table({name: some[:, j] for j, name in enumerate(names)} | {"y": np.sin(some[:, 0])})
            with pq.ParquetWriter(f"{place}/rows.parquet", table.schema) as writer:
                for _ in range(rows // len(some)):
                    writer.write_table(table)
            return 8 * rows * (columns + 1)
        with open(f"{place}/X.npy", "wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (rows, columns)}
            np.lib.format.write_array_header_2_0(file, header)
            for _ in range(rows // len(some)):
                file.write(some.tobytes())
        np.save(f"{place}/y.npy", np.tile(np.sin(some[:, 0]), rows // len(some)))
        return 4 * rows * (columns + 1)

    def source(target):
        if kind == "parquet":
            return ParquetRows(f"{place}/rows.parquet", "y" if target else None, names, rows_at_once=at_once)
        if kind == "npy":
            return npy_rows(f"{place}/X.npy", f"{place}/y.npy" if target else None, rows_at_once=at_once)
        X, y = (np.load(f"{place}/{name}.npy", mmap_mode="r") for name in "Xy")
        return ArrayRows(X, y if target else None, rows_at_once=at_once)

    def memory(kind):
        return 1024 * int(re.search(kind + r":\\s+(\\d+)", open("/proc/self/status").read())[1])

    size = write()
    give_back()
    open("/proc/self/clear_refs", "w").write("5")  # the peak is counted from here
    before = memory("VmRSS")
    options = {"memory_budget": int(sys.argv[4]), "max_iter": 2, "tol": 0.1}
    model = KernelRidge(Gaussian(6.0), solver=solver, n_landmarks=20, **options)
    model.fit(source(True))
    fitted = memory("VmHWM") - before
    model.predict(source(False))
    print(json.dumps({"size": size, "fit": fitted, "both": memory("VmHWM") - before}))
"""


@pytest.mark.parametrize(
    ("kind", "solver"),
    [
        ("parquet", "nystrom"),
        pytest.param("npy", "nystrom", marks=pytest.mark.slow),
        pytest.param("map", "nystrom", marks=pytest.mark.slow),
        pytest.param("npy", "falkon", marks=pytest.mark.slow),
        pytest.param("parquet", "falkon", marks=pytest.mark.slow),
    ],
)
def test_a_fit_to_files_larger_than_its_budget_stays_below_it(kind, solver, tmp_path):
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(CODE), str(tmp_path), kind, solver, str(BUDGET)],
        env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=110,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["size"] >= 2.9 * BUDGET
    assert found["fit"] < BUDGET
    assert found["both"] < BUDGET
