"""Predictions for rows that are read in parts, and written as they come."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mercer.cli.model import TableModel
from mercer.cli.problem import find_column
from mercer.cli.scores import RunningErrors, Score
from mercer.cli.sources import checked_rows
from mercer.cli.tables import Table
from mercer.cli.writers import writing
from mercer.core.errors import InputError
from mercer.core.memory import give_back
from mercer.core.progress import Progress
from mercer.data.rows import read_ahead

OURS = "prediction"


def predict_streamed(
    model: TableModel, data: Path, out: Path, keep: Sequence[str], *, shown: bool
) -> tuple[int, Score | None]:
    """Predict all rows, part by part; gives their number, and the score where the data hold the target too."""
    asked = checked_rows(data, model.features, model.target, model.weights)
    kept = kept_columns(asked.table, keep)
    rows, errors = asked.rows, RunningErrors((OURS,), model.target_mean)
    with writing(out, rows.n_rows) as writer, Progress(rows.n_rows, "predictions", shown=shown) as progress:
        for part, chunk in read_ahead(rows.read, rows.parts()):
            predicted = model.predict(chunk.X.numpy())
            writer.write(asked.kept(part, kept) | {OURS: predicted})
            if asked.target is not None and chunk.targets is not None:
                weights = None if chunk.weights is None else chunk.weights.numpy()
                errors.add(chunk.targets[:, 0].numpy(), {OURS: predicted}, weights)
            del chunk
            give_back()
            progress.advance(len(part))
    return rows.n_rows, errors.scores()[OURS] if errors.weight else None


def kept_columns(table: Table, keep: Sequence[str]) -> list[str]:
    """The columns to copy beside the predictions."""
    kept = [find_column(table, name, "--keep") for name in keep]
    if OURS in kept:
        raise InputError(f"--keep {OURS}: that is the name of the column of predictions.")
    return kept
