"""Default models on ordinary tables: `MERCER_DATA=folder python -m benchmarks.ordinary_tables results.jsonl`.

All 25 regression sets of `uci/` and the 40 largest sets of at most ten classes of `uci121/`, as they are: no column is
scaled by hand. At most `--rows` teach, at most 2,000 are predicted. Results are added to the file line by line, and
what it holds is not run again. "mercer" is `KernelRidge(tune=True)` or the process, whichever has the smaller error of
rows left out, and `KernelClassifier(tune=True)`. Sets at odd places of the alphabet are those that choices of ours were
made on (`--half first`), the others those that judge them. Where fewer than 200 rows are predicted, `--splits` of the
published splits are averaged, elsewhere one is taken. `--models` (also `ridge matern32` and the like) and `--sets` run
some; `--table` only prints.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from mercer import GaussianProcessRegressor, KernelClassifier, KernelRidge

MOST_TEST, FEW_TEST = 2000, 200
CLASSIFICATION_SETS, MOST_CLASSES = 40, 10
LEAST_PROBABILITY = 1e-6
GRID = {"C": [0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0, 100_000.0], "gamma": [0.01, 0.1, 0.3, 1.0]}
Table = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def tuned_svr() -> Any:
    """Support vector regression on scaled columns and targets, C and the width by three folds."""
    d_free = {f"svr__{name}": values for name, values in GRID.items()}
    d_free["svr__gamma"] = ["scale", 0.01, 0.1, 1.0]
    d_free["svr__C"] = [0.1, 1.0, 10.0, 100.0, 1000.0]
    d_free["svr__epsilon"] = [0.01, 0.1]
    search = GridSearchCV(make_pipeline(StandardScaler(), SVR(cache_size=500, max_iter=200_000)), d_free, cv=3)
    return TransformedTargetRegressor(search, transformer=StandardScaler())


def tuned_svc() -> Any:
    """The same for classes, with probabilities by five folds."""
    grid = {"svc__C": GRID["C"][:6], "svc__gamma": ["scale", 0.01, 0.1, 1.0]}
    return GridSearchCV(make_pipeline(StandardScaler(), SVC(cache_size=500)), grid, cv=3)


PEERS: dict[str, dict[str, Callable[[], Any]]] = {
    "uci": {
        "boosting": lambda: HistGradientBoostingRegressor(random_state=0),
        "forest": lambda: RandomForestRegressor(500, random_state=0),
        "tuned SVR": tuned_svr,
    },
    "uci121": {
        "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
        "forest": lambda: RandomForestClassifier(500, random_state=0),
        "tuned SVC": tuned_svc,
    },
}
OURS: dict[str, dict[str, Callable[..., Any]]] = {
    "uci": {"ridge": partial(KernelRidge, tune=True), "process": GaussianProcessRegressor},
    "uci121": {"mercer": partial(KernelClassifier, tune=True)},
}


def made(kind: str, model: str) -> Any:
    """A peer, or one of ours, with the kernel named after it if it is another one than the default."""
    if model in PEERS[kind]:
        return PEERS[kind][model]()
    name, *kernel = model.split()
    return OURS[kind][name](*kernel)


def left_out_error(model: Any, y: np.ndarray) -> float:
    """The mean squared error of rows left out by the model's own account, in units of the variance."""
    found = model.loo_predictions_ if isinstance(model, KernelRidge) else model.loo().mean
    return float(np.mean((y - np.ravel(found)) ** 2) / np.var(y))


def regression_sets(folder: Path) -> list[str]:
    return sorted(path.stem for path in (folder / "uci").glob("*.npz"))


def classification_sets(folder: Path) -> list[str]:
    sizes = {}
    for path in (folder / "uci121").glob("*.npz"):
        with np.load(path, allow_pickle=False) as data:
            if len(np.unique(data["y"])) <= MOST_CLASSES:
                sizes[path.stem] = len(data["y"])
    return sorted(sorted(sizes, key=lambda name: (-sizes[name], name))[:CLASSIFICATION_SETS])


def table(folder: Path, kind: str, name: str, split: int, rows: int) -> Table:
    """Training rows, targets, test rows and their targets of one of the sets' own splits."""
    with np.load(folder / kind / f"{name}.npz", allow_pickle=False) as data:
        X, y = np.ascontiguousarray(data["X"], dtype=np.float64), data["y"]
        if kind == "uci":
            y = y.astype(np.float64)
            test = np.flatnonzero(data["test_mask"][:, split])
            train = np.flatnonzero(~data["test_mask"][:, split])
        else:
            train, test = data[f"kfold{split}_train"], data[f"kfold{split}_test"]
    rng = np.random.default_rng(split)
    train, test = rng.permutation(train)[:rows], rng.permutation(test)[:MOST_TEST]
    return X[train], y[train], X[test], y[test]


def regression_result(model: Any, rows: Table) -> dict[str, Any]:
    X, y, X_test, y_test = rows
    started = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - started
    found = {"rmse": rmse(model.predict(X_test), y_test) / np.std(y_test), "seconds": seconds}
    if isinstance(model, KernelRidge | GaussianProcessRegressor):
        found["left out"] = left_out_error(model, y)
    return found


