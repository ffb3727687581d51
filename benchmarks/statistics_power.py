"""Level and power beside published figures: `python -m benchmarks.statistics_power two_sample_1d ... [--repeats 200]`.

Published are the tables and figures of MMDAgg (Schrab et al., 2023), KSDAgg (2022) and HSICAgg (2023); nothing is
downloaded. `--resamples` of fewer than 2,000 makes the tests a little weaker.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import product

import numpy as np
from scipy.stats import gamma

from benchmarks.processor import processor
from mercer.stats import goodness_of_fit_test, two_sample_test

Test = Callable[[int], float]


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
    rng = np.random.default_rng(seed)
    x = perturbed_uniform(n, d, p, scale, rng) if p else rng.random((n, d))
    return x, rng.random((n, d))


def mixture_pair(sigma: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Four normal distributions 20 apart; in one of the samples one of them has another deviation."""
    rng = np.random.default_rng(seed)
    means = 10.0 * np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    kinds = [rng.integers(4, size=500) for _ in range(2)]
    x, y = (means[k] + rng.normal(size=(500, 2)) for k in kinds)
    changed = kinds[1] == 0
    y[changed] = means[0] + sigma * (y[changed] - means[0])
    return x, y


def gamma_sample(delta: float, seed: int) -> np.ndarray:
    return gamma.rvs(5 + delta, scale=1 / 5, size=(500, 1), random_state=seed)


def gamma_score(x: np.ndarray) -> np.ndarray:
    return 4.0 / x - 5.0


def rows(resamples: int) -> dict[str, list[tuple[str, dict[str, Test], str]]]:
    """The settings by family: a name, our tests, and the published power."""
    options = {"n_resamples": resamples}

    def mmds(pair: Callable[[int], tuple[np.ndarray, np.ndarray]]) -> dict[str, Test]:
        return {
            "fused": lambda s: two_sample_test(*pair(s), random_state=s, **options).pvalue,
            "agg": lambda s: two_sample_test(*pair(s), combine="agg", random_state=s, **options).pvalue,
            "median": lambda s: two_sample_test(*pair(s), "median", random_state=s, **options).pvalue,
        }

    def fits(delta: float) -> dict[str, Test]:
        return {
            how: lambda s, how=how: (
                goodness_of_fit_test(  # type: ignore[misc]
                    gamma_sample(delta, s), gamma_score, combine=how, random_state=s, **options
                ).pvalue
            )
            for how in ("fused", "agg")
        }

    published = {1: "agg 1, median 1", 2: "agg .988, median .812", 3: "agg .602, median .084",
                 4: "agg .228, median .018", 0: "agg .0496"}  # fmt: skip
    sigma = {0.5: ".995", 0.7: ".46", 1.0: ".05", 1.6: ".675", 2.0: ".945"}
    deltas = {0.0: ".02", 0.1: ".17", 0.2: ".43", 0.3: ".75", 0.4: ".915"}
    return {
        "two_sample_1d": [
            (f"uniform d=1 n=500 p={p}", mmds(lambda s, p=p: uniform_pair(1, 500, p, 2.7, s)), text)
            for p, text in published.items()
        ],
        "two_sample_2d": [
            (f"uniform d=2 n=2000 p={p}", mmds(lambda s, p=p: uniform_pair(2, 2000, p, 7.3, s)), f"agg {text}")
            for p, text in {1: "1", 2: ".982", 3: ".260"}.items()
        ],
        "mixture": [
            (f"mixture sigma={v}", mmds(lambda s, v=v: mixture_pair(v, s)), f"agg {text}") for v, text in sigma.items()
        ],
        "ksd": [(f"gamma delta={v}", fits(v), f"agg {text}") for v, text in deltas.items()],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="+")
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=2000)
    parser.add_argument("--tests", default="", help="only these, with commas between them")
    given = parser.parse_args()
    print(f"{processor()}; {given.repeats} repeats, {given.resamples} resamples, level 0.05")
    wanted = set(filter(None, given.tests.split(",")))
    for family in given.families:
        for name, tests, published in rows(given.resamples)[family]:
            start, found = time.process_time(), {}
            for how, test in tests.items():
                if not wanted or how in wanted:
                    pvalues = np.array([test(1000 + s) for s in range(given.repeats)])
                    found[how] = f"{how} {(pvalues <= 0.05).mean():.3f}"
            print(f"{name}: {', '.join(found.values())} (published: {published}; "
                  f"{time.process_time() - start:.0f} s of processor time)", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
