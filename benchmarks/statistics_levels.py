"""Levels, how often tests at 0.05 reject what is true: `python -m benchmarks.statistics_levels [--processes 15]`.

The settings of conditional independence are those of *Practical kernel tests of conditional independence* (Pogodin et
al., 2024) and of its published code that need no download: points on a circle with noise, and its earlier tasks
`circ` (Z jumps), `rbpt` (40 columns) and `randn_nl`. Its rats and its car insurance are left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from scipy.signal import lfilter

from benchmarks.processor import processor
from benchmarks.repeats import Row, device, made_once, run
from mercer.stats import (
    DriftDetector,
    conditional_independence_test,
    goodness_of_fit,
    goodness_of_fit_test,
    independence,
    independence_test,
    two_sample,
    two_sample_test,
)

Triple = Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray, np.ndarray]]
COMBINED = ("fused", "min_p", "agg")
RESAMPLES = 199


def normal_pair(m: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, 2)), rng.normal(size=(n, 2))


def on_device(rows: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(rows).to(device())


def chain(n: int, rho: float, rng: np.random.Generator, d: int = 2) -> np.ndarray:
    """A stationary Markov chain whose rows are N(0, I)."""
    noise = rng.normal(size=(n, d))
    noise[1:] *= np.sqrt(1.0 - rho**2)
    return lfilter([1.0], [1.0, -rho], noise, axis=0)


def two_samples(m: int, n: int, seed: int) -> dict[str, float]:
    pair = [on_device(rows) for rows in normal_pair(m, n, seed)]
    with made_once(two_sample, "pair_sums"):
        return {
            how: two_sample_test(*pair, combine=how, n_resamples=RESAMPLES, random_state=seed).pvalue
            for how in COMBINED
        }


def two_samples_gamma(m: int, n: int, seed: int) -> dict[str, float]:
    return {"gamma": two_sample_test(*normal_pair(m, n, seed), "median", null="gamma").pvalue}


def two_chains(n: int, rho: float, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    x, y = (on_device(chain(n, rho, rng)) for _ in range(2))
    options = {"order": True, "n_resamples": RESAMPLES, "random_state": seed}
    return {null: two_sample_test(x, y, null=null, **options).pvalue for null in ("permutation", "wild")}


def independent(n: int, seed: int) -> dict[str, float]:
    pair = normal_pair(n, n, seed)
    with made_once(independence, "permuted_sums"):
        return {
            how: independence_test(*pair, combine=how, n_resamples=RESAMPLES, random_state=seed).pvalue
            for how in COMBINED
        }


def independent_gamma(n: int, seed: int) -> dict[str, float]:
    return {"gamma": independence_test(*normal_pair(n, n, seed), "median", "median", null="gamma").pvalue}


def independent_chains(n: int, rho: float, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    x, y = chain(n, rho, rng, 1), chain(n, rho, rng, 1)
    return {"blocks": independence_test(x, y, order=True, n_resamples=RESAMPLES, random_state=seed).pvalue}


def fits(n: int, seed: int) -> dict[str, float]:
    x = on_device(np.random.default_rng(seed).normal(size=(n, 2)))
    with made_once(goodness_of_fit, "pair_sums"):
        return {
            how: goodness_of_fit_test(x, lambda v: -v, combine=how, n_resamples=499, random_state=seed).pvalue
            for how in COMBINED
        }


def chain_fits(n: int, rho: float, seed: int) -> dict[str, float]:
    x = on_device(chain(n, rho, np.random.default_rng(seed)))
    return {"chain": goodness_of_fit_test(x, lambda v: -v, order=True, n_resamples=499, random_state=seed).pvalue}


def circle(n: int, rng: np.random.Generator, noise: float = 0.05) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    z = rng.normal(size=(n, 2))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    return z + noise * rng.normal(size=(n, 2)), z + noise * rng.normal(size=(n, 2)), z


def torn_circle(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Z is scaled by 2 on one side and by a half below: X and Y are smooth but for jumps of Z."""
    x, y, z = circle(n, rng, 0.1 / np.sqrt(2.0))
    z[z[:, 0] > 0] *= 2.0
    z[z[:, 1] < 0] *= 0.5
    return x, y, z


