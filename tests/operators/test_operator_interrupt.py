"""Ctrl-C stops a long product promptly and leaves the operator usable."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

LONG_PRODUCT = """
import torch
from mercer import gram
from mercer.kernels import Gaussian

X = torch.randn(400_000, 3, generator=torch.Generator().manual_seed(0))
operator = gram(Gaussian(), X)
small = gram(Gaussian(), X[:50])
before = small @ torch.ones(50)
print("started", flush=True)
try:
    operator @ torch.ones(400_000)
except KeyboardInterrupt:
    assert torch.equal(before, small @ torch.ones(50))
    assert operator.rows(0).shape == (400_000,)
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_interrupts_a_long_product() -> None:
    with subprocess.Popen([sys.executable, "-c", LONG_PRODUCT], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "started\n"
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        asked = time.monotonic()
        assert child.stdout.readline() == "interrupted\n"
        assert time.monotonic() - asked < 30  # the whole product takes minutes
        assert child.wait(timeout=30) == 0
