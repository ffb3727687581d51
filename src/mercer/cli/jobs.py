"""The three jobs behind the commands: read, compute, write, tell."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from mercer.cli import demo
from mercer.cli.forecast import as_record, forecast, with_codes
from mercer.cli.model import MODEL_FILE, TableModel
from mercer.cli.output import PLOT_FILE, REPORT_FILE, as_json, check_folder, filling, report, write_outcome
from mercer.cli.predicting import kept_columns, predict_streamed
from mercer.cli.problem import (
    Problem,
    checked_weights,
    matrix,
    missing_columns,
    numbers,
    problem_from,
    reject_text,
)
from mercer.cli.regression import Settings, regress
from mercer.cli.scores import Score, score
from mercer.cli.show import (
    console,
    describe,
    heading,
    in_steps,
    pairs,
    progress,
    show_files,
    show_next,
    show_outcome,
)
from mercer.cli.sources import (
    StreamedTable,
    format_of_data,
    problem_of_table,
    streamed_table,
    table_of_problem,
    too_large,
    why_in_parts,
)
from mercer.cli.streamed import begin, finish, kept_state, regress_streamed
from mercer.cli.tables import Table, format_of, read_table, write_table
from mercer.core.errors import CheckpointError, InputError, MercerError

DEMO_KERNELS = ("laplace", "matern32", "gaussian")


def run_demo(out: Path, quick: bool) -> None:
    """Fit the bundled data, and leave files with which the other commands can be tried."""
    check_folder(out)
    screen = console()
    heading(screen, demo.TITLE)
    screen.print(demo.WORDS)
    settings = Settings(kernels=DEMO_KERNELS[:1] if quick else DEMO_KERNELS, tune=not quick)
    train, test = (f"{name}{demo.table_ending()}" for name in ("train", "test"))
    with progress(console(error=True)) as step:
        outcome = regress(demo.diabetes(), settings, step)
        step("writing the results")
        with filling(out) as scratch:
            no_plot = write_outcome(scratch, outcome, demo.TITLE, "progression score")
            write_table(scratch / train, demo.columns(outcome.train))
            if outcome.test is not None:
                write_table(scratch / test, demo.columns(outcome.test.rows))
    show_outcome(screen, outcome)
    show_files(screen, out, [*_files(no_plot), (train, "the rows learned from"), (test, "the test rows")])
    predict = _command("predict", out, out / test, "--out", out / "predictions.csv")
    again = _command("fit", out / train, "--target", demo.TARGET, "--kernel", "matern52")
    show_next(
        screen,
        [
            (predict, "predict the test rows with the saved model"),
            (again, "fit another kernel to the same rows; then try a file of yours"),
        ],
    )


def run_fit(
    data: Path,
    target: str,
    features: Sequence[str] | None,
    weights: str | None,
    settings: Settings,
    out: Path,
    *,
    quiet: bool,
    as_data: bool,
) -> None:
    """Fit a model to a file or folder and save it with a report and a plot."""
    check_folder(out)
    screen = console(quiet=quiet or as_data)
    in_parts = why_in_parts(data, settings)
    columns = (target, features, weights)
    if in_parts is None:
        with progress(console(error=True, quiet=quiet)) as step:
            step(f"reading {data}")
            outcome = regress(_problem(data, *columns), settings, step)
            step("writing the results")
            with filling(out) as scratch:
                no_plot = write_outcome(scratch, outcome, f"{data.name}: {outcome.train.target}")
    else:
        told = begin(settings)
        with interruptible(settings), in_steps(quiet or as_data) as step:
            if told is not None:
                step(told)
            outcome = regress_streamed(_table(data, *columns, in_parts), settings, step, not (quiet or as_data))
            with filling(out) as scratch:
                no_plot = write_outcome(scratch, outcome, f"{data.name}: {outcome.train.target}")
        finish(settings)
    if as_data:
        print(as_json(report(outcome) | {"folder": str(out), "plot": PLOT_FILE if no_plot is None else None}))
    show_outcome(screen, outcome)
    show_files(screen, out, _files(no_plot))
    new = f"new{''.join(data.suffixes) or '.parquet'}"
    show_next(screen, [(_command("predict", out, new, "--out", "predictions.csv"), "predict rows of another file")])


def run_forecast(
    data: Path,
    columns: tuple[str, Sequence[str] | None, str | None],
    kernel: str,
    error: float | None,
    memory: int | None,
    seed: int,
    *,
    as_data: bool,
) -> None:
    """Tell what more rows than those of a file would bring."""
    with progress(console(error=True)) as step:
        step(f"reading {data}")
        classes: tuple[str, ...] = ()
        if data.exists() and format_of_data(data) == "npy":
            problem = _problem(data, *columns)
        else:
            table, classes = with_codes(read_table(data), columns[0])
            problem = problem_from(table, *columns)
        step(f"forecasting from {len(problem):,} rows")
        curve, needed = forecast(problem, kernel, error, memory, seed, classes)
    if as_data:
        print(as_json(as_record(curve, needed, classes)))
        return
    out = console()
    about = f", {len(classes)} classes" if classes else ""
    heading(out, f"The error expected of {data.name}: {problem.target}{about}")
    out.print(str(curve), soft_wrap=True)
    if needed is not None:
        rows = "not known" if needed.rows is None else f"{needed.rows:,} rows"
        out.print(f"An error of {needed.target:g}: {rows} ({needed.reason}).", soft_wrap=True)


def run_predict(model_path: Path, data: Path, out: Path, keep: Sequence[str], *, quiet: bool, as_data: bool) -> None:
    """Predict the rows of a file with a saved model and write the predictions."""
    format_of(out)
    if out.exists() and (out.is_dir() or any(p.exists() and out.samefile(p) for p in (data, model_path))):
        raise InputError(f"--out {out}: this is a folder, the data or the model; give a new file.")
    if data.is_dir() or (data.exists() and (format_of(data) == "npy" or too_large(data, None) is not None)):
        with in_steps(quiet or as_data):
            model = TableModel.load(model_path)
            found: Score | str | None
            rows, found = predict_streamed(model, data, out, keep, shown=not (quiet or as_data))
    else:
        with progress(console(error=True, quiet=quiet)) as step:
            step("loading the model")
            model = TableModel.load(model_path)
            step(f"reading {data}")
            table = read_table(data)
            X = features_of(model, table)
            kept = kept_columns(table, keep)
            rows = len(X)
            step(f"predicting {rows:,} rows")
            predicted = model.predict(X) if rows else np.empty(0)
            write_table(out, {name: table.columns[name] for name in kept} | {"prediction": predicted})
        known = model.target in table.columns and model.target != "" and rows > 0
        found = _score(model, table, predicted) if known else None
    if as_data:
        scores = asdict(found) if isinstance(found, Score) else None
        print(as_json({"rows": rows, "target": model.target, "score": scores, "file": str(out)}))
    screen = console(quiet=quiet or as_data)
    heading(screen, f"Predictions of {model.target}" if model.target else "Predictions")
    lines = [("rows", f"{rows:,}"), ("written to", str(out))]
    if found is not None:
        words = found if isinstance(found, str) else f"{describe(found)} ({data.name} holds {model.target} too)"
        lines.append(("score", words))
    pairs(screen, lines)


def _problem(data: Path, target: str, features: Sequence[str] | None, weights: str | None) -> Problem:
    """The rows of a file in memory."""
    if data.exists() and format_of_data(data) == "npy":
        return problem_of_table(streamed_table(data, target, features, weights, ""))
    return problem_from(read_table(data), target, features, weights)


def _table(data: Path, target: str, features: Sequence[str] | None, weights: str | None, reason: str) -> StreamedTable:
    """The rows of a file or folder, to be worked on in parts."""
    if format_of_data(data) in ("parquet", "npy"):
        return streamed_table(data, target, features, weights, reason)
    return table_of_problem(problem_from(read_table(data), target, features, weights), reason)


@contextlib.contextmanager
def interruptible(settings: Settings) -> Iterator[None]:
    """An interrupt or an error says how to go on where a checkpoint was left."""
    try:
        yield
    except KeyboardInterrupt:
        kept = kept_state(settings)
        raise KeyboardInterrupt(f"stopped. {kept}" if kept else "") from None
    except MercerError as error:
        kept = kept_state(settings)
        if kept is None or isinstance(error, CheckpointError):
            raise
        raise InputError(f"{error} {kept}") from error


def features_of(model: TableModel, table: Table) -> np.ndarray:
    """The columns the model was fitted on, by name, in its order."""
    missing_columns(table, model.features)
    reject_text(table, model.features)
    return matrix(table, model.features)


def _score(model: TableModel, table: Table, predicted: np.ndarray) -> Score | str:
    """How good the predictions are where the file holds the truth, or why that cannot be said."""
    try:
        reject_text(table, [model.target])
        actual = numbers(table, model.target)
        column = model.weights if model.weights in table.columns else None
        weights = None if column is None else checked_weights(table, column)
    except InputError as error:
        return f"not known: {error}"
    return score(actual, predicted, weights)


def _files(no_plot: str | None) -> list[tuple[str, str]]:
    plot = (PLOT_FILE, "predictions against the truth, and how alpha was chosen")
    return [
        (MODEL_FILE, "the model, for mercer predict"),
        (REPORT_FILE, "the numbers above, for programs"),
        plot if no_plot is None else ("no plot", no_plot),
    ]


def _command(*words: object) -> str:
    return shlex.join(["mercer", *map(str, words)])
