"""Random tables as people have them: categories, gaps, text, dates and odd columns, in frames of several libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

import mercer
from fuzz.data import Rng, Sample, random_labels

ROWS = (1, 2, 3, 8, 20, 60, 60, 150)
DAYS = np.datetime64("2024-01-30", "s")


def _gaps(values: Any, rng: Rng, gap: Any = None) -> np.ndarray:
    values = np.asarray(values).astype(object)
    values[rng.random(len(values)) < 0.2] = gap
    return values


def _moments(n: int, rng: Rng) -> np.ndarray:
    return DAYS + rng.integers(0, 10**8, n).astype("timedelta64[s]")


def _letters(n: int, rng: Rng, many: int = 3) -> np.ndarray:
    return rng.choice([f"level {i}" for i in range(many)], n)


COLUMNS: dict[str, Callable[[int, Rng], Any]] = {
    "numbers": lambda n, rng: rng.normal(size=n),
    "integers": lambda n, rng: rng.integers(0, 9, n),
    "numbers with gaps": lambda n, rng: np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
    "infinite": lambda n, rng: np.where(rng.random(n) < 0.2, np.inf, rng.normal(size=n)),
    "huge": lambda n, rng: rng.normal(size=n) * 1e200,
    "tiny": lambda n, rng: rng.normal(size=n) * 1e-200,
    "big integers": lambda n, rng: rng.integers(2**62, 2**63 - 1, n),
    "constant": lambda n, rng: np.full(n, 3.0),
    "without values": lambda n, rng: np.full(n, None, dtype=object),
    "yes and no": lambda n, rng: rng.random(n) < 0.5,
    "yes and no with gaps": lambda n, rng: _gaps(rng.random(n) < 0.5, rng),
    "category": lambda n, rng: _letters(n, rng),
    "category with gaps": lambda n, rng: _gaps(_letters(n, rng), rng),
    "many levels": lambda n, rng: _letters(n, rng, 40),
    "each row its own text": lambda n, rng: np.array([f"text {i}" for i in rng.permutation(n)], dtype=object),
    "empty text": lambda n, rng: rng.choice(["", " ", "a"], n),
    "numbers as text": lambda n, rng: np.array([f"{v:.2f}" for v in rng.normal(size=n)], dtype=object),
    "decimal commas": lambda n, rng: np.array([f"{v:.2f}".replace(".", ",") for v in rng.normal(size=n)], dtype=object),
    "dates": _moments,
    "dates with gaps": lambda n, rng: np.where(rng.random(n) < 0.2, np.datetime64("NaT"), _moments(n, rng)),
    "dates as text": lambda n, rng: _moments(n, rng).astype("datetime64[D]").astype(str).astype(object),
    "far dates": lambda n, rng: np.array(["1700-01-01", "2200-12-31"], dtype="datetime64[s]")[rng.integers(0, 2, n)],
    "durations": lambda n, rng: rng.integers(0, 10**6, n).astype("timedelta64[s]"),
    "unicode": lambda n, rng: rng.choice(["é", "日本", "\U0001f600", "a\x00b"], n).astype(object),
    "mixed": lambda n, rng: np.array([[1, "a", 2.5, None, True][i % 5] for i in range(n)], dtype=object),
    "lists": lambda n, rng: np.array([*([i] for i in range(n)), None], dtype=object)[:n],
}
"""What a column may hold."""


def _in_polars(columns: dict[str, Any]) -> pl.DataFrame:
    """Columns of one kind as they are, those of several as text, since others do not fit a series."""
    made = {}
    for name, values in columns.items():
        try:
            made[name] = pl.Series(values)
        except Exception:
            made[name] = pl.Series([None if value is None else str(value) for value in values])
    return pl.DataFrame(made)


CONTAINERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": pd.DataFrame,
    "pandas, nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "pandas, categories": lambda columns: pd.DataFrame(columns).apply(
        lambda column: column.map(str, na_action="ignore").astype("category") if column.dtype == object else column
    ),
    "pandas, an odd index": lambda columns: pd.DataFrame(columns, index=np.zeros(len(next(iter(columns.values()))))),
    "polars": lambda columns: _in_polars(columns),
    "arrow": lambda columns: _in_polars(columns).to_arrow(),
    "a dictionary": lambda columns: columns,
    "an array": lambda columns: np.stack([np.asarray(v).astype(object) for v in columns.values()], axis=1),
}
"""What the columns come in."""

INNER: dict[str, Callable[[], Any]] = {
    "KernelRidge": lambda: mercer.KernelRidge(),
    "KernelRidge, tuned": lambda: mercer.KernelRidge(tune=True),
    "KernelRidge, gaussian": lambda: mercer.KernelRidge("gaussian", alpha=1e-3, fit_intercept=True),
    "KernelRegressor": lambda: mercer.KernelRegressor(loss="quantile", quantiles=[0.1, 0.9]),
    "GaussianProcessRegressor": lambda: mercer.GaussianProcessRegressor(max_iter=5, n_restarts=0),
    "RFMRegressor": lambda: mercer.RFMRegressor(max_iter=1, n_folds=2),
    "KernelClassifier": lambda: mercer.KernelClassifier(),
    "GaussianProcessClassifier": lambda: mercer.GaussianProcessClassifier(max_iter=5, n_restarts=0),
    "KernelPCA": lambda: mercer.KernelPCA(2),
}
"""What is fitted to the columns."""

OPTIONS: dict[str, tuple[Any, ...]] = {
    "columns": (None, None, {"c0": "drop"}, {"c0": "category"}, {"c0": "date"}, {"c0": "number"}, {"x": "drop"}, {}),
    "max_levels": (20, 1, 2, 10**30),
    "rare": (10, 1, 10**30),
}


def random_table(rng: Rng) -> tuple[Any, Sample, dict[str, Any]]:
    """An estimator for the encoded columns, a table with targets and new rows, and options of `TabularEstimator`."""
    n = int(rng.choice(ROWS))
    kinds = [str(kind) for kind in rng.choice(list(COLUMNS), size=int(rng.integers(1, 6)))]
    names = [f"c{j}" for j in range(len(kinds))]
    if rng.random() < 0.15:
        names = [["naïve é", "", " ", "日本", "a=b"][j % 5] + "!" * (j // 5) for j in range(len(kinds))]
    columns = {name: COLUMNS[kind](n + 4, rng) for name, kind in zip(names, kinds, strict=True)}
    container = str(rng.choice(list(CONTAINERS)))
    inner = str(rng.choice(list(INNER)))
    y: Any = np.sin(np.arange(n)) + 0.1 * rng.normal(size=n)
    words = [f"{n} rows", container, *kinds, inner]
    if inner.endswith("Classifier"):
        y, kind = random_labels(rng, n)
        words.append(kind)
    made = CONTAINERS[container]
    rows, new = ({name: values[part] for name, values in columns.items()} for part in (slice(n), slice(n - 1, None)))
    options = {name: values[int(rng.choice([0, int(rng.integers(len(values)))]))] for name, values in OPTIONS.items()}
    weights = rng.uniform(0.0, 2.0, n) if inner.startswith("KernelR") and rng.random() < 0.2 else None
    return INNER[inner](), Sample(made(rows), y, weights, made(new), words), options
