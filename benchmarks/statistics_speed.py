"""Tests and thinning beside other libraries, those that are installed: `python -m benchmarks.statistics_speed [names]`.

One thread, one run of each, on the processor's clock, which does not count what other processes do meanwhile. What
a peer does for every resample is timed with 20 of them and scaled.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.processor import processor
from mercer.kernels import Gaussian, InverseMultiquadric
from mercer.stats import SteinThinning, goodness_of_fit_test, independence_test, two_sample_test

FEW = 20


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def line(name: str, ours: float, theirs: float, peer: str, goal: str) -> None:
    print(f"{name}: {ours:.2f} s, {peer} {theirs:.1f} s, {theirs / ours:.1f} times (goal {goal})", flush=True)


def two_sample() -> None:
    """2000 + 2000 rows, d = 10, 1000 permutations."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2000, 10)), rng.normal(size=(2000, 10))
    ours, _ = seconds(lambda: two_sample_test(X, Y, "median", n_resamples=1000))
    try:
        from hyppo.ksample import MMD
    except ImportError:
        return print(f"two samples: {ours:.2f} s; hyppo is not installed")
    once, _ = seconds(lambda: MMD(compute_kernel="gaussian").statistic(X, Y))
    theirs, _ = seconds(lambda: MMD(compute_kernel="gaussian").test(X, Y, reps=FEW, workers=1, auto=False))
    return line("two samples", ours, once + max(theirs - once, 0.0) * 1000 / FEW, "hyppo", "100")


def fit() -> None:
    """The kernel Stein test of 2000 rows, d = 10, with 1000 draws, beside the loop over draws that kgof has."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 10))
    kernel = InverseMultiquadric(1.0)
    ours, _ = seconds(lambda: goodness_of_fit_test(X, lambda x: -x, kernel=kernel, n_resamples=1000))

    def loop() -> float:
        difference = X[:, None, :] - X[None, :, :]
        q = 1.0 + (difference**2).sum(2)
        scored = ((-X[:, None, :] + X[None, :, :]) * difference).sum(2)
        H = (X @ X.T) * q**-0.5 + (10 + scored) * q**-1.5 - 3.0 * (q - 1.0) * q**-2.5
        np.fill_diagonal(H, 0.0)
        null = [float(np.sum(H * np.outer(e, e))) for e in rng.choice([-1.0, 1.0], size=(1000, 2000))]
        return float(np.mean(np.array(null) >= H.sum()))

    theirs, _ = seconds(loop)
    line("Stein test", ours, theirs, "a loop over draws", "8")


def thinning() -> None:
    """100 of 100,000 rows of four columns."""
    X = np.random.default_rng(0).normal(size=(100_000, 4))
    thinned = SteinThinning(100, InverseMultiquadric(1.0))
    ours, _ = seconds(lambda: thinned.fit(X, score=-X))
    try:
        from stein_thinning.thinning import thin
    except ImportError:
        return print(f"Stein thinning: {ours:.2f} s; stein-thinning is not installed")
    theirs, indices = seconds(lambda: thin(X, -X, 100, standardize=False, preconditioner="id"))
    line("Stein thinning", ours, theirs, "stein-thinning", "3")
    return print(f"identical indices: {bool((indices == thinned.indices_).all())}")


def independence() -> None:
    """800 rows, smooth kernels, 1000 permutations, beside gathering rows and columns for each."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(800, 2)), rng.normal(size=(800, 1))
    kernels = Gaussian(1.5), Gaussian(1.0)
    ours, _ = seconds(lambda: independence_test(X, Y, *kernels, n_resamples=1000))
    H = np.eye(800) - 1 / 800
    K, L = H @ kernels[0](X) @ H, kernels[1](Y)
    theirs, _ = seconds(lambda: [np.sum(K * L[np.ix_(p, p)]) for p in (rng.permutation(800) for _ in range(1000))])
    line("independence", ours, theirs, "gathering", "20")


def fused() -> None:
    """20 kernels, 2000 permutations, 2000 + 2000 rows, d = 100."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2000, 100)), rng.normal(size=(2000, 100))
    ours, _ = seconds(lambda: two_sample_test(X, Y))
    print(f"fused: {ours:.1f} s of processor time (goal: at most 20 s on two cores)", flush=True)


def main(names: list[str]) -> None:
    print(processor())
    rows = {f.__name__: f for f in (two_sample, fit, thinning, independence, fused)}
    for name in names or rows:
        rows[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
