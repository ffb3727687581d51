"""The job of `mercer forecast`: the error expected with more rows than a table has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.cli.problem import Problem, find_column, is_text
from mercer.cli.regression import scaling
from mercer.cli.tables import Table
from mercer.core.errors import InputError
from mercer.estimators import KernelClassifier, KernelRidge
from mercer.theory import LearningCurve, SamplesNeeded


def with_codes(table: Table, target: str) -> tuple[Table, tuple[str, ...]]:
    """The table with a target of words as codes, and the words; no words where the target is a number."""
    name = find_column(table, target, "--target")
    if not is_text(table.columns[name]):
        return table, ()
    column = table.columns[name]
    values = column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
    missing = next((row for row, value in enumerate(values) if value is None or value == ""), None)
    if missing is not None:
        raise InputError(f"Column {name!r} of {table.source}: the class in row {missing + 1} is missing.")
    classes, codes = np.unique(np.array([str(value) for value in values]), return_inverse=True)
    columns = dict(table.columns) | {name: codes.astype(np.float64)}
    return replace(table, columns=columns), tuple(classes.tolist())


def forecast(
    problem: Problem, kernel: str, target: float | None, memory: int | None, seed: int, classes: tuple[str, ...] = ()
) -> tuple[LearningCurve, SamplesNeeded | None]:
    """The learning curve of all rows with alpha by leave-one-out, and the rows that reach an error.

    With classes, the target holds their codes, and the error is the Brier score.
    """
    center, scale, _ = scaling(problem, True)
    common: dict[str, Any] = {"fit_intercept": True, "memory_budget": memory, "random_state": seed}
    model = KernelClassifier(kernel, alpha="auto", **common) if classes else KernelRidge(kernel, alpha="loo", **common)
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
