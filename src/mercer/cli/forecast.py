"""The job of `mercer forecast`: the error expected with more rows than a table has."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.cli.problem import Problem
from mercer.cli.regression import scaling
from mercer.cli.task import CLASSIFICATION, Task
from mercer.estimators import KernelClassifier, KernelRidge
from mercer.estimators.tabular.encoder import TableEncoder
from mercer.theory import LearningCurve, SamplesNeeded


def numbers_of(task: Task) -> tuple[Problem, tuple[str, ...]]:
    """A task in numbers: encoded columns, classes as codes; and the classes, none where the target is a number."""
    encoder = TableEncoder.looking_at(task.table, task.weights)
    y, classes = task.y, ()
    if task.kind == CLASSIFICATION:
        found, y = np.unique(task.y, return_inverse=True)
        y, classes = y.astype(np.float64), tuple(found.tolist())
    X = encoder.encode(task.table)
    return Problem(X, y, task.weights, encoder.columns, task.target, task.source, task.weight_column), classes


def forecast(
    problem: Problem, kernel: str, target: float | None, memory: int | None, seed: int, classes: tuple[str, ...] = ()
) -> tuple[LearningCurve, SamplesNeeded | None]:
    """The learning curve of all rows with alpha by leave-one-out, and the rows that reach an error.

    With classes, the target holds their codes, and the error is the Brier score.
    """
    center, scale, _ = scaling(problem, True)
    common: dict[str, Any] = {"fit_intercept": True, "memory_budget": memory, "random_state": seed}
    model = (KernelClassifier if classes else KernelRidge)(kernel, alpha="auto", **common)
    model.fit((problem.X - center) / scale, problem.y, sample_weight=problem.weights)
    return model.learning_curve(), None if target is None else model.samples_needed(target)


def as_record(curve: LearningCurve, needed: SamplesNeeded | None, classes: tuple[str, ...] = ()) -> dict[str, Any]:
    """The forecast as plain numbers."""
    points = zip(curve.rows, curve.error, curve.lower, curve.upper, curve.believed, curve.reasons, strict=True)
    names = ("rows", "error", "lower", "upper", "believed", "reason")
    record: dict[str, Any] = {"measure": curve.measure, "level": curve.level, "alone": curve.alone}
    record["points"] = [dict(zip(names, p, strict=True)) for p in points]
    for point in record["points"]:
        point |= {"rows": int(point["rows"]), "believed": bool(point["believed"])}
        point |= {name: float(point[name]) for name in ("error", "lower", "upper")}
    if classes:
        record["classes"] = list(classes)
    if needed is not None:
        record["needed"] = {"error": needed.target, "rows": needed.rows, "reason": needed.reason}
    return record
