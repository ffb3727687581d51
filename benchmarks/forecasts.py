"""Forecasts of learning curves on real data: `MERCER_DATA=folder python -m benchmarks.forecasts cases.jsonl`.

Each case draws test rows and n, 2n, 4n training rows of a set and measures the errors of fits to all of these; what a
forecast is made of is found from the first n alone, and kept, so that a rule can be tried again without fitting again.
Rules and their constants were fixed on the sets in FIRST; SECOND judges them. `--table` only prints, `--rows 120`
takes fewer rows, `--splits 1` and names of sets take fewer cases.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.real_data import FOLDER, find
from mercer.core.arrays import as_points
from mercer.kernels import NTK, Kernel, kernel_from_name, resolve
from mercer.theory.forecaster import Forecaster, forecasters
from mercer.theory.power_law import PowerLaw, predictions
from mercer.theory.ridge_path import Eigen, RidgePath

FIRST = ["autompg", "concrete", "elevators", "energy", "forest", "keggdirected", "pol", "solar", "skillcraft",
         "california_housing", "flights2001_3m", "levitus_ocean_temp", "magic_gamma",
         "bike", "gas", "housing", "kin40k", "pendulum", "protein", "pumadyn32nm", "uci/wine",
         "houseelectric", "bts_flights_2024_01", "higgs_lightgbm_7k", "a9a", "campaign"]  # fmt: skip
SECOND = ["Computers", "Wage", "nycflights", "SLID", "MedExp", "weather", "TenMileRace", "CPSSW8",
          "co2_mauna_loa_weekly", "abalone", "spambase", "waveform-noise", "wine-quality-white", "bank", "chess-krvkp",
          "statlog-image", "ozone", "molec-biol-splice", "covtype", "mlc_churn", "credit_data", "taxi",
          "HealthInsurance", "Hmda", "hpc_data"]  # fmt: skip
KERNELS = ("laplace", "gaussian", "matern32", "ntk")
DEPTH = 3
SPLITS = 3
MOST_ROWS, MOST_TEST = 500, 2000
MOST_DRAWN = 100_000
"""Rows of a set that splits are drawn from: the first of a fixed permutation."""
FACTORS = (2, 4)
MOST_WORDS = 50
TRIED = slice(20, 110, 3)
"""Alphas of the path that are measured on test rows: from 1e-8 to 8 times the largest eigenvalue."""


def drawn(name: str, seed: int, most: int) -> tuple[np.ndarray, ...]:
    """Standardised training rows, targets (n, t), test rows and their targets."""
    X, Y = table(name)
    order = np.random.default_rng(seed).permutation(len(Y))
    test = min(MOST_TEST, len(Y) // 3)
    n = min(most, (len(Y) - test) // 4)
    train, held = order[: 4 * n], order[-test:]
    mean, spread = X[train[:n]].mean(0), X[train[:n]].std(0)
    spread = np.where(spread > 0, spread, 1.0)
    centre, scale = Y[train[:n]].mean(0), np.sqrt(Y[train[:n]].var(0).sum()) or 1.0
    return (
        (X[train] - mean) / spread,
        (Y[train] - centre) / scale,
        (X[held] - mean) / spread,
        (Y[held] - centre) / scale,
    )


_tables: dict[str, tuple[np.ndarray, np.ndarray]] = {}


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and targets of some rows of a set; classes become indicators, whose squares sum to a Brier score."""
    if name not in _tables:
        _tables.clear()
        path = find(name) or find(name, "parquet")
        if path is None:
            raise SystemExit(f"{name} is not there: set {FOLDER} to the folder of the data.")
        _tables[name] = _of_frame(path) if path.suffix == ".parquet" else _of_archive(path)
    return _tables[name]


def _of_archive(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path, allow_pickle=False) as data:
        X, y = data["X"], data["y"]
        some = np.sort(np.random.default_rng(0).permutation(len(y))[:MOST_DRAWN])
        labels = "n_classes" in data or path.stem == "covtype"
    return X[some].astype(float), _indicators(y[some]) if labels else y[some, None].astype(float)


