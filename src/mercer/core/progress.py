"""How far a long computation has come: share done, speed, and the time it will still take."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, TextIO, TypeVar

REDRAW = 0.1
"""Seconds between two drawings of a bar on a terminal."""

SPARSE = 10.0
"""Seconds between two lines where the output is not a terminal."""

BAR = 24
"""Characters of a bar."""

Value = TypeVar("Value", bound=Sized)


class Progress:
    """A bar on a terminal, else a line now and then; gone through `total` things, `done` of them before.

    Used as a context; nothing is written unless `shown`. The last line stays, so that a log tells the speed.

    >>> with Progress(2000, "sums", stream=sys.stdout, clock=iter([0.0, 4.0, 4.0]).__next__) as progress:
    ...     progress.advance(2000)
    sums: 2,000 rows in 4 s, 500 rows/s
    """

    def __init__(
        self,
        total: int,
        what: str,
        *,
        unit: str = "rows",
        done: int = 0,
        shown: bool = True,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.total, self.what, self.unit, self.done = total, what, unit, done
        self.stream = sys.stdout if stream is None else stream
        self.shown, self.clock = shown, clock
        self.on_terminal = shown and self.stream.isatty()
        self.before, self.width = done, 0

    def __enter__(self) -> Progress:
        self.started = self.drawn = self.clock() if self.shown else 0.0
        return self

    def advance(self, count: int) -> None:
        """So many more are done."""
        self.done += count
        if not self.shown:
            return
        now = self.clock()
        if self.done < self.total and now - self.drawn >= (REDRAW if self.on_terminal else SPARSE):
            self.drawn = now
            self._write(self._line(now - self.started), last=False)

    def __exit__(self, kind: Any, *_: Any) -> None:
        if not self.shown:
            return
        seconds = self.clock() - self.started
        gone = self.done - self.before
        if kind is None and gone:
            words = f"{gone:,} {self.unit} in {readable_time(seconds)}{self._speed(seconds)}"
            self._write(f"{self.what}: {words}", last=True)
        elif self.width:
            self._write(self._line(seconds), last=True)

    def _line(self, seconds: float) -> str:
        share = min(1.0, self.done / max(1, self.total))
        bar = ""
        if self.on_terminal:
            full = int(share * BAR)
            bar = f"[{'=' * full}{'>' if full < BAR else ''}{' ' * (BAR - full - 1)}] "
        gone, left = self.done - self.before, ""
        if gone and seconds > 0:
            left = f", {readable_time((self.total - self.done) * seconds / gone)} left"
        counts = f"{self.done:,} of {self.total:,} {self.unit}"
        return f"{self.what}: {bar}{share:.0%}, {counts}{self._speed(seconds)}{left}"

    def _speed(self, seconds: float) -> str:
        gone = self.done - self.before
        return f", {gone / seconds:,.0f} {self.unit}/s" if gone and seconds > 0 else ""

    def _write(self, line: str, *, last: bool) -> None:
        if self.on_terminal:
            line = line[: shutil.get_terminal_size().columns - 1]
            padded, self.width = line.ljust(self.width), len(line)
            self.stream.write(f"\r{padded}" + "\n" * last)
        else:
            self.stream.write(f"{line}\n")
        self.stream.flush()


def counted(
    values: Iterable[Value], total: int, what: str, *, shown: bool, done: int = 0, size: Callable[[Value], int] = len
) -> Iterator[Value]:
    """The values, with progress by the `size` of each after it has been used.

    >>> list(counted(["ab", "c"], 3, "letters", shown=False))
    ['ab', 'c']
    """
    with Progress(total, what, done=done, shown=shown) as progress:
        for value in values:
            yield value
            progress.advance(size(value))


class Iterations:
    """Prints the residual of an iterative solver, the time of an iteration, and about how long it will still take.

    The residual is taken to shrink as it has on the average so far.

    >>> tell = Iterations(1e-6, 100, stream=sys.stdout, clock=iter([2.0, 4.0]).__next__)
    >>> tell(1, 1e-1)
    iteration 1: relative residual 1.00e-01
    >>> tell(2, 1e-2)
    iteration 2: relative residual 1.00e-02, 2.00 s each, about 8 s left
    """

    def __init__(
        self,
        tol: float,
        max_iter: int | None = None,
        what: str = "relative residual",
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.tol, self.max_iter, self.what, self.stream, self.clock = tol, max_iter, what, stream, clock
        self.first: tuple[int, float, float] | None = None

    def __call__(self, iteration: int, residual: float) -> None:
        """Called after each iteration."""
        now = self.clock()
        words = f"iteration {iteration}: {self.what} {residual:.2e}"
        if self.first is None:
            self.first = (iteration, residual, now)
        else:
            count, began, started = iteration - self.first[0], self.first[1], self.first[2]
            each = (now - started) / max(1, count)
            words += f", {each:.2f} s each"
            if self.tol < residual < began:
                more = count * math.log(residual / self.tol) / math.log(began / residual)
                if self.max_iter is not None:
                    more = min(more, self.max_iter - iteration)
                words += f", about {readable_time(more * each)} left"
        print(words, file=self.stream, flush=True)


def readable_time(seconds: float) -> str:
    """A time for people.

    >>> readable_time(0.04), readable_time(12.3), readable_time(185.0), readable_time(7260.0)
    ('0.04 s', '12 s', '3 min 5 s', '2 h 1 min')
    """
    if seconds < 1:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{int(seconds) // 60} min {int(seconds) % 60} s"
    return f"{int(seconds) // 3600} h {int(seconds) % 3600 // 60} min"
