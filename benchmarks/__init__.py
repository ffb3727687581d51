"""Benchmarks: each module has `run() -> Iterable[Row]`, and every row compares mercer with a peer in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SPINNING = 0.2
"""Seconds after which threads that have nothing to do are asleep; those of OpenBLAS spin for 0.1."""


@dataclass(frozen=True)
class Row:
    """One comparison; the ratio is the peer's number over ours, so larger is better.

    `target` is the ratio that the project asks for; `pairs` are the kernel values that a product evaluates, and
    `limits` what of them the machine could do in a second, in 1e9, by name.
    """

    name: str
    peer: str
    ours: float
    theirs: float
    unit: str = "ms"
    target: float | None = None
    pairs: int | None = None
    limits: str = ""

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours

    @property
    def met(self) -> bool:
        return self.target is None or self.ratio >= self.target

    @property
    def note(self) -> str:
        """Pairs a second of ours, and the limits."""
        return "" if self.pairs is None else f"{self.pairs / self.ours / 1e6:.2f} Gpair/s; {self.limits}"


def compare(
    name: str,
    peer: str,
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    *,
    target: float | None = None,
    rounds: int = 3,
    repeats: int = 4,
    warm_up: bool = True,
    pairs: int | None = None,
    limits: str = "",
) -> Row:
    """Least times of two functions that do the same job, in alternating rounds so that a busy machine slows both.

    Each round starts with runs that are not counted: threads of the other library spin for a while after their work.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for function, kept in zip((ours, theirs), times, strict=True):
            if warm_up:
                _warm(function)
            for _repeat in range(repeats):
                start = time.perf_counter()
                function()
                kept.append(1e3 * (time.perf_counter() - start))
    return Row(name, peer, min(times[0]), min(times[1]), target=target, pairs=pairs, limits=limits)


def _warm(function: Callable[[], Any]) -> None:
    start = time.perf_counter()
    function()
    while time.perf_counter() - start < SPINNING:
        function()
