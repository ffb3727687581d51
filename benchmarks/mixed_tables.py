"""Tables with text, categories, gaps, dates and ids: ``python -m benchmarks.mixed_tables [ROWS] [TABLE ...]``.

`mercer.tabular(KernelRidge(tune=True))` and `mercer.tabular(KernelClassifier(tune=True))` beside boosting with native
categories, a random forest and a linear model on one-hot columns, on the split of the data's README. How categories
are coded was chosen on the even rows of the index (0, 2, ...), which are marked with a star.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterator
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
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.processor import processor
from mercer import KernelClassifier, KernelRidge, tabular

DATA = Path(os.environ.get("MERCER_DATA", "../shared/data")) / "mixed"
TRAIN, TEST = 8000, 4000
GIVEN_AWAY = {"Wage": ["logwage"], "TenMileRace": ["net"]}


def split(name: str, target: str, rows: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test rows; rows without a target and columns that give it away are left out."""
    frame = pd.read_parquet(DATA / name).dropna(subset=[target]).reset_index(drop=True)
    order = np.random.default_rng(0).permutation(len(frame))
    n = int(0.75 * len(frame))
    return frame.iloc[order[: min(n, rows)]], frame.iloc[order[n : n + TEST]]


def rivals(X: pd.DataFrame, classes: bool) -> dict[str, Any]:
    """Boosting with native categories, a forest and a linear model on one-hot columns, without the id."""
    text = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    numbers = [name for name in X if name not in text and name != "rownames"]
    one_hot = make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), numbers),
        (OneHotEncoder(min_frequency=10, max_categories=255, handle_unknown="infrequent_if_exist"), text),
        sparse_threshold=0,
    )
    boosting = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    forest = RandomForestClassifier if classes else RandomForestRegressor
    linear = LogisticRegressionCV(max_iter=2000, scoring="neg_log_loss") if classes else RidgeCV(np.logspace(-3, 5, 25))
    return {
        "boosting": boosting(random_state=0, categorical_features="from_dtype"),
        "forest": make_pipeline(one_hot, forest(random_state=0, n_jobs=2)),
        "linear": make_pipeline(one_hot, linear),
    }


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


def results(
    wanted: list[str], rows: int = TRAIN
) -> Iterator[tuple[str, bool, dict[str, tuple[float, float]], float, Any]]:
    index = pd.read_csv(DATA / "index.csv")
    for i, row in index.iterrows():
        name = row["file"].removesuffix(".parquet")
        if wanted and name not in wanted:
            continue
        classes, target = row["task"] == "classification", row["target"]
        train, test = split(row["file"], target, rows)
        left = [target, *GIVEN_AWAY.get(name, [])]
        (X, y), (X_test, y_test) = ((part.drop(columns=left), part[target]) for part in (train, test))
        found = {}
        started = time.perf_counter()
        model = tabular((KernelClassifier if classes else KernelRidge)(**DEFAULTS[classes])).fit(X, y)
        seconds = time.perf_counter() - started
        found["mercer"] = scores(model, X_test, y_test, classes)
        for rival, made in rivals(X, classes).items():
            prepared = (lambda A, X=X: as_categories(A, X)) if rival == "boosting" else (lambda A: A)
            found[rival] = scores(made.fit(prepared(X), y), prepared(X_test), y_test, classes)
        yield f"{name}{'*' * (i % 2 == 0)}", classes, found, seconds, model


def options(cls: Any) -> dict[str, Any]:
    """What makes an estimator choose everything by itself."""
    known = cls().get_params()
    chosen = {"alpha": "auto", "fit_intercept": True}
    return chosen | ({"tune": True} if "tune" in known else {})


DEFAULTS = {True: options(KernelClassifier), False: options(KernelRidge)}


def main(wanted: list[str]) -> None:
    warnings.simplefilter("ignore")
    rows = int(wanted.pop(0)) if wanted and wanted[0].isdecimal() else TRAIN
    print(f"{processor()}; at most {rows:,} training rows, {DEFAULTS}")
    names = ("mercer", "boosting", "forest", "linear")
    ranks: dict[bool, list[np.ndarray]] = {True: [], False: []}
    print(f"{'table':18s}" + "".join(f"{name:>18s}" for name in names) + "   seconds")
    for table, classes, found, seconds, _ in results(wanted, rows):
        cells = [f"{found[n][1]:.3f} / {-found[n][0]:.3f}" if classes else f"{found[n][0]:.3f}" for n in names]
        values = np.array([found[n][0] for n in names])
        ranks[classes].append(1 + (values[:, None] < values[None]).sum(1))
        worse = values[names.index("linear")] - values[0]
        note = "   worse than linear by more than .02" if worse > 0.02 else ""
        print(f"{table:18s}" + "".join(f"{cell:>18s}" for cell in cells) + f"{seconds:10.0f}{note}", flush=True)
    for classes, rows in ranks.items():
        if rows:
            means = ", ".join(f"{n} {r:.2f}" for n, r in zip(names, np.mean(rows, axis=0), strict=True))
            print(f"mean rank of {'log loss' if classes else 'R2'} on {len(rows)} tables: {means}")


if __name__ == "__main__":
    main(sys.argv[1:])
