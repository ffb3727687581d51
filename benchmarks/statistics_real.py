"""Tests and thinning on real data from the folder in MERCER_DATA: `python -m benchmarks.statistics_real [names]`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from benchmarks.processor import processor
from mercer.kernels import Gaussian, resolve
from mercer.stats import DriftDetector, KernelHerding, KernelThinning, SteinThinning, ksd, mmd, two_sample_test

POSTERIORS = ("garch-garch11", "kidiq-kidscore_momiq", "eight_schools-eight_schools_noncentered", "nes1996-nes",
              "arK-arK", "low_dim_gauss_mix-low_dim_gauss_mix", "mesquite-logmesquite", "sblrc-blr")  # fmt: skip


def folder() -> Path:
    return Path(os.environ["MERCER_DATA"])


def thinning(m: int = 50) -> None:
    """m of 10,000 posterior draws: the MMD to all of them, beside the mean of ten random subsamples."""
    print(f"| posterior | d | {m} random draws | kernel thinning | herding |\n| --- | --- | --- | --- | --- |")
    for name in POSTERIORS:
        draws = np.load(folder() / "mcmc" / f"{name}.npz")["draws"]
        X = draws.reshape(-1, draws.shape[-1])
        X = (X - X.mean(0)) / X.std(0)
        from mercer.core.arrays import as_points

        kernel = resolve(Gaussian("median"), as_points(X))
        rng = np.random.default_rng(0)
        random = np.mean([mmd(X[rng.choice(len(X), m, replace=False)], X, kernel) for _ in range(5)])
        thinned = KernelThinning(m, kernel, random_state=0).fit(X)
        reached = mmd(X[thinned.indices_], X, kernel)
        herded = KernelHerding(m, kernel).fit(X).discrepancy_
        print(f"| {name} | {X.shape[1]} | {random:.4f} | {reached:.4f} | {herded:.4f} |", flush=True)


def chain() -> None:
    """The Gaussian mixture chain that comes with its scores: KSD of 20 and 40 rows."""
    data = np.load(folder() / "mcmc" / "stein_thinning_gmm.npz")
    X, score = data["sample"], data["score"]
    rng = np.random.default_rng(0)
    for m in (20, 40):
        thinned = SteinThinning(m).fit(X, score=score)
        some = [rng.choice(len(X), m, replace=False) for _ in range(20)]
        random = np.mean([ksd(X[i], score[i], kernel=thinned.kernel_) for i in some])
        print(f"mixture chain, {m} rows: KSD {thinned.discrepancy_:.3f}, random rows {random:.3f}", flush=True)


def digits(n: int = 50, repeats: int = 20) -> None:
    """MNIST 3 against 8, n of each; and 3 against 3."""
    data = np.load(folder() / "images" / "mnist.npz")
    X, y = (data[k] for k in ("X_train", "y_train")) if "X_train" in data else (data[k] for k in list(data)[:2])
    X = X.reshape(len(X), -1) / 255.0
    threes, eights = (X[y == k] for k in (3, 8))
    found = {"3 against 8": 0, "3 against 3": 0}
    for s in range(repeats):
        rng = np.random.default_rng(s)
        a, b = (threes[i] for i in np.split(rng.choice(len(threes), 2 * n, replace=False), 2))
        c = eights[rng.choice(len(eights), n, replace=False)]
        for name, other in (("3 against 8", c), ("3 against 3", b)):
            found[name] += two_sample_test(a, other, n_resamples=500, random_state=s).pvalue <= 0.05
    print(f"MNIST, n = {n}: " + ", ".join(f"{k} told apart in {v} of {repeats}" for k, v in found.items()), flush=True)


def covtype() -> None:
    """The first half of covtype against the second, which is of other places; and random halves."""
    data = np.load(folder() / "large" / "covtype.npz")
    X = np.asarray(data["X"] if "X" in data else data[next(iter(data))], dtype=np.float64)[:, :10]
    half = len(X) // 2
    print(DriftDetector(random_state=0).fit(X[:half]).test(X[half:]), flush=True)
    X = X[np.random.default_rng(0).permutation(len(X))]
    print(DriftDetector(random_state=0).fit(X[:half]).test(X[half:]), flush=True)


def halves() -> None:
    """Random halves of ten tables."""
    found = []
    for path in sorted((folder() / "uci").glob("*.npz"))[:10]:
        data = np.load(path)
        X = np.asarray(data["X"] if "X" in data else data[next(iter(data))], dtype=np.float64)
        X = X[np.random.default_rng(0).permutation(len(X))]
        result = DriftDetector(random_state=0).fit(X[: len(X) // 2]).test(X[len(X) // 2 :])
        found.append(result.drift)
        print(f"{path.stem} {X.shape}: p = {result.pvalue:.3f}", flush=True)
    print(f"drift between random halves found in {sum(found)} of {len(found)} tables")


def main(names: list[str]) -> None:
    print(processor())
    rows = {f.__name__: f for f in (chain, digits, covtype, halves, thinning)}
    for name in names or rows:
        rows[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
