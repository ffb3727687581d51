"""Predictions for rows that are read in parts, and written as they come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mercer.cli.fitting import ClassScore, class_score
from mercer.cli.frame_model import FrameModel
from mercer.cli.model import TableModel
from mercer.cli.problem import find_column
from mercer.cli.reading import STDIN, Format, read_file
from mercer.cli.scores import RunningErrors, Score, score
from mercer.cli.sources import array_table, checked_rows, format_of_data, parquet_tables, too_large
from mercer.cli.tables import Table, write_table
from mercer.cli.task import checked_weights, missing
from mercer.cli.writers import to_stdout, writing
from mercer.core.errors import InputError
from mercer.core.memory import give_back
from mercer.core.progress import Progress
from mercer.data import table as data_table
from mercer.data.rows import read_ahead
from mercer.data.texts import as_number
from mercer.estimators.tabular.treatments import as_texts

OURS = "prediction"


@dataclass(frozen=True)
class Wanted:
    """What stands beside the predictions: columns of the data, ends of intervals, probabilities."""

    keep: tuple[str, ...] = ()
    level: float | None = None
    proba: bool = False


@dataclass(frozen=True)
class Predicted:
    """How many rows were predicted, how many equal rows of training, and the score on the `scored` with a target."""

    rows: int
    known: int
    score: Score | ClassScore | str | None
    scored: int = 0


def predict_frame(model: FrameModel, data: Path, out: Path, wanted: Wanted, form: Format) -> Predicted:
    """Predict the rows of a file or folder, and write them."""
    if wanted.proba and not model.classifies:
        raise InputError("--proba is for classes, and this model predicts numbers; see --interval.")
    if wanted.level is not None and not hasattr(model.model, "predict_interval"):
        raise InputError("--interval is for numbers, and this model predicts classes; see --proba.")
    made: list[dict[str, np.ndarray]] = []
    targets: list[Any] = []
    weights: list[Any] = []
    known = 0
    for table, source in tables_of(model, data, form):
        missing(table, model.features, source)
        rows = model.rows_of(table)
        made.append(_kept(model, table, wanted.keep, source) | _predicted(model, rows, wanted))
        targets.append(_target(model, table))
        weights.append(table.columns.get(model.weights or ""))
        known += int(model.trained_on(rows).sum()) if len(table) else 0
    columns = {name: np.concatenate([part[name] for part in made]) for name in made[0]}
    count = len(columns[OURS])
    (to_stdout if out == STDIN else write_table)(out, columns)
    whole = None if any(part is None for part in targets) or not count else np.concatenate(targets)
    w = None if any(part is None for part in weights) else np.concatenate(weights)
    if whole is None:
        return Predicted(count, known, None)
    there = np.array([v is not None and v == v for v in whole], dtype=bool)
    if w is not None:
        there &= checked_weights(w, model.weights or "") > 0
        w = w[there]
    if not there.any():
        return Predicted(count, known, f"not known: column {model.target!r} has no value")
    found = _scored(model, whole[there], {name: column[there] for name, column in columns.items()}, w)
    return Predicted(count, known, found, int(there.sum()))


def tables_of(model: FrameModel, data: Path, form: Format) -> Iterator[tuple[data_table.Table, str]]:
    """The rows of a file, in parts where it is a folder or large."""
    if data != STDIN and data.exists() and format_of_data(data) == "npy":
        table = array_table(data)
        if len(table.columns) == len(model.features):
            table = data_table.Table(dict(zip(model.features, table.columns.values(), strict=True)), len(table))
        yield table, str(data)
    elif data.is_dir() or (data.suffix == ".parquet" and too_large(data, None) is not None):
        yield from ((table, str(data)) for table in parquet_tables(data))
    else:
        read = read_file(data, form)
        yield read.table, read.source


def _predicted(model: FrameModel, rows: data_table.Table, wanted: Wanted) -> dict[str, np.ndarray]:
    if not len(rows):
        return {OURS: np.empty(0)}
    found: dict[str, np.ndarray] = {OURS: np.asarray(model.model.predict(rows))}
    if wanted.level is not None:
        low, high = model.model.predict_interval(rows, wanted.level)
        found |= {"lower": np.asarray(low), "upper": np.asarray(high)}
    if model.classifies and wanted.proba:
        p = np.asarray(model.model.predict_proba(rows))
        found |= {f"p({name})": p[:, j] for j, name in enumerate(model.model.classes_)}
    return found


def _kept(model: FrameModel, table: data_table.Table, keep: Sequence[str], source: str) -> dict[str, np.ndarray]:
    """Columns that name rows, and those that were asked for."""
    for name in keep:
        if name not in table.columns:
            raise InputError(f"--keep {name}: {source} has no column {name!r}. Its columns: {', '.join(table.names)}.")
    if OURS in keep:
        raise InputError(f"--keep {OURS}: this name is used for the column of predictions.")
    names = dict.fromkeys([*(name for name in model.ids if name in table.columns), *keep])
    return {name: as_written(table.columns[name]) for name in names}


def as_written(column: np.ndarray) -> np.ndarray:
    """A column as it should stand in a file: whole numbers without a point, nothing for gaps."""
    if column.dtype.kind == "f" and not np.isnan(column).any():
        return column.astype(np.int64) if (column % 1 == 0).all() and (np.abs(column) < 2**53).all() else column
    if column.dtype.kind in "OM":
        return np.array(["" if text is None else text for text in as_texts(column)])
    return column


def _target(model: FrameModel, table: data_table.Table) -> np.ndarray | None:
    """The target where the table holds it: text for classes, else numbers with gaps."""
    column = table.columns.get(model.target)
    if column is None or model.classifies:
        return None if column is None else np.array(as_texts(column), dtype=object)
    numbers = [as_number(text, ".") for text in as_texts(column)]
    return np.array([np.nan if v is None else v for v in numbers], dtype=np.float64)


def _scored(
    model: FrameModel, y: np.ndarray, columns: dict[str, np.ndarray], weights: np.ndarray | None
) -> Score | ClassScore:
    if not model.classifies:
        return score(y, columns[OURS], weights)
    classes = model.model.classes_
    names = [f"p({name})" for name in classes]
    if names[0] not in columns:
        return ClassScore(float(np.average(columns[OURS] == y.astype(str), weights=weights)), float("nan"))
    return class_score(y.astype(str), np.column_stack([columns[name] for name in names]), classes, weights)


def predict_streamed(
    model: TableModel, data: Path, out: Path, keep: Sequence[str], *, shown: bool
) -> tuple[int, Score | None]:
    """Predict all rows, part by part; gives their number, and the score where the data hold the target too."""
    asked = checked_rows(data, model.features, model.target, model.weights)
    kept = kept_columns(asked.table, keep)
    rows, errors = asked.rows, RunningErrors((OURS,), model.target_mean)
    with writing(out, rows.n_rows) as writer, Progress(rows.n_rows, "predictions", shown=shown) as progress:
        for part, chunk in read_ahead(rows.read, rows.parts()):
            predicted = model.predict(chunk.X.numpy())
            writer.write(asked.kept(part, kept) | {OURS: predicted})
            if asked.target is not None and chunk.targets is not None:
                weights = None if chunk.weights is None else chunk.weights.numpy()
                errors.add(chunk.targets[:, 0].numpy(), {OURS: predicted}, weights)
            del chunk
            give_back()
            progress.advance(len(part))
    return rows.n_rows, errors.scores()[OURS] if errors.weight else None


def kept_columns(table: Table, keep: Sequence[str]) -> list[str]:
    """The columns to copy beside the predictions."""
    kept = [find_column(table, name, "--keep") for name in keep]
    if OURS in kept:
        raise InputError(f"--keep {OURS}: this name is used for the column of predictions.")
    return kept
