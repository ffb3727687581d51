"""A few threads that each work on tiles of their own.

Torch's own threads meet after every operation, and on a busy machine each meeting waits for whichever core is late;
workers that share nothing but a list of strips do not.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

import torch

MOST_WORKERS = 4
"""More than this and they wait for Python's lock; further cores then serve as torch's own threads of each worker."""

_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}
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
    pool = _pool(len(works), max(1, torch.get_num_threads() // len(works)))
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


def _pool(size: int, threads_each: int) -> ThreadPoolExecutor:
    """Threads that stay, with their own number of torch threads; the calling thread keeps the number it has."""
    with _making:
        if (size, threads_each) not in _pools:
            n_threads = torch.get_num_threads()
            pool = ThreadPoolExecutor(size, thread_name_prefix="mercer-tiles")
            ready = threading.Barrier(size + 1)
            try:
                for _ in range(size):
                    pool.submit(_prepare, threads_each, ready)
                ready.wait()
            except BaseException:
                ready.abort()
                raise
            torch.set_num_threads(n_threads)  # what a worker sets is also the default of threads to come
            _pools[size, threads_each] = pool
        return _pools[size, threads_each]


def _prepare(threads: int, ready: threading.Barrier) -> None:
    torch.set_num_threads(threads)
    ready.wait()
