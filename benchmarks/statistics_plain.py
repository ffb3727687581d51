"""Plain MMDAgg on the published samples and on ours: `python -m benchmarks.statistics_plain [--repeats 500]`.

Perturbed uniform samples of 2,000 + 2,000 rows in two columns, three perturbations: those of the published code, drawn
again from its seeds, and those of `statistics_power`. All sums over pairs are one Fourier transform of the rows on a
grid of 1/512 (right to 2% of a standard deviation of the null), so that 500 repeats take minutes. What is rare comes
from samples of the uniform distribution, not from permutations. Nothing of `two_sample_test` is used but, where it
says so, the widths of its kernels.
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.fft

from benchmarks.processor import processor
from benchmarks.statistics_power import bump, uniform_pair
from mercer.core.arrays import as_points
from mercer.kernels import Gaussian
from mercer.stats.families import family

N, P, SCALE, CELLS = 2000, 3, 7.3, 512
Kernels = list[tuple[str, float]]


def published_pair(i: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows of repeat i: its code draws Y, the signs and X from three seeds that follow each other."""
    seed = int(f"1100{P - 1}{i:04d}" if i < 100 else f"1100{P - 1}{i}")
    signs = np.random.RandomState(seed + 1).choice([-1, 1], P**2).reshape(P, P)
    top = 1 + SCALE / P * np.exp(-2.0)
    drawn = np.random.RandomState(seed + 2).random_sample((3 * N, 3))
    cells = np.floor(drawn[:, :2] * P).astype(int)
    bumps = np.prod([bump(drawn[:, j] * P - cells[:, j] - 1) for j in range(2)], axis=0)
    kept = drawn[:, 2] * top <= 1 + SCALE / P * signs[cells[:, 0], cells[:, 1]] * bumps
    return drawn[kept, :2][:N], np.random.RandomState(seed).uniform(0, 1, (N, 2))


def published_kernels(x: np.ndarray, y: np.ndarray) -> Kernels:
    """Ten widths of Laplace kernels of the L1 distance and ten of Gaussian ones, by the rule of MMDAgg."""
    found: Kernels = []
    for shape, order in (("laplace", 1), ("gaussian", 2)):
        distances = np.sort(np.linalg.norm(x[:500, None] - y[None, :500], ord=order, axis=2).ravel())
        low = max(distances[int(0.05 * len(distances))], 0.1) if distances[0] < 0.1 else distances[0]
        found += [(shape, width) for width in np.geomspace(low / 2, 2 * max(distances[-1], 0.3), 10)]
    return found


def our_kernels(x: np.ndarray, y: np.ndarray) -> Kernels:
    """Those of `two_sample_test`, with one width for both columns."""
    known = family(None, as_points(np.r_[x, y]), 0)
    return [
        ("gaussian", float(np.mean(k.length_scale)) * np.sqrt(2.0))
        if isinstance(k, Gaussian)
        else ("laplace", float(np.mean(k.length_scale)))
        for k in known
    ]


class Transformed:
    """MMD^2_U of samples for several kernels, by their spectra on the doubled grid."""

    def __init__(self, kernels: Kernels) -> None:
        places = np.minimum(np.arange(2 * CELLS), 2 * CELLS - np.arange(2 * CELLS)) / CELLS
        spectra = []
        for shape, width in kernels:
            power = 1 if shape == "laplace" else 2
            spectrum = scipy.fft.rfft2(np.exp(-np.add.outer(places**power, places**power) / width**power)).real
            spectrum[:, 1:-1] *= 2.0
            spectra.append(np.float32(spectrum.ravel() / (2 * CELLS) ** 2))
        self.spectra = np.stack(spectra)

    def _sums(self, rows: np.ndarray) -> np.ndarray:
        transform = scipy.fft.rfft2(rows, (2 * CELLS, 2 * CELLS))
        return self.spectra @ np.float32(np.abs(transform) ** 2).ravel()

    def statistics(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        edges = (np.arange(CELLS + 2) - 0.5) / CELLS
        first, second = (np.histogram2d(*rows.T, bins=(edges, edges))[0] for rows in (x, y))
        apart, together = (self._sums(rows).astype(float) for rows in (first - second, first + second))
        return ((together + apart) / 2 - 2 * N) / (N * (N - 1)) - (together - apart) / (2 * N**2)


def p_values(null: np.ndarray, statistics: np.ndarray) -> np.ndarray:
    """Of the aggregated test: how often the rarest kernel is as rare under the null distribution."""
    ascending = np.sort(null, 0)
    rarest = [
        np.min([len(null) - np.searchsorted(a, t) for a, t in zip(ascending.T, row, strict=True)])
        for row in np.concatenate([null, statistics])
    ]
    among = np.sort(rarest[: len(null)])
    return np.searchsorted(among, rarest[len(null) :], side="right") / len(null)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=500)
    repeats = parser.parse_args().repeats
    print(processor(), flush=True)

    def uniform(i: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng([9, i])
        return rng.random((N, 2)), rng.random((N, 2))

    kinds = {"published widths": published_kernels(*uniform(0)), "our widths": our_kernels(*uniform(0))}
    transformed = Transformed([k for kernels in kinds.values() for k in kernels])
    null = np.array([transformed.statistics(*uniform(i)) for i in range(3 * repeats)])
    sources = {
        "published": published_pair,
        "ours": lambda i: uniform_pair(2, N, P, SCALE, i),
    }
    for source, pair in sources.items():
        found = np.array([transformed.statistics(*pair(i)) for i in range(repeats)])
        for (name, kernels), start in zip(kinds.items(), (0, 20), strict=True):
            part = slice(start, start + len(kernels))
            share = (p_values(null[:, part], found[:, part]) <= 0.05).mean()
            print(f"{source} samples, {name}: {share:.3f} of {repeats} found", flush=True)


if __name__ == "__main__":
    main()
