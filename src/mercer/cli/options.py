"""Options that are text on the command line, checked before any work: a wrong one is wrong usage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import typer

from mercer.cli.reading import STDIN
from mercer.cli.regression import Settings
from mercer.cli.sources import STREAMED
from mercer.cli.tables import FORMATS, format_of
from mercer.core.errors import MercerError
from mercer.core.memory import parse_budget
from mercer.kernels import as_kernel

DEFAULT_KERNEL = "laplace"
NPZ_TARGET = "y"
EXACT = ("cholesky", "eigh")
SOLVERS = ("auto", *EXACT, *STREAMED)


def checked_settings(
    kernels: list[str] | None,
    alpha: str,
    tune: bool,
    standardize: bool,
    test_fraction: float,
    seed: int,
    memory: str | None,
    solver: str = "auto",
    landmarks: int | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
    model: str = "kernel",
    cv: int = 0,
) -> Settings:
    """The settings of a fit, or an error that names the option."""
    names = tuple(dict.fromkeys(kernels or [DEFAULT_KERNEL]))
    for name in names:
        try:
            domain = as_kernel(name).domain
        except MercerError as error:
            raise typer.BadParameter(str(error), param_hint="--kernel") from None
        if domain != "vectors":
            raise typer.BadParameter(f"the {name} kernel cannot learn from columns of numbers.", param_hint="--kernel")
    if not 0 <= test_fraction < 1:
        raise typer.BadParameter(f"{test_fraction:g} is not at least 0 and below 1.", param_hint="--test-fraction")
    if solver not in SOLVERS:
        raise typer.BadParameter(f"{solver!r} is not one of {', '.join(SOLVERS)}.", param_hint="--solver")
    if landmarks is not None and solver in EXACT:
        raise typer.BadParameter(f"--solver {solver} uses all rows; leave one of them out.", param_hint="--landmarks")
    if resume and checkpoint is None:
        raise typer.BadParameter("name the file to go on from with --checkpoint.", param_hint="--resume")
    if checkpoint is not None and solver in EXACT:
        raise typer.BadParameter(f"--solver {solver} needs all rows at once.", param_hint="--checkpoint")
    if cv == 1:
        raise typer.BadParameter("1 fold leaves no rows to fit; give 2 or more.", param_hint="--cv")
    if model == "gp" and (solver != "auto" or landmarks is not None or checkpoint is not None):
        raise typer.BadParameter("--solver, --landmarks and --checkpoint are not for gp.", param_hint="--model")
    chosen, budget = checked_alpha(alpha), checked_memory(memory)
    return Settings(
        names, chosen, tune, standardize, test_fraction, seed, budget, solver, landmarks, checkpoint, resume, model, cv
    )


def one_of(value: str, known: Sequence[str], option: str) -> str:
    """A word that is known."""
    if value not in known:
        raise typer.BadParameter(f"{value!r} is not one of {', '.join(known)}.", param_hint=option)
    return value


def checked_level(level: float | None) -> float | None:
    """The share of an interval."""
    if level is not None and not 0 < level < 1:
        raise typer.BadParameter(f"{level:g} is not between 0 and 1; 0.9 is usual.", param_hint="--interval")
    return level


def where_to(out: Path | None, data: Path) -> Path:
    """Where predictions go: standard output where rows come from standard input."""
    if out is None and data != STDIN:
        raise typer.BadParameter("name the file to write, or - for standard output.", param_hint="--out")
    return STDIN if out is None else out


def checked_alpha(text: str) -> float | str:
    """A criterion, "auto", "loo" or "gcv", or a number >= 0.

    >>> checked_alpha("0.5"), checked_alpha("loo")
    (0.5, 'loo')
    """
    if text in ("auto", "loo", "gcv"):
        return text
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise typer.BadParameter(f"{text!r} is not auto, loo, gcv or a number >= 0.", param_hint="--alpha")
    return value


def checked_memory(text: str | None) -> int | None:
    """Bytes, or None for the default."""
    try:
        return parse_budget(text, "--memory")
    except MercerError as error:
        raise typer.BadParameter(str(error), param_hint="--memory") from None


def column_list(text: str, option: str) -> list[str]:
    """Names separated by commas, each once.

    >>> column_list("area, rooms", "--features")
    ['area', 'rooms']
    """
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise typer.BadParameter(f"{text!r} has an empty name.", param_hint=option)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise typer.BadParameter(f"{twice!r} is named twice.", param_hint=option)
    return names


def named_target(target: str | None, data: Path) -> str:
    """The column to predict; only an npz file has a customary name for it."""
    if target is not None:
        return target
    if (
        data == STDIN
        or data.is_dir()
        or (any(data.name.lower().endswith(e) for e in FORMATS) and format_of(data) != "npz")
    ):
        raise typer.BadParameter("name the column to predict.", param_hint="--target")
    return NPZ_TARGET
