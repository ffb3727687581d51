"""The peak of anonymous memory that a job adds to a process of its own."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peaks_of(case: Callable[..., Any], *values: Any) -> list[int]:
    """Bytes above what was there before, at the peak of each step of a job, in a new process.

    ``case(*values)`` gives the steps, after a smaller job that loaded what libraries load once. A step may use what
    those before it made, and that counts.
    """
    with ProcessPoolExecutor(1, _context(), initializer=_one_thread) as process:
        return process.submit(_measured, case, values).result()


def _context() -> Any:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["mercer", "mercer.processes", "scipy.optimize", "scipy.linalg"])
    return context


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def _measured(case: Callable[..., Any], values: tuple[Any, ...]) -> list[int]:
    steps = case(*values)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before, peaks = _bytes("VmRSS") - _bytes("RssFile"), []
    for step in steps:
        RESET.write_text("5")  # the peak is counted from here
        step()
        peaks.append(_bytes("VmHWM") - _bytes("RssFile") - before)
    return peaks


def _bytes(field: str) -> int:
    return 1024 * int(re.search(field + r":\s+(\d+)", STATUS.read_text())[1])  # type: ignore[index]
