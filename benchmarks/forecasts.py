"""Forecasts of learning curves on real data: `MERCER_DATA=folder python -m benchmarks.forecasts cases.json`.

Each case draws test rows and n, 2n, 4n training rows of a set, forecasts the errors of 2n and 4n rows from the first n,
and measures them. Names of sets may follow; then tables are printed for each half of the sets, so that constants fixed
on the first are judged by the second. `--table` only prints; `--jobs 8` works on eight cases at a time; `--rows FOLDER`
writes the rows that are drawn to a folder, or reads them there, for a machine that has not the data.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.real_data import FOLDER, find
from mercer.core.arrays import as_points
from mercer.kernels import NTK, Kernel, kernel_from_name, resolve
from mercer.theory.forecaster import doubt, forecasters, log_error
from mercer.theory.power_law import predictions
from mercer.theory.ridge_path import Eigen, RidgePath

FIRST = ["autompg", "concrete", "elevators", "energy", "forest", "keggdirected", "pol", "solar", "skillcraft",
         "california_housing", "flights2001_3m", "levitus_ocean_temp", "magic_gamma"]  # fmt: skip
SECOND = ["bike", "gas", "housing", "kin40k", "pendulum", "protein", "pumadyn32nm", "uci/wine",
          "houseelectric", "bts_flights_2024_01", "higgs_lightgbm_7k", "a9a", "campaign"]  # fmt: skip
KERNELS = ("laplace", "gaussian", "matern32", "ntk")
DEPTH = 3
SPLITS = 3
MOST_ROWS, MOST_TEST = 500, 2000
FACTORS = (2, 4)


@lru_cache(maxsize=1)
def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    path = find(name)
    if path is None:
        raise SystemExit(f"{name}.npz is not there: set {FOLDER} to the folder of the data.")
    with np.load(path, allow_pickle=False) as data:
        return data["X"], data["y"]


def rows_of(name: str, seed: int, folder: Path | None = None) -> tuple[np.ndarray, ...]:
    """Standardised training rows, targets, test rows and their targets; in a folder they are kept."""
    path = None if folder is None else folder / f"{name.replace('/', '-')}-{seed}.npz"
    if path is not None and path.is_file():
        with np.load(path, allow_pickle=False) as kept:
            return tuple(kept[key].astype(float) for key in ("X", "y", "X_test", "y_test"))
    found = drawn(name, seed)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, **dict(zip(("X", "y", "X_test", "y_test"), map(np.float32, found), strict=True)))
    return found


def drawn(name: str, seed: int) -> tuple[np.ndarray, ...]:
    X, y = table(name)
    order = np.random.default_rng(seed).permutation(len(y))
    test = min(MOST_TEST, len(y) // 3)
    n = min(MOST_ROWS, (len(y) - test) // 4)
    train, held = order[: 4 * n], order[-test:]
    X_train, X_test = X[np.sort(train)].astype(float), X[np.sort(held)].astype(float)
    y_train, y_test = y[np.sort(train)].astype(float), y[np.sort(held)].astype(float)
    mixed = np.random.default_rng(seed + 100).permutation(len(train))
    X_train, y_train = X_train[mixed], y_train[mixed]
    mean, spread = X_train[:n].mean(0), X_train[:n].std(0)
    spread = np.where(spread > 0, spread, 1.0)
    scale = y_train[:n].std() or 1.0
    centre = y_train[:n].mean()
    standard = [(X_train - mean) / spread, (y_train - centre) / scale, (X_test - mean) / spread]
    return *standard, (y_test - centre) / scale


def kernel_of(name: str, X: np.ndarray) -> Kernel:
    return (
        NTK(depth=DEPTH)
        if name == "ntk"
        else resolve(kernel_from_name(name).replace(length_scale="median"), as_points(X))
    )


def case(name: str, kernel_name: str, seed: int, folder: Path | None) -> dict:
    X, y, X_test, y_test = rows_of(name, seed, folder)
    n = len(y) // 4
    kernel = kernel_of(kernel_name, X[:n])
    K, cross = np.asarray(kernel(X)), np.asarray(kernel(X_test, X))
    repeated = 1 - len(np.unique(X[:n], axis=0)) / n
    started = time.perf_counter()
    (made,) = forecasters(K[:n, :n], [y[:n]], duplicates=repeated, intercept=True, random_state=seed)
    seconds = time.perf_counter() - started
    found = {
        "name": name,
        "kernel": kernel_name,
        "seed": seed,
        "n": n,
        "duplicates": repeated,
        "seconds": seconds,
        "loo": made.loo,
        "se": made.path.noise_of_loo,
        "ridge": made.path.ridge if made.spectral else 0.0,
        "gap": made.path.gap,
        "law": [part.tolist() for part in (made.law.rows, made.law.errors, made.law.spreads)],
    }
    for factor in (1, *FACTORS):
        m = factor * n
        eigen = Eigen.of(K[:m, :m], intercept=True)
        path = RidgePath.of(eigen, y[:m])
        tested = [
            float(np.mean((predictions(eigen, K[:m, :m], cross[:, :m], y[:m, None], a)[:, 0] - y_test) ** 2))
            for a in path.alphas[20:110:3]
        ]
        chosen = predictions(eigen, K[:m, :m], cross[:, :m], y[:m, None], path.alphas[path.best])[:, 0]
        found[f"truth{factor}"] = float(np.mean((chosen - y_test) ** 2))
        found[f"best{factor}"] = min(tested)
        found[f"law{factor}"] = float(made.law.error(m) / made.law.error(n))
        found[f"spectrum{factor}"] = made.spectral.error(m) / made.loo if made.spectral else None
    return found


def run(path: Path, names: list[str], jobs: int, folder: Path | None) -> list[dict]:
    done = json.loads(path.read_text()) if path.is_file() else []
    known = {(c["name"], c["kernel"], c["seed"]) for c in done}
    wanted = [(name, kernel, seed) for name in names for seed in range(SPLITS) for kernel in KERNELS]
    for found in _cases([key for key in wanted if key not in known], jobs, folder):
        done.append(found)
        path.write_text(json.dumps(done))
    return done


def _cases(wanted: list[tuple[str, str, int]], jobs: int, folder: Path | None) -> Iterator[dict]:
    if jobs == 1:
        yield from (case(*key, folder) for key in wanted)
        return
    with ProcessPoolExecutor(jobs) as pool:
        for done in as_completed([pool.submit(case, *key, folder) for key in wanted]):
            yield done.result()


@dataclass(frozen=True)
class Forecasts:
    """Ratios of root mean squared errors with more rows, as they were and as three forecasts have them."""

    truth: np.ndarray
    law: np.ndarray
    spectrum: np.ndarray
    level: np.ndarray
    error: np.ndarray
    believed: np.ndarray

    @classmethod
    def of(cls, cases: list[dict], factor: int) -> Forecasts:
        law = np.array([c[f"law{factor}"] for c in cases])
        spectrum = np.array([c[f"spectrum{factor}"] or c[f"law{factor}"] for c in cases])
        apart = np.log(spectrum / law)
        error = [log_error(factor, c["se"], a) for c, a in zip(cases, apart, strict=True)]
        why = [doubt(factor, c["duplicates"], c["gap"], c["ridge"], a) for c, a in zip(cases, apart, strict=True)]
        truth = np.array([c[f"truth{factor}"] / c["truth1"] for c in cases])
        level = np.array([c[f"truth{factor}"] / c["loo"] for c in cases])
        roots = (np.sqrt(part) for part in (truth, law, spectrum, level))
        return cls(*roots, np.array(error), np.array([not w for w in why]))

    @property
    def both(self) -> np.ndarray:
        return np.sqrt(self.law * self.spectrum)

    def line(self, some: np.ndarray) -> str:
        """Median errors in per cent of some cases, the 90th percentile, and how many intervals hold the truth."""
        forecasts = (np.ones_like(self.law), self.law, self.spectrum, self.both)
        off = [100 * np.abs(f / self.truth - 1)[some] for f in forecasts]
        held = np.abs(2 * np.log(self.level / self.both)) < 1.645 * self.error
        medians = " | ".join(f"{np.median(o):.1f}" for o in off)
        return f"{some.sum()} | {medians} | {np.quantile(off[-1], 0.9):.1f} | {held[some].mean():.2f}"


def tables(cases: list[dict]) -> None:
    for half, names in (("first", FIRST), ("second", SECOND)):
        some = [c for c in cases if c["name"] in names]
        if not some:
            continue
        print(f"\nThe {half} half: {len({c['name'] for c in some})} sets, {len(some)} cases\n")
        print("| rows | cases | no change | power law | spectrum | both | 90th percentile | intervals |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        for factor in FACTORS:
            found = Forecasts.of(some, factor)
            print(f"| {factor}x, believed | {found.line(found.believed)} |")
            print(f"| {factor}x, not believed | {found.line(~found.believed)} |")
        noise = np.median([abs(np.sqrt(c["truth1"] / c["loo"]) - 1) for c in some])
        level = [np.median(np.abs(f.both / f.level - 1)) for f in (Forecasts.of(some, factor) for factor in FACTORS)]
        regret = np.median([np.sqrt(c["truth1"] / c["best1"]) - 1 for c in some])
        levels = " and ".join(f"{100 * x:.1f}%" for x in level)
        print(f"\nError of the level at 2x and 4x {levels}, of leave-one-out itself {100 * noise:.1f}% (medians).")
        print(f"Regret of alpha by leave-one-out: {100 * regret:.2f}% (median).")
        found = Forecasts.of(some, 4)
        worst = np.argsort(-np.abs(np.log(found.both / found.truth)))[:12]
        doubts = ["" if believed else " (not believed)" for believed in found.believed]
        print("Worst at 4x:", ", ".join(dict.fromkeys(some[i]["name"] + doubts[i] for i in worst)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forecasts", description=__doc__)
    parser.add_argument("cases", type=Path, help="a JSON file that keeps what was measured")
    parser.add_argument("names", nargs="*", default=FIRST + SECOND)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--rows", type=Path)
    chosen = parser.parse_args()
    if not chosen.table:
        run(chosen.cases, chosen.names, chosen.jobs, chosen.rows)
    tables(json.loads(chosen.cases.read_text()))


if __name__ == "__main__":
    main()
