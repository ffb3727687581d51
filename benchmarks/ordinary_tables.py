"""Default models on ordinary tables: `MERCER_DATA=folder python -m benchmarks.ordinary_tables results.jsonl`.

All 25 regression sets of `uci/` and the 40 largest sets of at most ten classes of `uci121/`, as they are: no column is
scaled by hand. At most 2,000 rows teach, at most 2,000 are predicted. Results are added to the file line by line, and
what it holds is not run again. Sets at odd places of the alphabet are those that choices of ours were made on
(`--half first`), the others those that judge them. `--models` and `--sets` run some; `--table` only prints.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Callable
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

MOST_ROWS, MOST_TEST = 2000, 2000
CLASSIFICATION_SETS, MOST_CLASSES = 40, 10
LEAST_PROBABILITY = 1e-6
GRID = {"C": [0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0, 100_000.0], "gamma": [0.01, 0.1, 0.3, 1.0]}
Table = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class BestOfTwo:
    """KernelRidge(tune=True) or the process: the one with the smaller leave-one-out error."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> BestOfTwo:
        ridge = KernelRidge("laplace", alpha="loo", fit_intercept=True, tune=True).fit(X, y)
        process = GaussianProcessRegressor().fit(X, y)
        errors = {"ridge": y - ridge.loo_predictions_, "process": y - process.loo().mean}
        self.scores = {name: float(np.mean(e**2)) for name, e in errors.items()}
        self.models = {"ridge": ridge, "process": process}
        self.chosen = min(self.scores, key=self.scores.__getitem__)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.models[self.chosen].predict(X)


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


REGRESSORS: dict[str, Callable[[], Any]] = {
    "boosting": lambda: HistGradientBoostingRegressor(random_state=0),
    "forest": lambda: RandomForestRegressor(500, random_state=0),
    "tuned SVR": tuned_svr,
    "mercer": BestOfTwo,
}
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "forest": lambda: RandomForestClassifier(500, random_state=0),
    "tuned SVC": tuned_svc,
    "mercer": lambda: KernelClassifier("laplace", alpha="auto", fit_intercept=True, tune=True),
}


def regression_sets(folder: Path) -> list[str]:
    return sorted(path.stem for path in (folder / "uci").glob("*.npz"))


def classification_sets(folder: Path) -> list[str]:
    sizes = {}
    for path in (folder / "uci121").glob("*.npz"):
        with np.load(path, allow_pickle=False) as data:
            if len(np.unique(data["y"])) <= MOST_CLASSES:
                sizes[path.stem] = len(data["y"])
    return sorted(sorted(sizes, key=lambda name: (-sizes[name], name))[:CLASSIFICATION_SETS])


def table(folder: Path, kind: str, name: str, split: int) -> Table:
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
    train, test = rng.permutation(train)[:MOST_ROWS], rng.permutation(test)[:MOST_TEST]
    return X[train], y[train], X[test], y[test]


def regression_result(model: Any, rows: Table) -> dict[str, Any]:
    X, y, X_test, y_test = rows
    started = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - started
    found = {"rmse": rmse(model.predict(X_test), y_test) / np.std(y_test), "seconds": seconds}
    if isinstance(model, BestOfTwo):
        found["chosen"] = model.chosen
        found |= {f"rmse {name}": rmse(m.predict(X_test), y_test) / np.std(y_test) for name, m in model.models.items()}
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
        ("uci", name, split, model)
        for split in range(args.splits)
        for name in half(regression_sets(folder), args.half)
        for model in REGRESSORS
    ] + [
        ("uci121", name, split, model)
        for split in range(args.splits)
        for name in half(classification_sets(folder), args.half)
        for model in CLASSIFIERS
    ]
    for kind, name, split, model in jobs:
        wanted = (not args.models or model in args.models) and (not args.sets or name in args.sets)
        if not wanted or (kind, name, split, model) in done:
            continue
        makers, result = (REGRESSORS, regression_result) if kind == "uci" else (CLASSIFIERS, classification_result)
        row: dict[str, Any] = {"kind": kind, "set": name, "split": split, "model": model}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            row |= result(makers[model](), table(folder, kind, name, split))
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
    found = results(path)
    for kind, measure, sign, names, models in (
        ("uci", "rmse", 1, regression_sets(folder), REGRESSORS),
        ("uci121", "accuracy", -1, classification_sets(folder), CLASSIFIERS),
        ("uci121", "log loss", 1, classification_sets(folder), CLASSIFIERS),
    ):
        for which in ("first", "second", "all"):
            means = mean_scores(found, kind, measure, half(names, which), list(models))
            if not means:
                continue
            scores = sign * np.array(list(means.values()))
            ranks = ranked(scores).mean(0)
            title = f"{measure}, {len(means)} sets of the {which} half" if which != "all" else f"{measure}, all sets"
            print(f"\n{title}")
            for model, rank, median in zip(models, ranks, np.median(np.abs(scores), 0), strict=True):
                print(f"  {model:12} mean rank {rank:.2f}, median {median:.3f}")
            if which == "all":
                ahead = [
                    name for name, row in zip(means, scores, strict=True) if row[:2].min() < row[3] - 0.02 * abs(row[3])
                ]
                print(f"  trees ahead by more than 2%: {', '.join(ahead)}")


def mean_scores(
    found: list[dict[str, Any]], kind: str, measure: str, names: list[str], models: list[str]
) -> dict[str, list[float]]:
    """For each set that all models have been run on, the mean over its splits."""
    scores: dict[str, list[float]] = {}
    for name in names:
        rows = [[r[measure] for r in found if (r["kind"], r["set"], r["model"]) == (kind, name, m)] for m in models]
        if all(rows):
            fewest = min(map(len, rows))
            scores[name] = [float(np.mean(row[:fewest])) for row in rows]
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
    parser.add_argument("--splits", type=int, default=1)
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
