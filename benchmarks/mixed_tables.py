"""Tables with text, categories, gaps, dates and ids: ``python -m benchmarks.mixed_tables results.jsonl``.

`mercer.tabular(KernelRidge(tune=True))` and `mercer.tabular(KernelClassifier(tune=True))` beside boosting with native
categories, a random forest and a linear model on one-hot columns, on the split of the data's README with at most
`--rows` to learn from. Results are added to the file line by line, and what it holds is not run again. Choices of ours
were made on the even rows of the index (`--half first`), which are marked with a star; the others judge them.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from benchmarks.processor import processor
from mercer import KernelClassifier, KernelRidge, tabular

DATA = Path(os.environ.get("MERCER_MIXED", Path(os.environ.get("MERCER_DATA", "")) / "mixed"))
TRAIN, TEST = 8000, 4000
PEERS = ("boosting", "forest", "linear")
GIVEN_AWAY = {"Wage": ["logwage"], "TenMileRace": ["net"]}


def split(name: str, target: str, rows: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test rows; rows without a target and columns that give it away are left out."""
    frame = read(DATA / name).dropna(subset=[target]).reset_index(drop=True)
    order = np.random.default_rng(0).permutation(len(frame))
    n = int(0.75 * len(frame))
    return frame.iloc[order[: min(n, rows)]], frame.iloc[order[n : n + TEST]]


def read(path: Path) -> pd.DataFrame:
    """A table; where no reader of Parquet is there, its folder may hold pickled frames instead."""
    pickled = path.with_suffix(".pkl")
    return pd.read_pickle(pickled) if pickled.is_file() else pd.read_parquet(path)


def peer(name: str, X: pd.DataFrame, classes: bool) -> Any:
    """Boosting with native categories, a forest or a linear model on one-hot columns, without the id."""
    if name == "boosting":
        boosting = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
        to_categories = FunctionTransformer(partial(as_categories, like=X))
        return make_pipeline(to_categories, boosting(random_state=0, categorical_features="from_dtype"))
    text = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    numbers = [name for name in X if name not in text and name != "rownames"]
    one_hot = make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), numbers),
        (OneHotEncoder(min_frequency=10, max_categories=255, handle_unknown="infrequent_if_exist"), text),
        sparse_threshold=0,
    )
    if name == "forest":
        return make_pipeline(one_hot, (RandomForestClassifier if classes else RandomForestRegressor)(random_state=0))
    logistic = LogisticRegressionCV(max_iter=2000, scoring="neg_log_loss")
    return make_pipeline(one_hot, logistic if classes else RidgeCV(np.logspace(-3, 5, 25)))


def made(name: str, X: pd.DataFrame, classes: bool) -> Any:
    """A peer, or ours, with the kernel named after it if it is another one than the default."""
    if name in PEERS:
        return peer(name, X, classes)
    return tabular((KernelClassifier if classes else KernelRidge)(*name.split()[1:], tune=True))


def as_categories(X: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    """Text as the categories of the training rows, at most 250 of them, for boosting."""
    changed = X.drop(columns="rownames")
    for name in changed:
        if not pd.api.types.is_numeric_dtype(like[name]):
            changed[name] = pd.Categorical(X[name], categories=like[name].value_counts().index[:250])
    return changed


def scores(model: Any, X: pd.DataFrame, y: pd.Series, classes: bool) -> tuple[float, float]:
    """R2 twice, or the log loss and the accuracy; larger first numbers are better."""
    if not classes:
        r2 = float(r2_score(y, model.predict(X)))
        return r2, r2
    p = model.predict_proba(X)
    return -float(log_loss(y, p, labels=model.classes_)), float(accuracy_score(y, model.predict(X)))


def run(path: Path, args: argparse.Namespace) -> None:
    """Add what is missing."""
    done = {(r["table"], r["model"]) for r in results(path)}
    for i, row in pd.read_csv(DATA / "index.csv").iterrows():
        name = row["file"].removesuffix(".parquet")
        here = {"first": i % 2 == 0, "second": i % 2 == 1, "all": True}[args.half]
        if not here or (args.tables and name not in args.tables):
            continue
        classes, target = row["task"] == "classification", row["target"]
        train, test = split(row["file"], target, args.rows)
        left = [target, *GIVEN_AWAY.get(name, [])]
        (X, y), (X_test, y_test) = ((part.drop(columns=left), part[target]) for part in (train, test))
        for model in args.models:
            if (name, model) in done:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                started = time.perf_counter()
                fitted = made(model, X, classes).fit(X, y)
                seconds = time.perf_counter() - started
                measure, accuracy = scores(fitted, X_test, y_test, classes)
            found = {"table": name, "design": i % 2 == 0, "classes": classes, "model": model, "rows": len(X)}
            found |= {"measure": measure, "accuracy": accuracy, "seconds": seconds}
            with path.open("a") as file:
                file.write(json.dumps(found) + "\n")
            print(found, flush=True)


def results(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def table(found: list[dict[str, Any]], models: list[str]) -> None:
    """Each table's results, and mean ranks."""
    print(f"{'table':18s}" + "".join(f"{name:>18s}" for name in models))
    ranks: dict[tuple[bool, bool], list[np.ndarray]] = {}
    for name in dict.fromkeys(r["table"] for r in found):
        rows = {r["model"]: r for r in found if r["table"] == name}
        if not set(models) <= set(rows):
            continue
        classes, design = (rows[models[0]][key] for key in ("classes", "design"))
        values = np.array([rows[m]["measure"] for m in models])
        cells = [
            f"{rows[m]['accuracy']:.3f} / {-rows[m]['measure']:.3f}" if classes else f"{v:.3f}"
            for m, v in zip(models, values, strict=True)
        ]
        worse = values[models.index("linear")] - values[0]
        note = f"   worse than linear by {worse:.3f}" if worse > 0.02 else ""
        print(f"{name + '*' * design:18s}" + "".join(f"{cell:>18s}" for cell in cells) + note)
        ranks.setdefault((classes, design), []).append(1 + (values[:, None] < values[None]).sum(1))
    for (classes, design), rows in sorted(ranks.items()):
        means = ", ".join(f"{n} {r:.2f}" for n, r in zip(models, np.mean(rows, axis=0), strict=True))
        which = "first" if design else "second"
        print(f"mean rank of {'log loss' if classes else 'R2'}, {len(rows)} tables of the {which} half: {means}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--half", choices=("first", "second", "all"), default="all")
    parser.add_argument("--rows", type=int, default=TRAIN)
    parser.add_argument("--models", nargs="*", default=["mercer", *PEERS])
    parser.add_argument("--tables", nargs="*")
    args = parser.parse_args()
    print(processor())
    run(args.results, args)
    table(results(args.results), args.models)


if __name__ == "__main__":
    main()
