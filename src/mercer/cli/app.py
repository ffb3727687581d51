"""The commands: their options, their help, and what happens when something goes wrong."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from mercer import __version__
from mercer.core.errors import MercerError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with mercer demo. Each command explains itself: mercer fit --help",
)

FIT_EXAMPLES = """\b
Examples:
  mercer fit houses.csv --target price
  mercer fit houses.csv --target price --features area,rooms --out houses
  mercer fit houses.parquet --target price --kernel gaussian --kernel laplace
  mercer fit houses.csv --target price --drop year --cv 3
  mercer fit arrays.npz --alpha 0.1 --no-tune --json
  mercer fit trips/ --target fare --memory 2GiB --checkpoint trips.checkpoint
  mercer fit big.npy --target -1 --landmarks 1000"""

PREDICT_EXAMPLES = """\b
Examples:
  mercer predict mercer-model new.csv --out prices.csv
  mercer predict houses new.parquet --out prices.parquet --keep id --interval 0.9
  mercer predict mercer-model trips/ --out fares.parquet"""

FORECAST_EXAMPLES = """\b
Examples:
  mercer forecast houses.csv --target price
  mercer forecast houses.csv --target price --error 20000"""

Out = Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results.")]
Features = Annotated[
    str | None,
    typer.Option(metavar="A,B,C", help="Columns to predict from; all others by default.", show_default=False),
]
Drop = Annotated[str | None, typer.Option(metavar="A,B,C", help="Columns to leave out.", show_default=False)]
Memory = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="Memory to use, such as 2GiB; half of what is free.", show_default=False),
]
Encoding = Annotated[
    str | None, typer.Option(metavar="NAME", help="Of a text file; else found out.", show_default=False)
]
Delimiter = Annotated[
    str | None, typer.Option(metavar="CHAR", help="Of a text file; else found out.", show_default=False)
]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error came from.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON and nothing else.")]


@contextlib.contextmanager
def guarded(debug: bool) -> Iterator[None]:
    """Errors become one clear message and exit code 1, an interrupt 130, wrong usage (2) passes through.

    A reader of the output that has gone, such as head, is 141 without words.
    """
    from mercer.cli.show import failure

    try:
        yield
    except (typer.Exit, typer.BadParameter):
        raise
    except KeyboardInterrupt as stop:
        failure(str(stop) or "stopped, nothing was written.")
        raise typer.Exit(130) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left in the buffer goes nowhere
        raise typer.Exit(141) from None
    except Exception as error:
        if debug:
            traceback.print_exc()
        expected = isinstance(error, MercerError)
        failure(str(error) if expected else f"{type(error).__name__}: {error} (--debug shows where)")
        raise typer.Exit(1) from None


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"mercer {__version__}")
        raise typer.Exit


@app.callback()
def mercer(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Kernel methods on tables: fit a model to a file, see how good it is, predict with it."""


