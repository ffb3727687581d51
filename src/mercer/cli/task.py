"""From a table to a task: which column to predict, whether it holds classes or numbers, which rows are for testing."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mercer.cli.dials import FEW_VALUES, MANY_CLASSES, MIN_TEST, MIN_TRAIN
from mercer.cli.problem import closest, listed, quoted, where_is
from mercer.cli.reading import Read
from mercer.core.errors import InputError
from mercer.data.table import Table
from mercer.data.texts import as_number
from mercer.estimators.tabular.treatments import as_texts

CLASSIFICATION, REGRESSION = "classification", "regression"
TASKS = ("auto", CLASSIFICATION, REGRESSION)


@dataclass(frozen=True)
class Columns:
    """Which columns a user asks for."""

    target: str
    features: Sequence[str] | None = None
    weights: str | None = None
    drop: Sequence[str] = ()
    task: str = "auto"


@dataclass(frozen=True)
class Task:
    """Rows with their targets: a table, numbers or labels, and weights."""

    table: Table
    y: np.ndarray
    weights: np.ndarray | None
    target: str
    source: str
    kind: str
    why: str
    weight_column: str | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.y)

    @property
    def features(self) -> tuple[str, ...]:
        return self.table.names

    def take(self, rows: np.ndarray) -> Task:
        """The task with some rows only."""
        weights = None if self.weights is None else self.weights[rows]
        return replace(self, table=self.table.take(rows), y=self.y[rows], weights=weights)


def task_of(read: Read, asked: Columns) -> Task:
    """The task of predicting a column of a file; rows without a target are dropped, and counted."""
    known, usual = read.names, read.usual or read.names
    if asked.target in read.left_out:
        raise InputError(f"--target: array {asked.target!r} of {read.source} {read.left_out[asked.target]}.")
    target = where_is(asked.target, known, usual, "--target", read.source)
    weights = None if asked.weights is None else where_is(asked.weights, known, usual, "--weights", read.source)
    dropped = [where_is(name, known, usual, "--drop", read.source) for name in asked.drop]
    used = [name for name in (target, weights) if name is not None]
    if asked.features is None:
        features = [name for name in usual if name not in (*used, *dropped)]
    else:
        features = [where_is(name, known, usual, "--features", read.source) for name in asked.features]
        both = [name for name in features if name in used]
        if both:
            raise InputError(f"--features names {quoted(both)}, which is the target or the weights.")
    if not features:
        raise InputError(f"{read.source} has no column besides {quoted(used)} to learn from.")
    table = read.table
    texts = np.array(as_texts(table.columns[target]), dtype=object)
    there = np.array([text is not None for text in texts], dtype=bool)
    notes = list(read.notes)
    if not there.all():
        notes.append(f"{int((~there).sum()):,} of {len(there):,} rows have no {target}, and are left out.")
    kind, why = kind_of(table.columns[target][there], texts[there], target, asked.task, read.source)
    w = None if weights is None else checked_weights(table.columns[weights], weights)
    if w is not None:
        there &= w > 0
    rows = np.flatnonzero(there)
    y = texts[rows].astype(str) if kind == CLASSIFICATION else table.columns[target][rows].astype(np.float64)
    _something_to_learn(y, target)
    return Task(
        table.only(features).take(rows), y, None if w is None else w[rows], target, read.source, kind, why, weights,
        tuple(notes),
    )  # fmt: skip


def kind_of(values: np.ndarray, texts: np.ndarray, target: str, asked: str, source: str) -> tuple[str, str]:
    """Whether a target holds classes or numbers, and why; an error where neither can be learned."""
    distinct = len(set(texts))
    if values.dtype.kind == "M":
        raise InputError(f"The target {target!r} of {source} holds dates: give a column of numbers or of classes.")
    if asked == CLASSIFICATION:
        return CLASSIFICATION, "as asked"
    if values.dtype.kind == "O":
        words = [text for text in texts if as_number(text, ".") is None]
        if asked == REGRESSION or (len(words) < len(texts) / 2 and distinct > FEW_VALUES):
            row = next((i for i, text in enumerate(texts) if text in words), 0)
            raise InputError(
                f"The target {target!r} of {source} should hold numbers, but is {texts[row]!r} in row {row + 1}. "
                f"Correct the file, or use --task classification."
            )
        if distinct > MANY_CLASSES and distinct > len(texts) / 5:
            raise InputError(
                f"The target {target!r} of {source} holds text with {distinct:,} different values in {len(texts):,} "
                "rows, too many for classes. Name another --target."
            )
        return CLASSIFICATION, "the target holds text"
    if values.dtype.kind == "b":
        return (REGRESSION, "as asked") if asked == REGRESSION else (CLASSIFICATION, "the target holds true and false")
    if np.isinf(values).any():
        row = int(np.isinf(values).argmax())
        raise InputError(f"The target {target!r} of {source}: the value in row {row + 1} is infinite.")
    if asked == REGRESSION:
        return REGRESSION, "as asked"
    if distinct == 2 and len(texts) > FEW_VALUES:
        return CLASSIFICATION, f"the target holds two values, {' and '.join(sorted(set(texts)))}"
    few = distinct <= FEW_VALUES and bool((values % 1 == 0).all()) and len(texts) > 10 * distinct
    hint = f", {distinct} different ones: for classes say --task classification" if few else ""
    return REGRESSION, f"the target holds numbers{hint}"


def split(task: Task, test_fraction: float, seed: int) -> tuple[Task, Task | None]:
    """Training and test rows, drawn at random; no test rows when the fraction is 0."""
    n = len(task)
    n_test = round(test_fraction * n)
    if test_fraction > 0:
        n_test = max(n_test, MIN_TEST)
    if n - n_test < MIN_TRAIN:
        raise InputError(
            f"{task.source} has {n} rows, too few: {n_test} of them for testing would leave {max(n - n_test, 0)} "
            f"to learn from, and at least {MIN_TRAIN} are needed."
        )
    order = np.random.default_rng(seed).permutation(n)
    train = task.take(np.sort(order[n_test:]))
    if len(set(train.y.tolist())) == 1:
        raise InputError(
            f"The target {task.target!r} is {_shown(train.y[0])} in every training row: there is nothing to learn. "
            "Another --seed draws other rows."
        )
    return train, task.take(np.sort(order[:n_test])) if n_test else None


def checked_weights(column: np.ndarray, name: str) -> np.ndarray:
    """A column of weights: numbers, none missing or negative, some positive."""
    if column.dtype.kind not in "fb":
        raise InputError(f"Column {name!r} of weights does not hold numbers.")
    weights = column.astype(np.float64)
    for bad, what in ((~np.isfinite(weights), "no weight"), (weights < 0, "a negative weight")):
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(f"Column {name!r} holds {what} ({weights[row]:g} in row {row + 1}).")
    if not weights.any():
        raise InputError(f"Every weight in column {name!r} is zero.")
    return weights


def missing(table: Table, names: Sequence[str], source: str) -> None:
    """Raise an error that lists the columns a model needs and a table does not have."""
    lacking = [name for name in names if name not in table.columns]
    if lacking:
        like = closest(lacking[0], table.names)
        hint = f" Did you mean {like!r}?" if like else ""
        raise InputError(
            f"{source} lacks {len(lacking)} of the {len(names)} columns the model was fitted on: "
            f"{quoted(lacking)}.{hint} Its columns: {listed(table.names)}."
        )


def _something_to_learn(y: np.ndarray, target: str) -> None:
    if len(y) > 1 and len(set(y.tolist())) == 1:
        raise InputError(f"Every value of the target {target!r} is {_shown(y[0])}: there is nothing to learn.")


def _shown(value: object) -> str:
    with contextlib.suppress(TypeError, ValueError):
        return f"{value:g}"
    return repr(str(value))
