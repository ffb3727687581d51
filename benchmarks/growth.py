"""How cost grows with rows and features, from 10 to 200,000 rows: ``python -m benchmarks.growth`` prints Markdown.

Seconds of a product with a kernel matrix of 2,000 columns, of `KernelRidge` and of one on 500 landmarks, fit and
prediction of 1,000 rows. A factor stands beside each time: how much more than the line above.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import numpy as np

from benchmarks.processor import processor
from mercer import KernelRidge
from mercer.kernels import Gaussian
from mercer.operators import gram

ROWS = (10, 100, 1_000, 5_000, 20_000, 100_000, 200_000)
FEATURES = (1, 3, 10, 30, 100, 300)
EXACT = 5_000
"""Rows up to which all are centres of the model."""
LEAST, ROUNDS = 0.05, 3
"""Seconds that a timing takes at least, and timings, of which the least counts."""


def main() -> None:
    print(processor(), flush=True)
    _table("n, d = 5", ROWS, lambda n: _jobs(n, 5))
    _table("d, n = 5,000", FEATURES, lambda d: _jobs(5_000, d))


def _jobs(n: int, d: int) -> dict[str, Callable[[], object] | None]:
    rng = np.random.default_rng(0)
    X, Z = (rng.standard_normal((size, d)) for size in (n, 2_000))
    y, v, new = np.sin(X[:, 0]), rng.random(2_000), rng.standard_normal((1_000, d))
    kernel = Gaussian.from_gamma(1.0 / d)
    full = KernelRidge(kernel, alpha=0.1, fit_intercept=False)
    few = KernelRidge(kernel, alpha=0.1, fit_intercept=False, n_landmarks=500)
    return {
        "product": lambda: gram(kernel, X, Z) @ v,
        "KernelRidge": (lambda: full.fit(X, y).predict(new)) if n <= EXACT else None,
        "500 landmarks": (lambda: few.fit(X, y).predict(new)) if n > 500 else None,
    }


def _table(name: str, sizes: Iterable[int], jobs: Callable[[int], dict[str, Callable[[], object] | None]]) -> None:
    before: dict[str, float] = {}
    for place, size in enumerate(sizes):
        found = jobs(size)
        if place == 0:
            titles = [name, *(f"{job} | factor" for job in found)]
            print("| " + " | ".join(titles) + " |\n|" + " --- |" * (1 + 2 * len(found)), flush=True)
        cells = [f"{size:,}"]
        for title, job in found.items():
            seconds = None if job is None else _seconds(job)
            cells += ["", ""] if seconds is None else [f"{seconds:.2g} s", _factor(seconds, before.get(title))]
            if seconds is not None:
                before[title] = seconds
        print("| " + " | ".join(cells) + " |", flush=True)
    print()


def _factor(seconds: float, before: float | None) -> str:
    return "" if before is None else f"{seconds / before:.1f}"


def _seconds(job: Callable[[], object]) -> float:
    job()
    best = np.inf
    for _ in range(ROUNDS):
        count, start = 0, time.perf_counter()
        while time.perf_counter() - start < LEAST:
            job()
            count += 1
        best = min(best, (time.perf_counter() - start) / count)
    return float(best)


if __name__ == "__main__":
    main()
