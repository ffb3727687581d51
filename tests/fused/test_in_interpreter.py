"""The laws of the fused products, run by Triton's interpreter in a process of their own.

Triton decides at import whether it interprets, so the process that runs the other tests must not be touched.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")
HERE = Path(__file__).parent


@pytest.mark.timeout(920)
@pytest.mark.parametrize(
    ("laws", "chosen"),
    [
        ("products", "not slow"),
        ("near_points", "not slow"),
        ("gradients operators tensor_cores", "not slow"),
        pytest.param("products", "slow", marks=pytest.mark.slow),
    ],
)
def test_fused_laws_hold_in_the_interpreter(laws: str, chosen: str) -> None:
    files = [str(HERE / f"laws_of_{name}.py") for name in laws.split()]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += ["--timeout", "300", "-m", chosen, *files]
    environment = os.environ | {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, cwd=HERE.parents[1], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
