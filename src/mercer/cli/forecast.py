"""The job of `mercer forecast`: the error expected with more rows than a table has."""

from __future__ import annotations

from typing import Any

from mercer.cli.problem import Problem
from mercer.cli.regression import scaling
from mercer.estimators import KernelRidge
from mercer.theory import LearningCurve, SamplesNeeded


def forecast(
    problem: Problem, kernel: str, target: float | None, memory: int | None, seed: int
) -> tuple[LearningCurve, SamplesNeeded | None]:
    """The learning curve of all rows with alpha by leave-one-out, and the rows that reach an error."""
    center, scale, _ = scaling(problem, True)
    model = KernelRidge(kernel, alpha="loo", memory_budget=memory, random_state=seed)
    model.fit((problem.X - center) / scale, problem.y - problem.y.mean(), sample_weight=problem.weights)
    return model.learning_curve(), None if target is None else model.samples_needed(target)


def as_record(curve: LearningCurve, needed: SamplesNeeded | None) -> dict[str, Any]:
    """The forecast as plain numbers."""
    points = zip(curve.rows, curve.rmse, curve.lower, curve.upper, curve.believed, curve.reasons, strict=True)
    names = ("rows", "rmse", "lower", "upper", "believed", "reason")
    record: dict[str, Any] = {"level": curve.level, "points": [dict(zip(names, p, strict=True)) for p in points]}
    for point in record["points"]:
        point |= {"rows": int(point["rows"]), "believed": bool(point["believed"])}
        point |= {name: float(point[name]) for name in ("rmse", "lower", "upper")}
    if needed is not None:
        record["needed"] = {"error": needed.target, "rows": needed.rows, "reason": needed.reason}
    return record
