"""The job of `mercer fit` for tables that are read in parts, with columns of any kind, and for classes."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mercer.cli.dials import MIN_TEST, MIN_TRAIN
from mercer.cli.fitting import Fitted, estimator_for, tested_on
from mercer.cli.frame_model import FrameModel, marks_of
from mercer.cli.problem import quoted, where_is
from mercer.cli.regression import Settings
from mercer.cli.task import CLASSIFICATION, Columns, Task, kind_of
from mercer.core.errors import InputError
from mercer.data.rows import ParquetTables, RowSource, SelectedTables, sampled_table, table_of
from mercer.data.rows.parquet import is_number
from mercer.estimators import TabularEstimator
from mercer.estimators.dials import FEWEST_SAMPLED
from mercer.estimators.tabular.treatments import as_texts


def as_tables(data: Path, asked: Columns, settings: Settings) -> ParquetTables | None:
    """The tables of Parquet files, where the job is one of classes or of columns that are not all numbers; else None.

    Numbers alone are standardised and fitted by sums with the choices that the command line has for these.
    """
    names, kinds = ParquetTables.columns_of(data)
    target = where_is(asked.target, names, names, "--target", str(data))
    weights = None if asked.weights is None else where_is(asked.weights, names, names, "--weights", str(data))
    dropped = [where_is(name, names, names, "--drop", str(data)) for name in asked.drop]
    used = [name for name in (target, weights) if name is not None]
    if asked.features is None:
        features = [name for name in names if name not in (*used, *dropped)]
    else:
        features = [where_is(name, names, names, "--features", str(data)) for name in asked.features]
        both = [name for name in features if name in used]
        if both:
            raise InputError(f"--features names {quoted(both)}, which is the target or the weights.")
    if not features:
        raise InputError(f"{data} has no column besides {quoted(used)} to learn from.")
    kind, _ = _kind(data, target, asked.task)
    if kind != CLASSIFICATION and all(is_number(kinds[name]) for name in features):
        return None
    return ParquetTables(data, target, features, weights)


def fit_in_parts(
    source: ParquetTables, data: Path, asked: Columns, settings: Settings, reason: str, step: Callable[[str], None]
) -> Fitted:
    """Fit the best of the kernels to tables that are read in parts, and compare on rows held out."""
    start = time.perf_counter()
    kind, why = _kind(data, source.targets[0], asked.task)
    if settings.model == "gp" and kind == CLASSIFICATION:
        raise InputError(f"--model gp learns classes from all rows at once, but here {reason}.")
    if len(settings.kernels) > 1 and settings.checkpoint is not None:
        raise InputError("--checkpoint keeps the state of one fit: name one --kernel.")
    if settings.cv:
        raise InputError(f"--cv is for rows that are read at once, but here {reason}.")
    split = (settings.test_fraction, settings.seed)
    train, test = (SelectedTables(source, *split, held_out=held_out) for held_out in (False, True))
    if train.n_rows < MIN_TRAIN or (settings.test_fraction > 0 and test.n_rows < MIN_TEST):
        raise InputError(f"{data} has {source.n_rows:,} rows, too few to learn from and to test on.")
    tried: dict[str, float] = {}
    best: TabularEstimator | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name in settings.kernels:
            step(f"fitting the {name} kernel to {train.n_rows:,} rows")
            candidate = TabularEstimator(_estimator(kind, name, settings)).fit(train)
            path = getattr(candidate.estimator_, "alpha_path_", None)
            tried[name] = float("nan") if path is None else float(path.errors.min())
            if best is None or tried[name] <= min(tried.values()):
                best = candidate
    assert best is not None
    seen, held = (_task(rows, kind, why, source, data, settings) for rows in (train, test))
    step("comparing with simpler models")
    tested = None if held is None or seen is None else tested_on(best, seen, held, intervals=False)
    assert seen is not None
    notes = [f"{t.name!r} is left out: {t.why}." for t in best.encoder_.left_out]
    notes += [str(w.message) for w in caught if not issubclass(w.category, DeprecationWarning)]
    notes += [concern for concern in best.report().concerns if "is left out" not in concern]
    if len(seen) < train.n_rows:
        notes.append(f"simpler models and the marks of rows are from {len(seen):,} of the rows to learn from")
    model = FrameModel(best, source.targets[0], source.weight, marks_of(best, seen.table))
    seconds = time.perf_counter() - start
    counts = (train.n_rows, test.n_rows)
    reading = f"in {len(source.parts()):,} parts: {reason}"
    kept = tuple(dict.fromkeys(notes))
    return Fitted(model, settings, seen, None, None, tried, tested, seconds, kept, counts=counts, reading=reading)


def _estimator(kind: str, kernel: str, settings: Settings) -> Any:
    estimator = estimator_for(kind, kernel, settings)
    known = estimator.get_params()
    given = {"checkpoint": settings.checkpoint, "n_landmarks": settings.landmarks, "solver": settings.solver}
    if settings.model == "gp":
        given = {"n_landmarks": settings.landmarks}
    return estimator.set_params(**{name: value for name, value in given.items() if name in known})


def _kind(data: Path, target: str, asked: str) -> tuple[str, str]:
    """Whether the target holds classes, from the rows of the first part."""
    rows = ParquetTables(data, None, [target])
    column = table_of(rows, rows.parts()[0]).columns[target]
    texts = np.array(as_texts(column), dtype=object)
    there = np.array([text is not None for text in texts], dtype=bool)
    return kind_of(column[there], texts[there], target, asked, str(data))


def _task(rows: RowSource, kind: str, why: str, source: ParquetTables, data: Path, settings: Settings) -> Task | None:
    """Some of the rows as a task in memory."""
    if rows.n_rows == 0:
        return None
    table, targets, weights = sampled_table(rows, FEWEST_SAMPLED, settings.seed)
    assert targets is not None
    y = targets[:, 0]
    if kind == CLASSIFICATION:
        labels = source.labels
        y = np.array(as_texts(y) if labels is None else labels[y.astype(int)], dtype=object).astype(str)
    if weights is not None:
        table, y, weights = table.take(weights > 0), y[weights > 0], weights[weights > 0]
    return replace(Task(table, y, weights, source.targets[0], str(data), kind, why, source.weight), notes=())
