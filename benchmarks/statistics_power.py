"""Power beside published figures: `python -m benchmarks.statistics_power [two_sample_1d ...] [--processes 15]`.

Published are figures of MMDAgg (Schrab et al., 2023), KSDAgg (2022) and of the aggregated test of independence in
*Efficient aggregated kernel tests using incomplete U-statistics* (2022, 100 repeats); nothing is downloaded. All tests
have B = 2,000 and the level 0.05. Tests of two samples begin with 400 permutations, and where all their p-values are
above 0.4 then, no more are made.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import torch
from scipy.stats import gamma

from benchmarks.processor import processor
from benchmarks.repeats import Row, device, made_once, run
from mercer.stats import (
    goodness_of_fit,
    goodness_of_fit_test,
    independence,
    independence_test,
    two_sample,
    two_sample_test,
)

Pair = Callable[[int], tuple[np.ndarray, np.ndarray]]
COMBINED = {"fused": "fused", "aggregated": "agg"}
FEW, PERMUTATIONS, DECIDED = 400, 2000, 0.4


def bump(t: np.ndarray) -> np.ndarray:
    out = np.zeros_like(t)
    low, high = (t > -1) & (t < -0.5), (t > -0.5) & (t < 0)
    out[low] = np.exp(-1 / (1 - (4 * t[low] + 3) ** 2))
    out[high] = -np.exp(-1 / (1 - (4 * t[high] + 1) ** 2))
    return out


def perturbed_uniform(n: int, d: int, p: int, scale: float, rng: np.random.Generator) -> np.ndarray:
    """Rows of the density 1 + scale / p sum_v theta_v prod_i G(p x_i - v_i) on the unit cube, by rejection."""
    signs = rng.choice([-1.0, 1.0], size=(p,) * d)
    found: list[np.ndarray] = []
    top = 1 + scale / p * np.exp(-1.0) ** d
    while sum(map(len, found)) < n:
        x = rng.random((4 * n, d))
        values = np.zeros(len(x))
        for v in product(range(p), repeat=d):
            values += signs[v] * np.prod([bump(p * x[:, i] - v[i] - 1) for i in range(d)], axis=0)
        found.append(x[rng.random(len(x)) * top < 1 + scale / p * values])
    return np.concatenate(found)[:n]


def uniform_pair(d: int, n: int, p: int, scale: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1000 + seed)
    x = perturbed_uniform(n, d, p, scale, rng) if p else rng.random((n, d))
    return x, rng.random((n, d))


def mixture_pair(sigma: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Four normal distributions 20 apart; in one of the samples one of them has another deviation."""
    rng = np.random.default_rng(1000 + seed)
    means = 10.0 * np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    kinds = [rng.integers(4, size=500) for _ in range(2)]
    x, y = (means[k] + rng.normal(size=(500, 2)) for k in kinds)
    changed = kinds[1] == 0
    y[changed] = means[0] + sigma * (y[changed] - means[0])
    return x, y


def dependent_pair(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Both coordinates of the perturbed uniform density with two perturbations, half of the largest size."""
    rows = perturbed_uniform(n, 2, 2, np.exp(2.0), np.random.default_rng(1000 + seed))
    return rows[:, :1], rows[:, 1:]


def two_samples(pair: Pair, seed: int) -> dict[str, float]:
    x, y = (torch.from_numpy(side).to(device()) for side in pair(seed))
    found: dict[str, float] = {}
    for count in (FEW, PERMUTATIONS):
        options = {"n_resamples": count, "random_state": seed}
        with made_once(two_sample, "exchanged_sums"):
            found = {name: two_sample_test(x, y, combine=how, **options).pvalue for name, how in COMBINED.items()}
        found["median"] = two_sample_test(x, y, "median", **options).pvalue
        if min(found.values()) > DECIDED:
            break
    return found


def gamma_score(x: torch.Tensor) -> torch.Tensor:
    return 4.0 / x - 5.0


def fits(delta: float, seed: int) -> dict[str, float]:
    x = gamma.rvs(5 + delta, scale=1 / 5, size=(500, 1), random_state=1000 + seed)
    x = torch.from_numpy(x).to(device())
    with made_once(goodness_of_fit, "pair_sums"):
        return {
            name: goodness_of_fit_test(x, gamma_score, combine=how, random_state=seed).pvalue
            for name, how in COMBINED.items()
        }


def dependence(n: int, seed: int) -> dict[str, float]:
    x, y = dependent_pair(n, seed)
    with made_once(independence, "permuted_sums"):
        return {name: independence_test(x, y, combine=how, random_state=seed).pvalue for name, how in COMBINED.items()}


def families(repeats: int) -> dict[str, list[Row]]:
    """The published rows."""
    one = {3: "agg .602, median .084", 4: "agg .228, median .018", 2: "agg .988, median .812", 1: "agg 1, median 1"}
    two = {3: "agg .260", 2: "agg .982", 1: "agg 1"}
    sigmas = {0.7: ".46", 1.6: ".675", 0.5: ".995", 2.0: ".945", 1.0: ".05"}
    deltas = {0.1: ".17", 0.2: ".43", 0.3: ".75", 0.4: ".915", 0.0: ".02"}
    dependent = {600: ".37", 400: ".23", 1000: ".75", 800: ".59", 200: ".08"}
    pairs: dict[str, list[tuple[str, Pair, str]]] = {
        "two_sample_2d": [(f"uniform d=2 n=2000 p={p}", partial(uniform_pair, 2, 2000, p, 7.3), two[p]) for p in two],
        "two_sample_1d": [(f"uniform d=1 n=500 p={p}", partial(uniform_pair, 1, 500, p, 2.7), one[p]) for p in one],
        "mixture": [(f"mixture sigma={v}", partial(mixture_pair, v), f"agg {sigmas[v]}") for v in sigmas],
    }
    return {
        "independence": [
            Row(f"dependence N={n}", partial(dependence, n), repeats, f"agg {text}") for n, text in dependent.items()
        ],
        "ksd": [Row(f"gamma delta={v}", partial(fits, v), repeats, f"agg {text}", True) for v, text in deltas.items()],
        **{
            family: [Row(name, partial(two_samples, pair), repeats, text, True) for name, pair, text in entries]
            for family, entries in pairs.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*")
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--only", default="", help="rows whose names contain this")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--gpu-processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("statistics_power.jsonl"))
    given = parser.parse_args()
    known = families(given.repeats)
    print(f"{processor()}; two-sample tests on {device()}", flush=True)
    chosen = [row for family in given.families or known for row in known[family] if given.only in row.name]
    run(chosen, given.out, given.processes, given.gpu_processes)


if __name__ == "__main__":
    main()
