"""Parts of a job side by side: each thread does whole parts, and no operation inside is split further.

Threads within small operations meet after each of them; those here meet once a job. How many there are follows
``torch.get_num_threads()`` of the caller. They are shared by all callers, so that jobs that run at the same time take
no more cores than one job; in them torch has one thread, so that a job within a job runs where it is.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np
import torch

P = TypeVar("P")
R = TypeVar("R")


_here = threading.local()


class _Pool:
    """Threads that wait for work, as many as were ever asked for."""

    def __init__(self) -> None:
        self.waiting: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.count = 0
        self.lock = threading.Lock()

    def grow(self, count: int) -> None:
        with self.lock:
            while self.count < count:
                self._start()

    def _start(self) -> None:
        """One more thread. Torch keeps its number of threads for each, and one for those to come, which is put back."""
        before, ready = torch.get_num_threads(), threading.Event()
        self.count += 1
        threading.Thread(target=self._work, args=(ready,), name=f"mercer-{self.count}", daemon=True).start()
        try:
            ready.wait()
        finally:
            torch.set_num_threads(before)

    def _work(self, ready: threading.Event) -> None:
        _here.within = True
        torch.get_num_threads()  # the first call in a thread takes the number of the others
        torch.set_num_threads(1)
        ready.set()
        while True:
            self.waiting.get()()


_pool = _Pool()


def _new_pool() -> None:
    """Threads do not outlive a fork."""
    global _pool
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_new_pool)


def _within() -> bool:
    """Whether this is one of the threads, which must not wait for the others."""
    return getattr(_here, "within", False)


class _Job:
    """Parts that several threads take one after the other, each with tools of its own."""

    def __init__(self, parts: Sequence[Any], tools: Callable[[], Callable[[Any], Any]]) -> None:
        self.parts, self.tools = parts, tools
        self.results: list[Any] = [None] * len(parts)
        self.error: BaseException | None = None
        self.stopped = False
        self.inference = torch.is_inference_mode_enabled()  # of the caller; torch keeps it for each thread
        self.places = iter(range(len(parts)))
        self.lock = threading.Lock()

    def run(self) -> None:
        try:
            with torch.inference_mode(self.inference), torch.no_grad(), np.errstate(all="ignore"):
                self._take_parts()
        except BaseException as error:
            self.error, self.stopped = error, True

    def _take_parts(self) -> None:
        work: Callable[[Any], Any] | None = None
        while not self.stopped:
            with self.lock:
                place = next(self.places, None)
            if place is None:
                return
            work = work or self.tools()
            self.results[place] = work(self.parts[place])

    def outcome(self) -> list[Any]:
        if self.error is not None:
            raise self.error
        return self.results


def side_by_side(parts: Sequence[P], tools: Callable[[], Callable[[P], R]], threads: int) -> list[R]:
    """What `tools()`, called once by each thread, makes of each part, in the order of the parts; without gradients.

    The result of a part must not depend on who works on it. An error or Ctrl-C stops all threads after their part.

    >>> side_by_side([1, 2, 3], lambda: lambda part: part * part, threads=2)
    [1, 4, 9]
    """
    job = _Job(parts, tools)
    threads = min(threads, len(parts))
    if threads <= 1 or _within():
        job.run()
        return job.outcome()
    _pool.grow(threads)
    done: SimpleQueue[None] = SimpleQueue()

    def run() -> None:
        job.run()
        done.put(None)

    for _ in range(threads):
        _pool.waiting.put(run)
    missing = threads
    try:
        while missing:
            done.get()
            missing -= 1
    except BaseException:
        job.stopped = True
        for _ in range(missing):
            done.get()
        raise
    return job.outcome()


GRAIN = 2**15
"""Numbers up to which torch works on one core; what it wakes for more spins on another one for ten milliseconds."""
LONG = 2**20
"""Numbers from which on torch's threads save more time at a sum than they spend on waiting."""


def on_one_core(work: Callable[[], R]) -> R:
    """The result of some small steps, none of which wakes other threads: these would go on waiting on their cores.

    >>> on_one_core(torch.get_num_threads)
    1
    """
    if torch.get_num_threads() == 1 or _within():
        return work()
    _pool.grow(1)
    answer: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
    inference, gradients = torch.is_inference_mode_enabled(), torch.is_grad_enabled()

    def run() -> None:
        try:
            with torch.inference_mode(inference), torch.set_grad_enabled(gradients):
                answer.put((work(), None))
        except BaseException as error:
            answer.put((None, error))

    _pool.waiting.put(run)
    found, error = answer.get()
    if error is not None:
        raise error
    result: R = found
    return result
