"""Threads that each work on tiles of their own.

One thread per core with single-threaded torch does as well as torch's own threads on a quiet machine, and much better
on a busy one: torch's threads meet after every operation, and each meeting waits for whichever core is late.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

import torch

_pools: dict[int, ThreadPoolExecutor] = {}
_making = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)  # threads do not survive a fork


def run_workers(works: Sequence[Iterator[None]]) -> None:
    """Run all iterators to their ends, each in its own thread; one alone runs here.

    An error in one, or Ctrl-C, stops the others at their next step and is raised when all have stopped.
    """
    if len(works) == 1:
        for _ in works[0]:
            pass
        return
    stop = threading.Event()
    pool = _pool(len(works))
    futures = [pool.submit(_work, work, stop) for work in works]
    try:
        wait(futures)
    finally:
        stop.set()
        wait(futures)
    for future in futures:
        future.result()


def _work(work: Iterator[None], stop: threading.Event) -> None:
    try:
        with torch.no_grad():
            for _ in work:
                if stop.is_set():
                    return
    except BaseException:
        stop.set()
        raise


def _pool(size: int) -> ThreadPoolExecutor:
    """Threads that stay, each with single-threaded torch; the setting of the calling thread is left as it was."""
    with _making:
        if size not in _pools:
            n_threads = torch.get_num_threads()
            pool = ThreadPoolExecutor(size, thread_name_prefix="mercer-tiles")
            ready = threading.Barrier(size + 1)
            try:
                for _ in range(size):
                    pool.submit(_prepare, ready)
                ready.wait()
            except BaseException:
                ready.abort()
                raise
            torch.set_num_threads(n_threads)  # what a worker sets is also the default of threads to come
            _pools[size] = pool
        return _pools[size]


def _prepare(ready: threading.Barrier) -> None:
    torch.set_num_threads(1)
    ready.wait()
