"""What a person reads in the terminal: aligned text that also survives a pipe and a narrow window."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid
from rich.text import Text

from mercer.cli import account
from mercer.cli.dials import LEVEL, MOST_CLASSES
from mercer.cli.fitting import ClassScore, Fitted
from mercer.cli.regression import Outcome
from mercer.cli.scores import Score
from mercer.kernels import as_kernel
from mercer.kernels.shown import kernel_text

STRONG, QUIET, BAD = "bold", "dim", "bold red"

MEASURES = "R2 is the share of the variance explained, 1 at best; RMSE is a typical error, in units of the target."

CLASS_MEASURES = "Accuracy is the share of rows that is right; log loss punishes sure mistakes, 0 at best."


def console(*, error: bool = False, quiet: bool = False) -> Console:
    """A console that prints text as it is: column names may hold brackets."""
    return Console(stderr=error, quiet=quiet, highlight=False, markup=False, emoji=False)


@contextmanager
def progress(out: Console) -> Iterator[Any]:
    """A function to call with each step; the step and its time show while it lasts, in a terminal only."""
    columns = (SpinnerColumn(style="cyan"), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal or out.quiet) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda text: bar.reset(task, description=text, total=None)


@contextmanager
def in_steps(quiet: bool) -> Iterator[Any]:
    """A function to call with each step of a long job, which prints it; what libraries print goes the same way."""
    out = console(error=True, quiet=quiet)
    with redirect_stdout(sys.stderr):
        yield lambda text: out.print(text, style=QUIET, soft_wrap=True)


def failure(message: str) -> None:
    """An error message, on stderr."""
    out = console(error=True)
    out.print("Error:", style=BAD, end=" ")
    out.print(message, soft_wrap=not out.is_terminal)


def show_outcome(out: Console, outcome: Outcome) -> None:
    """The account of a fit."""
    heading(out, "The fit")
    pairs(out, _fit_lines(outcome))
    if outcome.test is not None:
        heading(out, f"On {outcome.test.count:,} test rows")
        out.print(_grid({name: account.cells(found) for name, found in outcome.test.scores.items()}))
        indented(out, MEASURES, QUIET)
        out.print()
        indented(out, outcome.test.verdict)
    show_notes(out, outcome.notes)


def show_fitted(out: Console, fitted: Fitted) -> None:
    """The account of a fit to rows in memory."""
    heading(out, "The fit")
    pairs(out, account.lines(fitted, number, describe, duration))
    test = fitted.test
    if test is not None:
        heading(out, f"On {len(test.rows):,} test rows")
        out.print(_grid({name: account.cells(found) for name, found in test.scores.items()}))
        if test.confusion is None:
            indented(out, MEASURES, QUIET)
        else:
            indented(out, CLASS_MEASURES, QUIET)
            _show_confusion(out, *test.confusion)
        if test.inside is not None and test.width is not None:
            words = f"intervals of {LEVEL:.0%} hold {test.inside:.0%} of the test rows, {number(test.width)} wide"
            indented(out, f"{words} on average")
        out.print()
        indented(out, test.verdict)
    show_notes(out, fitted.notes)


def show_notes(out: Console, notes: Iterable[str]) -> None:
    """What is worth a look."""
    for i, note in enumerate(notes):
        if i == 0:
            heading(out, "Worth a look")
        indented(out, f"- {note}", "yellow")


def _show_confusion(out: Console, classes: tuple[str, ...], counts: Any) -> None:
    """True classes in rows, predicted ones in columns."""
    shown = classes[:MOST_CLASSES]
    grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style=QUIET)
    grid.add_column("true \\ predicted")
    for name in shown:
        grid.add_column(name, justify="right", overflow="fold")
    for name, row in zip(shown, counts, strict=False):
        grid.add_row(name, *(f"{count:,.0f}" if count % 1 == 0 else f"{count:,.1f}" for count in row[: len(shown)]))
    out.print()
    out.print(Padding(grid, (0, 0, 0, 2), expand=False))
    if len(shown) < len(classes):
        indented(out, f"and {len(classes) - len(shown)} more classes, in report.json", QUIET)
    out.print()


def show_files(out: Console, folder: Path, files: Iterable[tuple[str, str]]) -> None:
    """What was written."""
    heading(out, f"Written to {folder}/")
    pairs(out, files)


def show_next(out: Console, commands: Iterable[tuple[str, str]]) -> None:
    """Commands to try, each on a line of its own that can be copied whole."""
    heading(out, "What to try next")
    for command, words in commands:
        out.print(f"  # {words}", style=QUIET, soft_wrap=True)
        out.print(f"  {command}", soft_wrap=True)


def heading(out: Console, text: str) -> None:
    """A line that starts a part."""
    out.print()
    out.print(text, style=STRONG)


def indented(out: Console, text: str, style: str = "") -> None:
    """A paragraph set in from the left."""
    out.print(Padding(Text(text, style), (0, 0, 0, 2), expand=False))


def pairs(out: Console, lines: Iterable[tuple[str, str]]) -> None:
    """Labels and values in two columns."""
    grid = Grid.grid(padding=(0, 2, 0, 0), pad_edge=False)
    grid.add_column(style="cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in lines:
        grid.add_row(label, value)
    out.print(Padding(grid, (0, 0, 0, 2), expand=False))


def number(value: float, digits: int = 4) -> str:
    """A number with the digits that matter.

    >>> number(53.2812), number(0.00012345), number(1234567.0)
    ('53.28', '0.0001234', '1,234,567')
    """
    if 1000 <= abs(value) < 1e12:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def describe(score: Score | ClassScore) -> str:
    """A score on one line.

    >>> describe(Score(0.5, 53.2812))
    'R2 0.500, RMSE 53.28'
    """
    if isinstance(score, ClassScore):
        loss = "" if score.log_loss != score.log_loss else f", log loss {score.log_loss:.3f}"
        return f"accuracy {score.accuracy:.3f}{loss}"
    return f"R2 {score.r2:.3f}, RMSE {number(score.rmse)}"


def duration(seconds: float) -> str:
    """A time for people.

    >>> duration(0.0421), duration(12.3), duration(185.0)
    ('0.04 s', '12.3 s', '3 min 5 s')
    """
    if seconds < 10:
        return f"{seconds:.2f} s"
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


def _fit_lines(outcome: Outcome) -> Iterator[tuple[str, str]]:
    model, train, settings = outcome.regressor, outcome.train, outcome.settings
    n_test = 0 if outcome.test is None else outcome.test.count
    held = f", {n_test:,} held out for testing" if n_test else ""
    yield "rows", f"{len(train):,} to learn from{held}"
    if outcome.reading != "all at once":
        yield "read", outcome.reading
    yield "features", f"{len(train.features)}, {'standardised' if settings.standardize else 'as they are'}"
    yield "target", train.target + (f", rows weighted by {train.weight_column}" if train.weight_column else "")
    if len(outcome.tried) > 1:
        errors = ", ".join(f"{name} {number(error)}" for name, error in outcome.tried.items())
        yield "kernels tried", f"{errors} (leave-one-out RMSE)"
    yield "kernel", kernel_text(model.kernel_, as_kernel(model.kernel))
    if model.tuning_ is not None:
        yield "tuning", model.tuning_.message
    path = model.alpha_path_
    words = {"loo": "chosen by leave-one-out", "gcv": "chosen by GCV"}
    yield "alpha", f"{float(model.alpha_):.3g} ({'given' if path is None else words[path.criterion]})"
    solved = model.solver_report_
    jitter = f", jitter {solved.jitter:.0e}" if solved.jitter else ""
    state = "" if solved.converged else " NOT CONVERGED"
    yield "solver", f"{solved.solver}, residual {solved.residual:.0e}{jitter}, {duration(solved.seconds)}{state}"
    if outcome.loo is not None:
        yield "leave-one-out", f"{describe(outcome.loo)} (on the training rows)"
    yield "time", duration(outcome.seconds)


def _grid(scores: dict[str, tuple[tuple[str, float], tuple[str, float]]]) -> Any:
    """A share and an error of each model."""
    places = _decimals(max(error for _, (_, error) in scores.values()))
    grid = Grid(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style=QUIET)
    grid.add_column("")
    for name, _ in next(iter(scores.values())):
        grid.add_column(name, justify="right")
    for model, ((_, share), (_, error)) in scores.items():
        first = f"{round(share, 3) + 0.0:.3f}" if share == share else "-"
        grid.add_row(model, first, f"{error:,.{places}f}" if places <= 9 else f"{error:.3e}")
    return Padding(grid, (0, 0, 0, 2), expand=False)


def _decimals(largest: float) -> int:
    """Decimals that show four digits of the largest of some numbers."""
    return max(0, 3 - math.floor(math.log10(largest))) if largest > 0 else 2
