"""Ctrl-C stops a long product promptly and leaves the operator usable."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
import torch

from mercer.operators.backends.parallel import run_workers

LONG_PRODUCT = """
import sys, time
import torch
from mercer import gram
from mercer.kernels import Gaussian

torch.set_num_threads({threads})
X = torch.randn(400_000, 3, generator=torch.Generator().manual_seed(0))
operator = gram(Gaussian(), X)
small = gram(Gaussian(), X[:50])
before = small @ torch.ones(50)
print("started", flush=True)
try:
    operator @ torch.ones(400_000)
except KeyboardInterrupt:
    assert torch.get_num_threads() == {threads}
    assert torch.equal(before, small @ torch.ones(50))
    assert operator.rows(0).shape == (400_000,)
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_interrupts_a_long_product(threads: int) -> None:
    script = LONG_PRODUCT.format(threads=threads)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "started\n"
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        asked = time.monotonic()
        assert child.stdout.readline() == "interrupted\n"
        assert time.monotonic() - asked < 30  # the whole product takes minutes
        assert child.wait(timeout=30) == 0


def test_an_error_in_one_worker_stops_the_others_and_is_raised() -> None:
    steps = 0

    def endless() -> Iterator[None]:
        nonlocal steps
        while True:
            steps += 1
            time.sleep(0.001)
            yield

    def failing() -> Iterator[None]:
        yield
        raise ValueError("tile 7")

    with pytest.raises(ValueError, match="tile 7"):
        run_workers([endless(), failing(), endless()])
    stopped_at = steps
    time.sleep(0.02)
    assert steps == stopped_at


@pytest.mark.usefixtures("two_workers")
def test_threads_made_after_a_product_have_torch_threads_as_before() -> None:
    run_workers([iter([None]), iter([None])])
    seen = []
    thread = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert seen == [2]