def _of_frame(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """A table with text: one column for each word of those with few, and medians in gaps."""
    import pyarrow.parquet as parquet

    frame = parquet.read_table(path)
    about = next(row for row in csv.DictReader((path.parent / "index.csv").open()) if row["file"] == path.name)
    columns = {name: np.array(frame[name].to_pylist(), dtype=object) for name in frame.column_names}
    there = np.array([value is not None for value in columns[about["target"]]])
    columns = {name: values[there] for name, values in columns.items() if name != "rownames"}
    target = columns.pop(about["target"])
    some = np.sort(np.random.default_rng(0).permutation(len(target))[:MOST_DRAWN])
    parts = [_of_column(values[some]) for values in columns.values()]
    X = np.column_stack([part for part in parts if part is not None])
    y = target[some]
    return X, _indicators(y.astype(str)) if about["task"] == "classification" else y[:, None].astype(float)


def _of_column(values: np.ndarray) -> np.ndarray | None:
    known = [value for value in values if value is not None]
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in known):
        found = np.array([np.nan if value is None else value for value in values], dtype=float)
        return np.where(np.isnan(found), np.nanmedian(found), found)[:, None]
    words = sorted({str(value) for value in known})
    return _indicators(np.array([str(v) for v in values]), words) if len(words) <= MOST_WORDS else None


def _indicators(labels: np.ndarray, kinds: Any = None) -> np.ndarray:
    kinds = np.unique(labels) if kinds is None else np.asarray(kinds)
    return (labels[:, None] == kinds).astype(float)


def kernel_of(name: str, X: np.ndarray) -> Kernel:
    if name == "ntk":
        return NTK(depth=DEPTH)
    return resolve(kernel_from_name(name).replace(length_scale="median"), as_points(X))


def case(name: str, kernel_name: str, seed: int, most: int) -> dict[str, Any]:
    X, Y, X_test, Y_test = drawn(name, seed, most)
    n = len(Y) // 4
    kernel = kernel_of(kernel_name, X[:n])
    K, cross = np.asarray(kernel(X)), np.asarray(kernel(X_test, X))
    repeated = 1 - len(np.unique(X[:n], axis=0)) / n
    started = time.perf_counter()
    (made,) = forecasters(K[:n, :n], [Y[:n]], duplicates=repeated, intercept=True, random_state=seed)
    path = made.path
    found: dict[str, Any] = {
        "name": name,
        "kernel": kernel_name,
        "seed": seed,
        "n": n,
        "targets": Y.shape[1],
        "duplicates": repeated,
        "seconds": time.perf_counter() - started,
        "path": {
            key: getattr(path, key).tolist() for key in ("alphas", "loo", "gcv", "kappa", "df1", "df2", "squares")
        },
        "smallest_kappa": path.smallest_kappa,
        "law": [part.tolist() for part in (made.law.rows, made.law.errors, made.law.spreads)],
    }
    sampled = float(path.alphas[path.best]) / n
    for factor in (1, *FACTORS):
        m = factor * n
        eigen = Eigen.of(K[:m, :m], intercept=True)
        path = RidgePath.of(eigen, Y[:m])

        def error(alpha: float, eigen: Eigen = eigen, m: int = m) -> float:
            predicted = predictions(eigen, K[:m, :m], cross[:, :m], Y[:m], alpha)
            return float(((predicted - Y_test) ** 2).sum(1).mean())

        found[f"truth{factor}"] = error(path.alphas[path.best])
        found[f"sampled{factor}"] = error(sampled * m)
        found[f"best{factor}"] = min(map(error, path.alphas[TRIED]))
    return found


def run(path: Path, names: list[str], kernels: list[str], splits: int, most: int) -> None:
    """Measure the cases that the file does not have yet, one line for each."""
    known = {(c["name"], c["kernel"], c["seed"]) for c in read(path)}
    wanted = [(name, kernel, seed) for seed in range(splits) for name in names for kernel in kernels]
    with path.open("a") as lines:
        for key in [key for key in wanted if key not in known]:
            lines.write(json.dumps(case(*key, most)) + "\n")
            lines.flush()


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


