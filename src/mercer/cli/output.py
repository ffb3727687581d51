"""What a job leaves on disk: the model, a report for programs and a plot, all of it or nothing."""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mercer import __version__
from mercer.cli import account
from mercer.cli.account import NothingToDraw
from mercer.cli.fitting import Fitted
from mercer.cli.model import MODEL_FILE
from mercer.cli.regression import Outcome
from mercer.core.errors import InputError
from mercer.plots import regression_summary
from mercer.plots.canvas import new_figure

REPORT_FILE, PLOT_FILE = "report.json", "plot.png"


def check_folder(folder: Path, *, force: bool = True) -> None:
    """Before any work: is this a place where results may be written without touching what is not ours?"""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out {folder}: this is a file; give a folder.")
    existing = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise InputError(f"--out {folder}: {existing} cannot be written to.")
    if folder.exists() and any(folder.iterdir()) and not (folder / MODEL_FILE).exists():
        raise InputError(
            f"--out {folder}: this folder holds other files and no earlier model; give a new or empty folder."
        )
    if not force and (folder / MODEL_FILE).exists():
        raise InputError(f"--out {folder}: this folder holds a model; give another folder, or --force to overwrite it.")


@contextlib.contextmanager
def filling(folder: Path) -> Iterator[Path]:
    """An empty scratch folder whose files move into `folder` when the block ends well and vanish otherwise."""
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".mercer-", dir=folder) as scratch:
            yield Path(scratch)
            (folder / PLOT_FILE).unlink(missing_ok=True)  # an old plot must not stand beside a new model
            for file in sorted(Path(scratch).iterdir()):
                os.replace(file, folder / file.name)
    except BaseException as error:
        for path in new:
            with contextlib.suppress(OSError):
                path.rmdir()
        if isinstance(error, OSError):
            raise InputError(f"Cannot write to {folder}: {error.strerror or error}.") from error
        raise


def write_outcome(scratch: Path, outcome: Outcome | Fitted, title: str = "", target: str = "") -> str | None:
    """Write model, report and plot; the reason when there is no plot."""
    outcome.model.save(scratch / MODEL_FILE)
    (scratch / REPORT_FILE).write_text(as_json(account_of(outcome)) + "\n", encoding="utf-8")
    try:
        if isinstance(outcome, Fitted):
            figure = account.figure(outcome, title, target or outcome.model.target)
        else:
            figure = _figure(outcome, title, target or outcome.model.target)
    except (ImportError, NothingToDraw) as error:
        return str(error)
    figure.savefig(scratch / PLOT_FILE, dpi=150)
    return None


def account_of(outcome: Outcome | Fitted) -> dict[str, Any]:
    """Everything found, as plain data."""
    return account.report(outcome) if isinstance(outcome, Fitted) else report(outcome)


def report(outcome: Outcome) -> dict[str, Any]:
    """Everything found, as plain data."""
    model, train, test, settings = outcome.regressor, outcome.train, outcome.test, outcome.settings
    path = model.alpha_path_
    return {
        "mercer": __version__,
        "data": {
            "source": train.source,
            "target": train.target,
            "features": list(train.features),
            "weights": train.weight_column,
            "rows": len(train) + (0 if test is None else test.count),
            "train_rows": len(train),
            "test_rows": 0 if test is None else test.count,
            "read": outcome.reading,
            "seed": settings.seed,
        },
        "kernel": repr(model.kernel_),
        "standardized": settings.standardize,
        "tuned": settings.tune,
        "kernels_tried": outcome.tried,
        "alpha": float(model.alpha_),
        "alpha_chosen_by": None if path is None else path.criterion,
        "solver": asdict(model.solver_report_),
        "leave_one_out": None if outcome.loo is None else asdict(outcome.loo),
        "test": None if test is None else {name: asdict(value) for name, value in test.scores.items()},
        "verdict": None if test is None else test.verdict,
        "notes": list(outcome.notes),
        "seconds": outcome.seconds,
    }


def as_json(data: dict[str, Any]) -> str:
    """JSON text in which numbers that JSON cannot hold are null."""
    return json.dumps(_plain(data), indent=2, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _figure(outcome: Outcome, title: str, target: str) -> Any:
    test, path = outcome.test, outcome.regressor.alpha_path_
    chosen: dict[str, Any] = {"figure": new_figure(10.0, 5.2)}
    if path is not None:
        words = {"loo": "leave-one-out", "gcv": "generalised cross-validation"}
        chosen |= {
            "alphas": path.alphas.numpy(),
            "errors": path.errors[:, 0].numpy(),
            "chosen": float(outcome.regressor.alpha_),
            "criterion": words[path.criterion],
            "error_name": "mean squared error" if path.criterion == "loo" else "score",
        }
    if test is None:
        raise NothingToDraw("no test rows and no leave-one-out predictions to draw")
    return regression_summary(
        test.rows.y, test.predictions["kernel ridge"], baseline=test.predictions["ridge regression"],
        label="kernel ridge", baseline_label="ridge regression", target=target, title=title, **chosen,
    )  # fmt: skip