def classification_result(model: Any, rows: Table) -> dict[str, Any]:
    X, y, X_test, y_test = rows
    started = time.perf_counter()
    model.fit(X, y)
    with_probabilities = model
    if isinstance(model, GridSearchCV):
        with_probabilities = CalibratedClassifierCV(model.best_estimator_, cv=_folds(y), ensemble=False).fit(X, y)
    seconds = time.perf_counter() - started
    known = np.isin(y_test, with_probabilities.classes_)
    p = np.clip(with_probabilities.predict_proba(X_test[known]), LEAST_PROBABILITY, None)
    p /= p.sum(1, keepdims=True)
    loss = log_loss(y_test[known], p, labels=with_probabilities.classes_)
    return {"accuracy": accuracy_score(y_test, model.predict(X_test)), "log loss": loss, "seconds": seconds}


def _folds(y: np.ndarray) -> int:
    return max(2, min(5, int(np.unique(y, return_counts=True)[1].min())))


def rmse(found: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((np.ravel(found) - y) ** 2)))


def run(path: Path, folder: Path, args: argparse.Namespace) -> None:
    """Add what is missing."""
    done = {(r["kind"], r["set"], r["split"], r["model"]) for r in results(path)}
    jobs = [
        (kind, name, split, model)
        for split in range(args.splits)
        for kind, names in (("uci", regression_sets(folder)), ("uci121", classification_sets(folder)))
        for name in half(names, args.half)
        for model in args.models or [*PEERS[kind], *OURS[kind]]
        if kind in args.kinds and (not args.sets or name in args.sets)
    ]
    for kind, name, split, model in jobs:
        if (kind, name, split, model) in done:
            continue
        data = table(folder, kind, name, split, args.rows)
        if split and len(data[-1]) >= FEW_TEST:
            continue
        if kind == "uci" and np.ptp(data[-1]) == 0:
            continue  # errors have no unit
        row: dict[str, Any] = {"kind": kind, "set": name, "split": split, "model": model, "rows": len(data[0])}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            row |= (regression_result if kind == "uci" else classification_result)(made(kind, model), data)
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row, flush=True)


def half(names: list[str], which: str) -> list[str]:
    """The sets at odd places of the alphabet ("first"), the others ("second"), or all."""
    return names if which == "all" else names[0 if which == "first" else 1 :: 2]


def results(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def tables(path: Path, folder: Path) -> None:
    """Mean ranks, medians, and where trees stay ahead, for each half of the sets."""
    found = with_choice(results(path))
    for kind, measure, sign, names in (
        ("uci", "rmse", 1, regression_sets(folder)),
        ("uci121", "accuracy", -1, classification_sets(folder)),
        ("uci121", "log loss", 1, classification_sets(folder)),
    ):
        models = [*PEERS[kind], "mercer"]
        for which in ("first", "second", "all"):
            means = mean_scores(found, kind, measure, half(names, which), models)
            if not means:
                continue
            scores = sign * np.array(list(means.values()))
            ranks = ranked(scores).mean(0)
            print(f"\n{measure}, {len(means)} sets" + ("" if which == "all" else f" of the {which} half"))
            for model, rank, median in zip(models, ranks, np.median(np.abs(scores), 0), strict=True):
                print(f"  {model:12} mean rank {rank:.2f}, median {median:.3f}")
        for name, row in means.items():
            ahead = min(sign * row[0], sign * row[1]) < sign * row[3] - 0.02 * abs(row[3])
            print(f"    {name:32}" + "".join(f"{v:9.3f}" for v in row) + ("   trees" if ahead else ""))


def with_choice(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The results, and as "mercer" that of ridge or process that has the smaller error of rows left out."""
    ours: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for row in found:
        if row["model"] in OURS["uci"]:
            ours.setdefault((row["set"], row["split"]), []).append(row)
    both = (rows for rows in ours.values() if len(rows) == len(OURS["uci"]))
    return found + [min(rows, key=lambda row: row["left out"]) | {"model": "mercer"} for rows in both]


def mean_scores(
    found: list[dict[str, Any]], kind: str, measure: str, names: list[str], models: list[str]
) -> dict[str, list[float]]:
    """For each set that all models have been run on, the mean over the splits that all have."""
    scores: dict[str, list[float]] = {}
    for name in names:
        rows = [
            {r["split"]: r[measure] for r in found if (r["kind"], r["set"], r["model"]) == (kind, name, m)}
            for m in models
        ]
        splits = set.intersection(*map(set, rows))
        if splits:
            scores[name] = [float(np.mean([row[split] for split in splits])) for row in rows]
    return scores


def ranked(scores: np.ndarray) -> np.ndarray:
    """The rank of each model on each set, 1 for the smallest; equal ones share the mean rank."""
    less = (scores[:, None, :] < scores[:, :, None]).sum(2)
    same = (scores[:, None, :] == scores[:, :, None]).sum(2)
    return 1 + less + (same - 1) / 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--half", choices=("first", "second", "all"), default="all")
    parser.add_argument("--models", nargs="*")
    parser.add_argument("--sets", nargs="*")
    parser.add_argument("--kinds", nargs="*", default=list(PEERS))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    folder = Path(os.environ.get("MERCER_DATA", ""))
    if not (folder / "uci").is_dir():
        raise SystemExit("set MERCER_DATA to the folder of the data")
    if not args.table:
        run(args.results, folder, args)
    tables(args.results, folder)


if __name__ == "__main__":
    main()
