"""How cost grows with rows and features, from 10 to 200,000 rows: ``python -m benchmarks.growth`` prints Markdown.

Seconds of one thread, by the processor's clock, for a product with a kernel matrix of 2,000 columns, for `KernelRidge`
and for one on 500 landmarks, fit and prediction of 1,000 rows. Beside each time stands how much more it is than in the
line above, and in brackets how many more multiplications there are.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks.processor import processor
from mercer import KernelRidge
from mercer.kernels import Gaussian
from mercer.operators import gram

ROWS = (10, 100, 1_000, 5_000, 20_000, 100_000, 200_000)
FEATURES = (1, 3, 10, 30, 100, 300)
COLUMNS, NEW, LANDMARKS = 2_000, 1_000, 500
"""Columns of the kernel matrix, rows to predict, and landmarks."""
EXACT = 5_000
"""Rows up to which all are centres of the model."""
LEAST, ROUNDS = 0.05, 3
"""Seconds that a timing takes at least, and timings, of which the least counts."""


Job = Callable[[], object]


def main() -> None:
    torch.set_num_threads(1)
    with threadpool_limits(1):
        print(processor(), flush=True)
        _table("n, d = 5", [(n, 5) for n in ROWS], 0)
        _table("d, n = 5,000", [(5_000, d) for d in FEATURES], 1)


def _jobs(n: int, d: int) -> dict[str, Job | None]:
    rng = np.random.default_rng(0)
    X, Z = (rng.standard_normal((size, d)) for size in (n, COLUMNS))
    y, v, new = np.sin(X[:, 0]), rng.random(COLUMNS), rng.standard_normal((NEW, d))
    kernel = Gaussian.from_gamma(1.0 / d)
    full = KernelRidge(kernel, alpha=0.1, fit_intercept=False)
    few = KernelRidge(kernel, alpha=0.1, fit_intercept=False, n_landmarks=LANDMARKS)
    return {
        "product": lambda: gram(kernel, X, Z) @ v,
        "KernelRidge": (lambda: full.fit(X, y).predict(new)) if n <= EXACT else None,
        "500 landmarks": (lambda: few.fit(X, y).predict(new)) if n > LANDMARKS else None,
    }


def _multiplications(n: int, d: int) -> dict[str, float]:
    """Of each job: distances, which have two columns more than features, and linear algebra."""
    return {
        "product": n * COLUMNS * (d + 3),
        "KernelRidge": n * n * (d + 2) / 2 + n**3 / 6 + NEW * n * (d + 3),
        "500 landmarks": (n + NEW) * LANDMARKS * (d + 2) + n * LANDMARKS**2 + LANDMARKS**3,
    }


def _table(name: str, sizes: list[tuple[int, int]], which: int) -> None:
    before: dict[str, tuple[float, float]] = {}
    for place, (n, d) in enumerate(sizes):
        found, work = _jobs(n, d), _multiplications(n, d)
        if place == 0:
            titles = [name, *(f"{job} | growth" for job in found)]
            print("| " + " | ".join(titles) + " |\n|" + " --- |" * (1 + 2 * len(found)), flush=True)
        cells = [f"{(n, d)[which]:,}"]
        for title, job in found.items():
            if job is None:
                cells += ["", ""]
                continue
            seconds = _seconds(job)
            growth = ""
            if title in before:
                least, least_work = before[title]
                growth = f"{seconds / least:.1f} ({work[title] / least_work:.1f})"
            before[title] = seconds, work[title]
            cells += [f"{seconds:.2g} s", growth]
        print("| " + " | ".join(cells) + " |", flush=True)
    print()


def _seconds(job: Callable[[], object]) -> float:
    job()
    best = np.inf
    for _ in range(ROUNDS):
        count, start = 0, time.process_time()
        while time.process_time() - start < LEAST:
            job()
            count += 1
        best = min(best, (time.process_time() - start) / count)
    return float(best)


if __name__ == "__main__":
    main()
