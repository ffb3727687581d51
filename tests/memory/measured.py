"""The peak of anonymous memory that a job adds to a process of its own."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import re
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

STATUS = Path("/proc/self/status")
OFTEN = 0.001
"""Seconds between two looks. The system's own peak counts pages of files too, which it takes away and brings back."""


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
    _fill_buffers()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    before, peaks = _anonymous(), []
    for step in steps:
        with _Watched() as watched:
            step()
        peaks.append(watched.peak - before)
    return peaks


def _fill_buffers(n: int = 1500) -> None:
    """Let the linear algebra of torch, numpy and scipy ask for its buffers: 4 to 8 MiB each, whatever the rows."""
    import numpy as np
    import torch
    from scipy.linalg.lapack import dpotrf

    A = np.eye(n)
    torch.from_numpy(A) @ torch.from_numpy(A)
    dpotrf(A @ A, lower=1)


class _Watched:
    """Looks at the anonymous memory of this process, often, while work goes on."""

    def __enter__(self) -> _Watched:
        self.peak, self._ended = _anonymous(), threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(OFTEN):
            self.peak = max(self.peak, _anonymous())


def _anonymous() -> int:
    return 1024 * int(re.search(r"RssAnon:\s+(\d+)", STATUS.read_text())[1])  # type: ignore[index]
