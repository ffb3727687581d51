"""A fit that is killed, at any time and as often as one likes, goes on from its checkpoint to the same coefficients."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

ROWS, PARTS = 6_000, 15

DRIVER = """
    import json, os, pathlib, random, signal, sys, time, warnings
    import numpy as np, torch
    from mercer import KernelRidge
    from mercer.data import checkpoint
    from mercer.data.rows import ParquetRows

    warnings.simplefilter("ignore")
    checkpoint.SECONDS = 0.0
    place = pathlib.Path(sys.argv[1])
    solver, alpha, kills, seed = json.loads(sys.argv[2])

    class Slowly(ParquetRows):
        wait = 0.0

        def load(self, part):
            time.sleep(self.wait)
            return super().load(part)

    def fit(name, wait):
        '''In a process of its own: every one begins as this one is now, before any computation.'''
        child = os.fork()
        if child:
            return child
        try:
            torch.set_num_threads(1)
            model = KernelRidge(
                "gaussian", alpha=alpha, solver=solver, n_landmarks=40, tol=1e-8, random_state=3,
                checkpoint=place / f"{name}.checkpoint", memory_budget="1GiB",
            )
            source = Slowly(place / "rows", "y")
            source.wait = wait
            np.save(place / f"{name}.npy", model.fit(source).dual_coef_)
            os._exit(0)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)

    began = time.monotonic()
    assert os.waitpid(fit("whole", 0.004), 0)[1] == 0
    whole, seconds = np.load(place / "whole.npy"), time.monotonic() - began
    chance, file, killed, steps = random.Random(seed), place / "killed.checkpoint", 0, []
    while killed < kills or not steps or not (place / "killed.npy").exists():
        child = fit("killed", 0.004)
        if killed < kills or not steps:
            time.sleep(chance.uniform(0.3, 0.9) * seconds)
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        killed += os.WIFSIGNALED(status)
        if not os.WIFSIGNALED(status):
            assert status == 0
            assert np.array_equal(np.load(place / "killed.npy"), whole)
            if killed < kills or not steps:
                (place / "killed.npy").unlink()
        elif file.exists():
            steps.append(checkpoint.read_model(file, {checkpoint.CLASS})[1]["steps"])
    print(json.dumps(steps))
"""


@pytest.fixture
def place(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(ROWS)
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})
    (tmp_path / "rows").mkdir()
    for i in range(2):
        half = table.slice(i * ROWS // 2, ROWS // 2)
        pq.write_table(half, tmp_path / "rows" / f"{i}.parquet", row_group_size=ROWS // PARTS)
    return tmp_path


def killed_and_resumed(place, solver, alpha, kills, seed):
    """The coefficients of a fit that nobody disturbs and of one that is killed, and how far that had come each time."""
    job = json.dumps([solver, alpha, kills, seed])
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(DRIVER), str(place), job],
        env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert not list(place.glob("*.checkpoint"))
    assert not list(place.glob(".mercer-*"))  # nor what was being written when it was killed
    return np.load(place / "whole.npy"), np.load(place / "killed.npy"), json.loads(result.stdout.splitlines()[-1])


@pytest.mark.parametrize("solver", ["nystrom", "falkon"])
def test_a_fit_that_is_killed_twice_ends_with_the_same_bits(solver, place):
    whole, found, steps = killed_and_resumed(place, solver, 1e-2, kills=2, seed=0)
    np.testing.assert_array_equal(found, whole)
    assert steps  # something had been saved when it was killed


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("solver", "alpha"), [("nystrom", 1e-2), ("nystrom", "loo"), ("falkon", 1e-5)])
def test_a_fit_that_is_killed_ten_times_ends_with_the_same_bits(solver, alpha, place):
    whole, found, steps = killed_and_resumed(place, solver, alpha, kills=10, seed=1)
    np.testing.assert_array_equal(found, whole)
    assert steps  # something had been saved when it was killed
