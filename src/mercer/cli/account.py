"""The account of a fit to rows in memory: plain data for programs, lines and grids for people, a picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from mercer import __version__
from mercer.cli.dials import LEVEL, MOST_CLASSES
from mercer.cli.fitting import ClassScore, Fitted
from mercer.cli.scores import Score
from mercer.cli.task import CLASSIFICATION
from mercer.kernels.shown import kernel_text
from mercer.plots import regression_summary, reliability
from mercer.plots.canvas import new_figure


class NothingToDraw(Exception):
    """There are no predictions that a plot could show."""


def report(fitted: Fitted) -> dict[str, Any]:
    """Everything found, as plain data."""
    inner, train, test = fitted.estimator, fitted.train, fitted.test
    path = getattr(inner, "alpha_path_", None)
    alpha = getattr(inner, "alpha_", None)
    data = {
        "mercer": __version__,
        "data": {
            "source": train.source,
            "target": train.target,
            "features": list(train.features),
            "columns": {t.name: t.words for t in fitted.model.model.encoder_.treatments},
            "weights": train.weight_column,
            "rows": sum(fitted.n_rows),
            "train_rows": fitted.n_rows[0],
            "test_rows": fitted.n_rows[1],
            "read": fitted.reading,
            "seed": fitted.settings.seed,
        },
        "task": train.kind,
        "task_because": train.why,
        "model": fitted.name,
        "kernel": repr(inner.kernel_),
        "tuned": fitted.settings.tune,
        "kernels_tried": fitted.tried,
        "alpha": None if alpha is None else float(alpha),
        "alpha_chosen_by": None if path is None else path.criterion,
        "solver": asdict(inner.solver_report_) if hasattr(inner, "solver_report_") else None,
        "leave_one_out": None if fitted.loo is None else asdict(fitted.loo),
        "test": None if test is None else {name: asdict(value) for name, value in test.scores.items()},
        "cross_validation": [asdict(found) for found in fitted.folds],
        "verdict": None if test is None else test.verdict,
        "notes": list(fitted.notes),
        "seconds": fitted.seconds,
    }
    if test is not None and test.inside is not None:
        data["intervals"] = {"level": LEVEL, "inside": test.inside, "width": test.width}
    if test is not None and test.confusion is not None:
        classes, counts = test.confusion
        data["confusion"] = {"classes": list(classes), "true_by_predicted": np.asarray(counts).tolist()}
    return data


def lines(fitted: Fitted, number: Any, describe: Any, duration: Any) -> Iterator[tuple[str, str]]:
    """What was done, line by line."""
    inner, train, test = fitted.estimator, fitted.train, fitted.test
    n, n_test = fitted.n_rows
    held = "" if test is None else f", {n_test:,} held out for testing"
    yield "rows", f"{n:,} to learn from{held}"
    if fitted.counts is not None:
        yield "read", fitted.reading
    encoder = fitted.model.model.encoder_
    kinds = [t.kind for t in encoder.treatments if t.columns]
    counts = {"number": "numbers", "category": "categories", "date": "dates"}
    words = ", ".join(
        f"{kinds.count(k)} {k if kinds.count(k) == 1 else many}" for k, many in counts.items() if k in kinds
    )
    yield "features", f"{len(kinds)}: {words}" + (f"; {len(encoder.left_out)} left out" if encoder.left_out else "")
    yield "target", train.target + (f", rows weighted by {train.weight_column}" if train.weight_column else "")
    yield "task", f"{train.kind} ({train.why}; --task overrides)"
    if train.kind == CLASSIFICATION:
        shares = {c: float(np.mean(train.y == c)) for c in fitted.model.model.classes_[:MOST_CLASSES]}
        yield "classes", ", ".join(f"{c} {share:.0%}" for c, share in shares.items())
    yield "model", fitted.name
    if len(fitted.tried) > 1:
        yield "kernels tried", ", ".join(f"{name} {number(error)}" for name, error in fitted.tried.items())
    yield "kernel", kernel_text(inner.kernel_, inner.kernel_)
    tuning = getattr(inner, "tuning_", None)
    if tuning is not None:
        yield "tuning", tuning.message
    path = getattr(inner, "alpha_path_", None)
    if hasattr(inner, "alpha_"):
        chosen = {"loo": "chosen by leave-one-out", "gcv": "chosen by GCV", "folds": "chosen by five folds"}
        yield "alpha", f"{float(inner.alpha_):.3g} ({'given' if path is None else chosen[path.criterion]})"
    solved = getattr(inner, "solver_report_", None)
    if solved is not None:
        state = "" if solved.converged else " NOT CONVERGED"
        jitter = f", jitter {solved.jitter:.0e}" if solved.jitter else ""
        yield "solver", f"{solved.solver}, residual {solved.residual:.0e}{jitter}, {duration(solved.seconds)}{state}"
    if fitted.loo is not None:
        yield "leave-one-out", f"{describe(fitted.loo)} (on the training rows)"
    if fitted.folds:
        yield "folds", spread(fitted.folds, number)
    yield "time", duration(fitted.seconds)


def spread(folds: tuple[Any, ...], number: Any) -> str:
    """The mean of the scores of folds, and how much they differ."""
    names = {"r2": "R2", "rmse": "RMSE", "accuracy": "accuracy", "log_loss": "log loss"}
    words = []
    for name, values in ((n, np.array([getattr(f, n) for f in folds])) for n in asdict(folds[0])):
        words.append(f"{names[name]} {number(values.mean())} +- {number(values.std(), 2)}")
    return f"{', '.join(words)} (mean and deviation of {len(folds)} folds of all rows)"


def cells(found: Score | ClassScore) -> tuple[tuple[str, float], tuple[str, float]]:
    """The two numbers of a score with their names."""
    if isinstance(found, ClassScore):
        return ("accuracy", found.accuracy), ("log loss", found.log_loss)
    return ("R2", found.r2), ("RMSE", found.rmse)


def figure(fitted: Fitted, title: str, target: str) -> Any:
    """Predictions against the truth, or for classes how reliable the probabilities are; and how alpha was chosen."""
    test = fitted.test
    if fitted.train.kind == CLASSIFICATION:
        return _figure_of_classes(fitted, title)
    path = getattr(fitted.estimator, "alpha_path_", None)
    chosen: dict[str, Any] = {"figure": new_figure(10.0, 5.2), "target": target, "title": title}
    if path is not None:
        words = {"loo": "leave-one-out", "gcv": "generalised cross-validation"}
        chosen |= {
            "alphas": path.alphas.numpy(),
            "errors": path.errors[:, 0].numpy(),
            "chosen": float(fitted.estimator.alpha_),
            "criterion": words[path.criterion],
            "error_name": "mean squared error" if path.criterion == "loo" else "score",
        }
    if test is None:
        if fitted.loo_predictions is None:
            raise NothingToDraw("no test rows and no leave-one-out predictions to draw")
        y = fitted.train.y
        return regression_summary(
            y, fitted.loo_predictions, baseline=float(y.mean()), label="leave-one-out", baseline_label="mean",
            rows="training rows", **chosen,
        )  # fmt: skip
    return regression_summary(
        test.rows.y, test.predictions[fitted.name], baseline=test.predictions["ridge regression"],
        label=fitted.name, baseline_label="ridge regression", **chosen,
    )  # fmt: skip


def _figure_of_classes(fitted: Fitted, title: str) -> Any:
    """How reliable the probabilities are on test rows."""
    test = fitted.test
    if test is None:
        raise NothingToDraw("no test rows to draw")
    drawn = new_figure(6.4, 5.2)
    classes = fitted.model.model.classes_
    axes = reliability(test.rows.y, test.predictions[fitted.name], classes, ax=drawn.subplots())
    axes.set_title(title)
    return drawn
