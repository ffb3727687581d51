"""Parts of a job run side by side, and leave torch's own threads as they were."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from mercer.core.threads import on_one_core, side_by_side


@pytest.fixture(autouse=True)
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_results_come_in_the_order_of_the_parts() -> None:
    assert side_by_side(range(50), lambda: lambda part: part * part, 3) == [i * i for i in range(50)]
    assert side_by_side([], lambda: lambda part: part, 3) == []


def test_parts_run_on_several_threads_that_each_have_tools_of_their_own() -> None:
    meeting, made = threading.Barrier(3, timeout=30), []

    def tools():
        made.append(threading.get_ident())
        return lambda part: (meeting.wait(), threading.get_ident())[1]

    idents = side_by_side(range(3), tools, 3)
    assert len(set(idents)) == 3
    assert set(idents) == set(made)
    assert threading.get_ident() not in idents


def test_inside_torch_has_one_thread_and_outside_as_many_as_before() -> None:
    assert side_by_side(range(6), lambda: lambda part: torch.get_num_threads(), 3) == [1] * 6
    assert on_one_core(torch.get_num_threads) == 1
    assert torch.get_num_threads() == 3
    with ThreadPoolExecutor(1) as others:  # threads that come later
        assert others.submit(torch.get_num_threads).result() == 3


def test_a_job_within_a_job_runs_where_it_is() -> None:
    def outer(part: int) -> bool:
        here = threading.get_ident()
        return side_by_side([0, 1], lambda: lambda _: threading.get_ident(), torch.get_num_threads()) == [here, here]

    assert side_by_side(range(8), lambda: outer, 3) == [True] * 8


def test_jobs_of_many_threads_share_the_same_threads() -> None:
    def job(_: int) -> set[int]:
        return set(side_by_side(range(20), lambda: lambda part: threading.get_ident(), 3))

    side_by_side(range(3), lambda: lambda part: part, 3)
    with ThreadPoolExecutor(8) as callers:
        used = set().union(*callers.map(job, range(16)))
    names = {thread.name for thread in threading.enumerate() if thread.ident in used}
    assert all(name.startswith("mercer-") for name in names)
    assert torch.get_num_threads() == 3


def test_an_error_reaches_the_caller_and_stops_the_rest() -> None:
    done = []

    def work(part: int) -> None:
        if part == 5:
            raise ValueError("part 5")
        done.append(part)

    with pytest.raises(ValueError, match="part 5"):
        side_by_side(range(100_000), lambda: work, 3)
    assert len(done) < 100_000
    assert torch.get_num_threads() == 3
    with pytest.raises(ZeroDivisionError):
        on_one_core(lambda: 1 // 0)


def test_parts_have_no_gradients_and_the_inference_mode_of_the_caller() -> None:
    assert side_by_side([0, 1], lambda: lambda part: torch.is_grad_enabled(), 2) == [False, False]
    with torch.inference_mode():
        assert side_by_side([0, 1], lambda: lambda part: torch.is_inference_mode_enabled(), 2) == [True, True]
        assert on_one_core(torch.is_inference_mode_enabled)
    assert on_one_core(torch.is_grad_enabled)
    with torch.no_grad():
        assert not on_one_core(torch.is_grad_enabled)


FORKED = """
import os, torch
from mercer import gram
from mercer.kernels import Gaussian
torch.set_num_threads(2)
X = torch.randn(1500, 3, generator=torch.Generator().manual_seed(0))
expected = gram(Gaussian(), X) @ torch.ones(1500)
child = os.fork()
if child == 0:
    same = torch.equal(gram(Gaussian(), X) @ torch.ones(1500), expected)
    os._exit(0 if same and torch.get_num_threads() == 2 else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_forked_child_has_threads_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=100)
    assert done.stdout == "0\n", done.stderr
