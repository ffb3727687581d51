"""The three jobs behind the commands: read, compute, write, tell."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np

from mercer.cli import demo
from mercer.cli.fitting import Fitted, fit_task
from mercer.cli.forecast import as_record, forecast, numbers_of
from mercer.cli.frame_model import FrameModel
from mercer.cli.in_parts import as_tables, fit_in_parts
from mercer.cli.model import MODEL_FILE, TableModel
from mercer.cli.output import PLOT_FILE, REPORT_FILE, account_of, as_json, check_folder, filling, write_outcome
from mercer.cli.predicting import OURS, Predicted, Wanted, kept_columns, predict_frame, predict_streamed
from mercer.cli.problem import (
    checked_weights,
    matrix,
    missing_columns,
    numbers,
    problem_from,
    reject_text,
)
from mercer.cli.reading import STDIN, Format, read_file
from mercer.cli.regression import Outcome, Settings
from mercer.cli.scores import Score, score
from mercer.cli.show import (
    console,
    describe,
    heading,
    in_steps,
    pairs,
    progress,
    show_files,
    show_fitted,
    show_next,
    show_outcome,
)
from mercer.cli.sources import (
    StreamedTable,
    array_table,
    format_of_data,
    problem_of_table,
    streamed_table,
    table_of_problem,
    too_large,
    why_in_parts,
)
from mercer.cli.streamed import begin, finish, kept_state, regress_streamed
from mercer.cli.tables import Table, format_of, read_table, write_table
from mercer.cli.task import CLASSIFICATION, Columns, Task, kind_of, task_of
from mercer.core.errors import CheckpointError, InputError, MercerError
from mercer.data.table import Table as DataTable
from mercer.estimators.tabular.treatments import as_texts

DEMO_KERNELS = ("laplace", "matern32", "gaussian")


def run_demo(out: Path, quick: bool, *, quiet: bool = False, as_data: bool = False) -> None:
    """Fit the bundled data, and leave files with which the other commands can be tried."""
    check_folder(out)
    screen = console(quiet=quiet or as_data)
    heading(screen, demo.TITLE)
    screen.print(demo.WORDS)
    settings = Settings(kernels=DEMO_KERNELS[:1] if quick else DEMO_KERNELS, tune=not quick)
    train, test = (f"{name}{demo.table_ending()}" for name in ("train", "test"))
    with progress(console(error=True, quiet=quiet)) as step:
        fitted = fit_task(demo.diabetes(), settings, step)
        step("writing the results")
        with filling(out) as scratch:
            no_plot = write_outcome(scratch, fitted, demo.TITLE, "progression score")
            write_table(scratch / train, demo.columns(fitted.train))
            if fitted.test is not None:
                write_table(scratch / test, demo.columns(fitted.test.rows))
    if as_data:
        print(as_json(account_of(fitted) | {"folder": str(out), "plot": PLOT_FILE if no_plot is None else None}))
    show_fitted(screen, fitted)
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
    columns: Columns,
    form: Format,
    settings: Settings,
    out: Path,
    *,
    force: bool,
    quiet: bool,
    as_data: bool,
) -> None:
    """Fit a model to a file or folder and save it with a report and a plot."""
    check_folder(out, force=force)
    screen = console(quiet=quiet or as_data)
    in_parts = why_in_parts(data, settings)
    title = f"{data.name}: "
    outcome: Outcome | Fitted
    if in_parts is None:
        with progress(console(error=True, quiet=quiet)) as step:
            step(f"reading {data}")
            outcome = fit_task(_task(data, columns, form), settings, step)
            step("writing the results")
            with filling(out) as scratch:
                no_plot = write_outcome(scratch, outcome, title + columns.target)
    else:
        told = begin(settings)
        tables = as_tables(data, columns, settings) if format_of_data(data) == "parquet" else None
        table = _table(data, columns, in_parts) if tables is None else None
        with interruptible(settings), in_steps(quiet or as_data) as step:
            if told is not None:
                step(told)
            if tables is not None:
                outcome = fit_in_parts(tables, data, columns, settings, in_parts, step)
            else:
                assert table is not None
                outcome = regress_streamed(table, settings, step, not (quiet or as_data))
            with filling(out) as scratch:
                no_plot = write_outcome(scratch, outcome, title + outcome.train.target)
        finish(settings)
    if as_data:
        print(as_json(account_of(outcome) | {"folder": str(out), "plot": PLOT_FILE if no_plot is None else None}))
    if isinstance(outcome, Fitted):
        show_fitted(screen, outcome)
    else:
        show_outcome(screen, outcome)
    show_files(screen, out, _files(no_plot))
    new = f"new{''.join(data.suffixes) or '.parquet'}"
    show_next(screen, [(_command("predict", out, new, "--out", "predictions.csv"), "predict rows of another file")])


def run_forecast(
    data: Path,
    columns: Columns,
    form: Format,
    kernel: str,
    error: float | None,
    memory: int | None,
    seed: int,
    *,
    quiet: bool,
    as_data: bool,
) -> None:
    """Tell what more rows than those of a file would bring."""
    with progress(console(error=True, quiet=quiet)) as step:
        step(f"reading {data}")
        task = _task(data, columns, form)
        step(f"forecasting from {len(task):,} rows")
        problem, classes = numbers_of(task)
        curve, needed = forecast(problem, kernel, error, memory, seed, classes)
    if as_data:
        print(as_json(as_record(curve, needed, classes)))
        return
    out = console(quiet=quiet)
    about = f", {len(classes)} classes" if classes else ""
    heading(out, f"The error expected of {data.name}: {problem.target}{about}")
    out.print(str(curve), soft_wrap=True)
    if needed is not None:
        rows = "not known" if needed.rows is None else f"{needed.rows:,} rows"
        out.print(f"An error of {needed.target:g}: {rows} ({needed.reason}).", soft_wrap=True)


def run_predict(
    model_path: Path, data: Path, out: Path, wanted: Wanted, form: Format, *, quiet: bool, as_data: bool
) -> None:
    """Predict the rows of a file with a saved model and write the predictions."""
    if out != STDIN:
        format_of(out)
    if out.exists() and (out.is_dir() or any(p.exists() and out.samefile(p) for p in (data, model_path))):
        raise InputError(f"--out {out}: this is a folder, the data or the model; give a new file.")
    model = TableModel.load(model_path)
    if isinstance(model, FrameModel):
        with progress(console(error=True, quiet=quiet)) as step:
            step(f"predicting {data}")
            predicted = predict_frame(model, data, out, wanted, form)
    else:
        predicted = _predict_numbers(model, data, out, wanted, quiet=quiet or as_data)
    found = predicted.score
    if as_data:
        scores = None if found is None or isinstance(found, str) else asdict(found)
        told = {"rows": predicted.rows, "trained_on": predicted.known, "target": model.target, "score": scores}
        told["scored_rows"] = predicted.scored
        print(as_json(told | {"file": str(out)}), file=sys.stderr if out == STDIN else sys.stdout)
    screen = console(quiet=quiet or as_data, error=out == STDIN)
    heading(screen, f"Predictions of {model.target}" if model.target else "Predictions")
    lines = [("rows", f"{predicted.rows:,}"), ("written to", "standard output" if out == STDIN else str(out))]
    if found is not None:
        where = f"{predicted.scored:,} rows of {data.name} hold {model.target} too"
        words = found if isinstance(found, str) else f"{describe(found)} ({where})"
        lines.append(("score", words))
    if predicted.known:
        lines.append(
            ("note", f"{predicted.known:,} of these rows equal rows the model was trained on: new ones fit less well")
        )
    pairs(screen, lines)


def _predict_numbers(model: TableModel, data: Path, out: Path, wanted: Wanted, *, quiet: bool) -> Predicted:
    """Predictions of a model that was fitted to rows in parts, or saved from Python."""
    if wanted.level is not None or wanted.proba:
        raise InputError("--interval and --proba need a model that was fitted to all rows at once.")
    if out == STDIN or data == STDIN:
        raise InputError("This model was fitted to rows that are read in parts: give files, not -.")
    if data.is_dir() or (data.exists() and (format_of(data) == "npy" or too_large(data, None) is not None)):
        with in_steps(quiet):
            rows, found = predict_streamed(model, data, out, wanted.keep, shown=not quiet)
        return Predicted(rows, 0, found, rows)
    table = read_table(data)
    X = features_of(model, table)
    kept = kept_columns(table, wanted.keep)
    predicted = model.predict(X) if len(X) else np.empty(0)
    write_table(out, {name: table.columns[name] for name in kept} | {OURS: predicted})
    known = model.target in table.columns and model.target != "" and len(X) > 0
    return Predicted(len(X), 0, _score(model, table, predicted) if known else None, len(X))


def _task(data: Path, columns: Columns, form: Format) -> Task:
    """The rows of a file in memory."""
    if data == STDIN or not data.exists() or format_of_data(data) != "npy":
        return task_of(read_file(data, form), columns)
    features = columns.features
    if columns.drop:
        names = array_table(data).names
        features = [name for name in features or names if name not in {*columns.drop, columns.target}]
    problem = problem_of_table(streamed_table(data, columns.target, features, columns.weights, ""))
    table = DataTable.of(dict(zip(problem.features, problem.X.T, strict=True)))
    texts = np.array(as_texts(problem.y), dtype=object)
    kind, why = kind_of(problem.y, texts, problem.target, columns.task, problem.source)
    y = texts.astype(str) if kind == CLASSIFICATION else problem.y
    return Task(
        table, y, problem.weights, problem.target, problem.source, kind, why, problem.weight_column, problem.notes
    )


def _table(data: Path, columns: Columns, reason: str) -> StreamedTable:
    """The rows of a file or folder, to be worked on in parts."""
    if columns.task == CLASSIFICATION:
        raise InputError(
            f"Classes are read in parts from Parquet files alone, but here {reason}: save them as Parquet."
        )
    asked = (columns.target, columns.features, columns.weights)
    if format_of_data(data) in ("parquet", "npy"):
        return streamed_table(data, *asked, reason, columns.drop)
    return table_of_problem(problem_from(read_table(data), *asked), reason)


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