def polynomial(n: int, rng: np.random.Generator, d: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    fixed = np.random.default_rng(1)
    a, b = fixed.normal(size=(d, 1)), fixed.normal(size=(d, 1))
    z = rng.normal(size=(n, d))
    y = rng.normal(size=(n, 1)) + (z @ b) ** 2
    x = rng.normal(size=(n, 1)) + 0.01 * (z @ b) ** 2 + z @ a
    return x / np.sqrt(d), y / d, z / np.sqrt(d)


def squared(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    z = rng.normal(size=(n, 2)) / np.sqrt(2.0)
    noise = [0.1 * rng.normal(size=(n, 2)) / np.sqrt(2.0) for _ in range(2)]
    return (z + noise[0]) ** 2, z + noise[1], z


def jumping(n: int, rng: np.random.Generator, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X and Y jump at the same Z."""
    z = rng.normal(size=n)
    return np.sign(z) + noise * rng.normal(size=n), np.sign(z) + noise * rng.normal(size=n), z


def given_z(triple: Triple, n: int, seed: int) -> dict[str, float]:
    result = conditional_independence_test(*triple(n, np.random.default_rng(seed)), random_state=seed)
    return {"given Z": result.pvalue}


def drift(of_one: bool, seed: int) -> dict[str, float]:
    """A window of 100 rows against a reference of 1,000 of its own, or against the one of all seeds."""
    rng = np.random.default_rng(seed)
    known = (np.random.default_rng(10**6) if of_one else rng).normal(size=(1000, 3))
    detector = DriftDetector(n_resamples=RESAMPLES, random_state=0 if of_one else seed).fit(on_device(known))
    return {"drift": detector.test(on_device(rng.normal(size=(100, 3)))).pvalue}


def families(repeats: int) -> dict[str, list[Row]]:
    """All settings; the level is 0.05 in each."""
    tasks: list[tuple[str, Triple, int, int]] = [
        ("circle", circle, 200, repeats), ("circle", circle, 400, repeats), ("circle", circle, 1000, repeats // 10),
        ("circ: Z jumps", torn_circle, 200, repeats), ("rbpt, 40 columns", polynomial, 200, repeats),
        ("randn_nl", squared, 200, repeats), ("X and Y jump", jumping, 200, repeats),
        ("X and Y jump", jumping, 400, repeats), ("X and Y jump", jumping, 1000, repeats // 10),
    ]  # fmt: skip
    return {
        "given_z": [
            Row(f"given Z, {name}, n={n}", partial(given_z, triple, n), count) for name, triple, n, count in tasks
        ],
        "drift": [
            Row("drift, a reference each", partial(drift, False), repeats, "", True),
            Row("drift, one reference", partial(drift, True), repeats, "", True),
        ],
        "chains": [
            Row(f"KSD of a chain, rho={rho}, n={n}", partial(chain_fits, n, rho), repeats, "", True)
            for rho, n in ((0.5, 500), (0.9, 1000))
        ] + [Row(f"two chains, rho=0.5, n={n}", partial(two_chains, n, 0.5), repeats, "", True) for n in (200, 500)]
        + [Row("independent chains, rho=0.5, n=300", partial(independent_chains, 300, 0.5), repeats)],
        "exact": [
            Row(f"two samples, {m} + {n}", partial(two_samples, m, n), repeats, "", True)
            for m, n in ((5, 6), (20, 25), (200, 300))
        ] + [Row(f"independence, n={n}", partial(independent, n), repeats) for n in (8, 60, 200)],
        "asymptotic": [
            Row(f"two samples, {m} + {n}, gamma", partial(two_samples_gamma, m, n), repeats)
            for m, n in ((200, 200), (400, 600))
        ] + [Row(f"independence, n={n}, gamma", partial(independent_gamma, n), repeats) for n in (200, 500)]
        + [Row(f"KSD, n={n}", partial(fits, n), repeats, "", True) for n in (200, 500)],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*")
    parser.add_argument("--repeats", type=int, default=1000)
    parser.add_argument("--only", default="", help="rows whose names contain this")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--gpu-processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("statistics_levels.jsonl"))
    given = parser.parse_args()
    known = families(given.repeats)
    print(processor(), flush=True)
    run(
        [row for family in given.families or known for row in known[family] if given.only in row.name],
        given.out,
        given.processes,
        given.gpu_processes,
    )


if __name__ == "__main__":
    main()
