"""The same job for rows that are read in parts: scan, fit on landmarks, and compare on the rows held out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mercer.cli.dials import DRAWN, MIN_TEST, MIN_TRAIN
from mercer.cli.model import TableModel
from mercer.cli.problem import Problem
from mercer.cli.regression import RIDGE_ALPHAS, Comparison, Outcome, Settings
from mercer.cli.scan import LinearModel, Moments, scan
from mercer.cli.scores import RunningErrors, Score
from mercer.cli.sources import StreamedTable
from mercer.core.errors import InputError
from mercer.core.memory import give_back
from mercer.core.progress import Progress
from mercer.data.checkpoint import Checkpoint
from mercer.data.rows import ScaledRows, SelectedRows, read_ahead
from mercer.data.rows.views import row_hash
from mercer.estimators import KernelRidge


def regress_streamed(
    table: StreamedTable, settings: Settings, step: Callable[[str], None] = lambda text: None, shown: bool = False
) -> Outcome:
    """Fit the best of the kernels to rows that are read in parts; `step` is told what is going on."""
    start = time.perf_counter()
    _check(settings)
    split = (settings.test_fraction, settings.seed)
    train, test = (SelectedRows(table.rows, *split, held_out=held_out) for held_out in (False, True))
    if train.n_rows < MIN_TRAIN or (settings.test_fraction > 0 and test.n_rows < MIN_TEST):
        raise InputError(f"{table.source} has {len(table):,} rows, too few to learn from and to test on.")
    step(f"reading {table.source} for means and deviations")
    moments = scan(train, scan_file(settings.checkpoint), shown)
    if moments.least[-1] == moments.most[-1]:
        raise InputError(f"Every value of the target {table.target!r} is {moments.target_mean:g}: nothing to learn.")
    center, scale, notes = moments.scaling(table.features, settings.standardize)
    rows = ScaledRows(train, center, scale, moments.target_mean)
    tried: dict[str, float] = {}
    best: KernelRidge | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name in settings.kernels:
            step(f"fitting the {name} kernel to {train.n_rows:,} rows")
            candidate = _estimator(name, settings, shown).fit(rows)
            path = candidate.alpha_path_
            tried[name] = float("nan") if path is None else float(path.errors.min()) ** 0.5
            if best is None or tried[name] <= min(tried.values()):
                best = candidate
    assert best is not None
    notes += list(table.notes)
    notes += [str(warning.message) for warning in caught if not issubclass(warning.category, DeprecationWarning)]
    notes += [concern for concern in best.report().concerns if concern not in notes]
    mean = moments.target_mean
    model = TableModel(best, table.features, table.target, center, scale, mean, table.weight_column)
    step("comparing with ridge regression")
    compared = _compare(model, moments, test, settings, shown) if test.n_rows else None
    seconds = time.perf_counter() - start
    notes = list(dict.fromkeys(notes))
    return Outcome(
        model=model,
        settings=settings,
        train=_Counted(table, train.n_rows),
        loo=_left_out(best, moments),
        loo_predictions=None,
        tried=tried,
        test=compared,
        seconds=seconds,
        notes=tuple(notes),
        reading=f"in {len(table.rows.parts()):,} parts: {table.reason}",
    )


def scan_file(checkpoint: Path | None) -> Path | None:
    """Where means and deviations are kept beside a checkpoint: a fit that goes on must use the same."""
    return None if checkpoint is None else checkpoint.with_name(f"{checkpoint.name}.scan")


def begin(settings: Settings) -> str | None:
    """Look at the checkpoint of an earlier run before any work; what to tell the user."""
    path = settings.checkpoint
    files = [] if path is None else [file for file in (path, scan_file(path)) if file is not None and file.exists()]
    if path is None or (settings.resume and files):
        return None if path is None else f"going on from {path}"
    Checkpoint(path, {}).check_place()
    if files:
        raise InputError(
            f"--checkpoint {path}: {files[0]} is there from an earlier run. Add --resume to go on, or remove it."
        )
    return "there is no checkpoint yet: starting from the beginning" if settings.resume else None


def finish(settings: Settings) -> None:
    """Remove what was kept for the case of an interruption, once the results are written."""
    for file in (settings.checkpoint, scan_file(settings.checkpoint)):
        if file is not None:
            file.unlink(missing_ok=True)


def kept_state(settings: Settings) -> str | None:
    """How to go on after an interruption, None when nothing was saved."""
    path = settings.checkpoint
    saved = path is not None and any(file.exists() for file in (path, scan_file(path)) if file is not None)
    return f"The state so far is in {path}: the same command with --resume goes on from there." if saved else None


class _Counted:
    """The training rows as an outcome describes them, by names and number."""

    def __init__(self, table: StreamedTable, count: int) -> None:
        self.features, self.target, self.weight_column = table.features, table.target, table.weight_column
        self.source, self.count = table.source, count

    def __len__(self) -> int:
        return self.count


def _check(settings: Settings) -> None:
    if len(settings.kernels) > 1 and not isinstance(settings.alpha, str):
        raise InputError(
            "Rows that are read in parts give no leave-one-out error with --alpha NUMBER: name one --kernel."
        )
    if len(settings.kernels) > 1 and settings.checkpoint is not None:
        raise InputError("--checkpoint keeps the state of one fit: name one --kernel.")
    if settings.solver == "falkon" and isinstance(settings.alpha, str):
        raise InputError("--solver falkon needs a number: --alpha NUMBER. --solver nystrom can choose alpha.")


def _estimator(kernel: str, settings: Settings, shown: bool) -> KernelRidge:
    return KernelRidge(
        kernel,
        alpha=settings.alpha,
        tune=settings.tune,
        solver=settings.solver,
        n_landmarks=None if settings.solver == "random_features" else settings.landmarks,
        n_features=settings.landmarks if settings.solver == "random_features" else None,
        memory_budget=settings.memory,
        random_state=settings.seed,
        checkpoint=settings.checkpoint,
        verbose=shown,
    )


def _left_out(model: KernelRidge, moments: Moments) -> Score | None:
    """The leave-one-out error, where alpha was chosen by it."""
    path = model.alpha_path_
    if path is None or path.criterion != "loo":
        return None
    error = float(path.errors.min())
    return Score(1.0 - error / moments.target_variance, error**0.5)


def _compare(model: TableModel, moments: Moments, test: SelectedRows, settings: Settings, shown: bool) -> Comparison:
    linear = LinearModel.of(moments, model.features, RIDGE_ALPHAS)
    errors = RunningErrors(("kernel ridge", "ridge regression", "mean"), moments.target_mean)
    drawn: list[dict[str, np.ndarray]] = []
    with Progress(test.n_rows, "test rows", shown=shown) as progress:
        for part, chunk in read_ahead(test.read, test.parts()):
            X = chunk.X.numpy()
            assert chunk.targets is not None
            actual = chunk.targets[:, 0].numpy()
            weights = None if chunk.weights is None else chunk.weights.numpy()
            found = {
                "kernel ridge": model.predict(X),
                "ridge regression": linear.predict(X),
                "mean": np.full(len(X), moments.target_mean),
            }
            errors.add(actual, found, weights)
            few = row_hash(part.before, len(part), settings.seed + 1) < DRAWN / test.n_rows
            drawn.append({name: values[few] for name, values in {"actual": actual, **found}.items()})
            give_back()
            progress.advance(len(part))
    some = {name: np.concatenate([piece[name] for piece in drawn]) for name in drawn[0]}
    actual = some.pop("actual")
    rows = Problem(np.empty((len(actual), 0)), actual, None, model.features, model.target, "")
    return Comparison(rows, some, errors.scores(), errors.verdict(), errors.rows)