@app.command("demo", short_help="Fit a first model to bundled data.")
def demo_command(
    out: Out = Path("mercer-demo"),
    quick: Annotated[bool, typer.Option("--quick", help="One kernel, not tuned: only alpha is chosen.")] = False,
    quiet: Quiet = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Fit, explain and save a first model, on data that come with the installation.

    The kernel and alpha are chosen by leave-one-out on the training rows. The model is then compared with ridge
    regression and with the mean, on rows that none of them has seen.
    """
    with guarded(debug):
        from mercer.cli.jobs import run_demo

        run_demo(out, quick, quiet=quiet, as_data=json)


@app.command("fit", short_help="Fit a model to a file and save it.", epilog=FIT_EXAMPLES)
def fit_command(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="A .csv, .tsv, .txt, .csv.gz, .parquet, .npy or .npz file, a folder of Parquet files, or - for "
            "standard input.",
        ),
    ],
    target: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column to predict, by name or place (-1 is the last); y for an npz file; another .npy file for .npy.",
            show_default=False,
        ),
    ] = None,
    features: Features = None,
    drop: Drop = None,
    weights: Annotated[
        str | None, typer.Option(metavar="COL", help="Column of row weights; 2 counts as two rows.", show_default=False)
    ] = None,
    task: Annotated[
        str,
        typer.Option(
            metavar="auto|regression|classification", help="Predict numbers or classes; auto looks at the target."
        ),
    ] = "auto",
    model: Annotated[
        str, typer.Option(metavar="kernel|gp", help="Kernel ridge regression or classification, or a Gaussian process.")
    ] = "kernel",
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="laplace, gaussian, matern32, matern52, linear, ... If given more than once, the one with the "
            "smallest leave-one-out error is taken.",
            show_default="laplace",
        ),
    ] = None,
    alpha: Annotated[str, typer.Option(metavar="auto|loo|gcv|NUMBER", help="The ridge, or how to choose it.")] = "auto",
    tune: Annotated[
        bool, typer.Option("--tune/--no-tune", help="Fit the kernel's parameters by leave-one-out too.")
    ] = True,
    standardize: Annotated[
        bool,
        typer.Option("--standardize/--no-standardize", help="Give features deviation 1, where rows are read in parts."),
    ] = True,
    test_fraction: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of rows held out for testing; 0 learns from all.")
    ] = 0.2,
    cv: Annotated[
        int, typer.Option("--cv", min=0, metavar="N", help="Score the model on each of N folds, too; at least 2.")
    ] = 0,
    out: Out = Path("mercer-model"),
    force: Annotated[bool, typer.Option("--force", help="Overwrite the model in that folder.")] = False,
    encoding: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of a text file, such as cp1252; else found out.", show_default=False),
    ] = None,
    delimiter: Annotated[
        str | None,
        typer.Option(
            metavar="CHAR",
            help="Of a text file: a character, or tab, semicolon, space; else found out.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Decides which rows are held out.")] = 0,
    memory: Memory = None,
    solver: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="auto, cholesky or eigh (all rows at once), nystrom or falkon (landmarks) or random_features; "
            "the last three read Parquet and .npy files in parts.",
        ),
    ] = "auto",
    landmarks: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Landmarks, or random features; by default 4 sqrt(rows).", show_default=False
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep the state of the fit in this file while it runs.", show_default=False),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the checkpoint of a run that was interrupted.")
    ] = False,
    quiet: Quiet = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Fit a model to the rows of a file, save it, and say how good it is.

    A target of text or of two values is for classes, one of numbers for regression; --task overrides. Features may be
    numbers, text, categories and dates, with gaps; ids and constants are left out. Rows without a target are left out
    and counted. Alpha and, with --tune, the kernel are chosen by rows left out. The saved model knows its columns.

    Encoding, delimiter, decimal mark and header of a text file are found out; lines that start with # are comments.
    Columns of a file without a header are X0, X1 and so on. So are those of a .npy file and of X in an npz file, unless
    feature_names names them; y is the target there.

    A folder of Parquet files, and a Parquet or .npy file too large for the memory, are read in parts and fitted on
    landmarks. With --checkpoint such a fit can be interrupted at any time; the same command with --resume goes on.
    """
    with guarded(debug):
        from mercer.cli.jobs import run_fit
        from mercer.cli.options import checked_settings, column_list, named_target, one_of
        from mercer.cli.reading import Format
        from mercer.cli.task import TASKS, Columns

        settings = checked_settings(
            kernel, alpha, tune, standardize, test_fraction, seed, memory, solver, landmarks, checkpoint, resume,
            one_of(model, ("kernel", "gp"), "--model"), cv,
        )  # fmt: skip
        chosen = None if features is None else column_list(features, "--features")
        dropped = [] if drop is None else column_list(drop, "--drop")
        columns = Columns(named_target(target, data), chosen, weights, dropped, one_of(task, TASKS, "--task"))
        run_fit(data, columns, Format(encoding, delimiter), settings, out, force=force, quiet=quiet, as_data=json)


@app.command("predict", short_help="Predict with a saved model.", epilog=PREDICT_EXAMPLES)
def predict_command(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="The folder that mercer fit wrote, or its model file.")
    ],
    data: Annotated[
        Path,
        typer.Argument(metavar="DATA", help="A file or folder with the columns of the model; - for standard input."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where to write: .csv, .tsv, .parquet, .npy or .npz; - for standard output, which is the default for "
            "standard input.",
            show_default=False,
        ),
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE", help="Add the ends of intervals that hold this share of new values.", show_default=False
        ),
    ] = None,
    proba: Annotated[bool, typer.Option("--proba", help="Add the probability of each class.")] = False,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    keep: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="Columns to copy beside the predictions.", show_default=False),
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Predict the rows of a file with a saved model.

    Columns are found by name; their order does not matter and others are ignored. The file written has a column
    "prediction", with one row for each row of DATA, after the columns that name rows (those of ids that the model left
    out). Where DATA holds the target too, scores are printed, and how many of its rows the model was trained on.
    """
    with guarded(debug):
        from mercer.cli.jobs import run_predict
        from mercer.cli.options import checked_level, column_list, where_to
        from mercer.cli.predicting import Wanted
        from mercer.cli.reading import Format

        kept = [] if keep is None else column_list(keep, "--keep")
        wanted = Wanted(tuple(kept), checked_level(interval), proba)
        run_predict(model, data, where_to(out, data), wanted, Format(encoding, delimiter), quiet=quiet, as_data=json)


@app.command("forecast", short_help="Say what more rows would bring.", epilog=FORECAST_EXAMPLES)
def forecast_command(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA", help="A .csv, .tsv, .txt, .csv.gz, .parquet or .npz file, or - for standard input."
        ),
    ],
    target: Annotated[
        str | None, typer.Option(metavar="COL", help="Column to predict; y for an npz file.", show_default=False)
    ] = None,
    features: Features = None,
    drop: Drop = None,
    weights: Annotated[
        str | None, typer.Option(metavar="COL", help="Column of row weights.", show_default=False)
    ] = None,
    task: Annotated[
        str,
        typer.Option(metavar="auto|regression|classification", help="Numbers or classes; auto looks at the target."),
    ] = "auto",
    kernel: Annotated[str, typer.Option(metavar="NAME", help="laplace, gaussian, matern32, ...")] = "laplace",
    error: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER", help="Say how many rows would reach this RMSE, or Brier score.", show_default=False
        ),
    ] = None,
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Decides which parts of the rows are fitted.")] = 0,
    memory: Memory = None,
    quiet: Quiet = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Say what two, four and eight times as many rows would bring, from the rows of a file.

    The forecast is that of kernel ridge regression with alpha chosen by leave-one-out. It says which of its numbers not
    to rely on. A target of words is taken for classes: the error is then the Brier score of a logistic classifier.
    """
    with guarded(debug):
        from mercer.cli.jobs import run_forecast
        from mercer.cli.options import checked_memory, column_list, named_target, one_of
        from mercer.cli.reading import Format
        from mercer.cli.task import TASKS, Columns

        chosen = None if features is None else column_list(features, "--features")
        dropped = [] if drop is None else column_list(drop, "--drop")
        columns = Columns(named_target(target, data), chosen, weights, dropped, one_of(task, TASKS, "--task"))
        form, budget = Format(encoding, delimiter), checked_memory(memory)
        run_forecast(data, columns, form, kernel, error, budget, seed, quiet=quiet, as_data=json)