@dataclass(frozen=True)
class Forecasts:
    """Logarithms of changes of the mean squared error with more rows, as they were and as they were forecast."""

    truth: np.ndarray
    law: np.ndarray
    both: np.ndarray
    level: np.ndarray
    error: np.ndarray
    believed: np.ndarray

    @classmethod
    def of(cls, cases: list[dict[str, Any]], makers: list[Forecaster], factor: int) -> Forecasts:
        found = [made.at(factor) for made in makers]
        laws = [made.law.error(factor * made.n) / made.law.error(made.n) for made in makers]
        changes = [mse / made.now for made, (mse, _, _) in zip(makers, found, strict=True)]
        truths = [c[f"truth{factor}"] / c["truth1"] for c in cases]
        levels = [c[f"truth{factor}"] / made.now for c, made in zip(cases, makers, strict=True)]
        logs = (np.log(np.array(part)) for part in (truths, laws, changes, levels))
        return cls(*logs, np.array([error for _, error, _ in found]), np.array([not why for _, _, why in found]))

    def line(self, some: np.ndarray) -> str:
        """Median errors in per cent of root mean squares, 90th percentile, and the share of intervals that hold."""
        off = [100 * np.abs(np.expm1((f - self.truth) / 2))[some] for f in (0 * self.law, self.law, self.both)]
        held = np.abs(self.level - self.both) < 1.645 * self.error
        medians = " | ".join(f"{np.median(o):.1f}" for o in off)
        return f"{some.sum()} | {medians} | {np.quantile(off[-1], 0.9):.1f} | {held[some].mean():.2f}"


def maker(case: dict[str, Any]) -> Forecaster:
    """The forecaster of a case, of what was kept."""
    parts = {name: np.array(values) for name, values in case["path"].items()}
    path = RidgePath(smallest_kappa=case["smallest_kappa"], **parts)
    return Forecaster.of(path, PowerLaw.through(*case["law"]), case["duplicates"])


def tables(cases: list[dict[str, Any]]) -> None:
    for half, names in (("first", FIRST), ("second", SECOND)):
        some = [c for c in cases if c["name"] in names]
        if not some:
            continue
        makers = [maker(c) for c in some]
        print(f"\nThe {half} half: {len({c['name'] for c in some})} sets, {len(some)} cases\n")
        print("| rows | cases | no change | power law | forecast | 90th percentile | intervals |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for factor in FACTORS:
            found = Forecasts.of(some, makers, factor)
            print(f"| {factor}x, believed | {found.line(found.believed)} |")
            print(f"| {factor}x, not believed | {found.line(~found.believed)} |")
            print(f"| {factor}x, all | {found.line(np.ones(len(some), dtype=bool))} |")
        noise = [abs(np.expm1(np.log(c["truth1"] / made.now) / 2)) for c, made in zip(some, makers, strict=True)]
        level = [np.abs(np.expm1((f.both - f.level) / 2)) for f in (Forecasts.of(some, makers, x) for x in FACTORS)]
        levels = " and ".join(f"{100 * np.median(x):.1f}%" for x in level)
        print(f"\nError of the level at 2x and 4x {levels}, of leave-one-out itself {100 * np.median(noise):.1f}%.")
        for words, name in (("the whole path", "truth"), ("the path of a sample", "sampled")):
            regret = [np.expm1(np.log(c[f"{name}4"] / c["best4"]) / 2) for c in some]
            print(f"Regret of alpha by {words}: {100 * np.median(regret):.2f}%, 90th percentile "
                  f"{100 * np.quantile(regret, 0.9):.2f}%.")  # fmt: skip
        found = Forecasts.of(some, makers, 4)
        off = 100 * np.expm1((found.both - found.truth) / 2)
        worst = [i for i in np.argsort(-np.abs(off)) if found.believed[i]][:8]
        print("Worst that were believed, at 4x:", ", ".join(
            f"{some[i]['name']} {some[i]['kernel']} {off[i]:+.0f}%" for i in worst))  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forecasts", description=__doc__)
    parser.add_argument("cases", type=Path, help="a file that keeps what was measured, one case a line")
    parser.add_argument("names", nargs="*", default=FIRST + SECOND)
    parser.add_argument("--kernels", nargs="*", default=list(KERNELS))
    parser.add_argument("--splits", type=int, default=SPLITS)
    parser.add_argument("--rows", type=int, default=MOST_ROWS)
    parser.add_argument("--table", action="store_true")
    chosen = parser.parse_args()
    if not chosen.table:
        run(chosen.cases, chosen.names, chosen.kernels, chosen.splits, chosen.rows)
    tables(read(chosen.cases))


if __name__ == "__main__":
    main()
