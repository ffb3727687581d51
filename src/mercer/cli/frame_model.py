"""`FrameModel`: an estimator on tables with the name of its target, in one model file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from mercer.cli.dials import MOST_MARKS
from mercer.core.errors import ModelFileError
from mercer.data.table import Table
from mercer.estimators.tabular import TabularEstimator
from mercer.files.fields import Array, Field, Fields, Model, read, written
from mercer.files.kinds import TEXT, optional
from mercer.files.persistence import register, save

FIELDS: Fields = {
    "target": Field(TEXT),
    "weights": Field(optional(TEXT)),
    "model": Model(TabularEstimator),
    "marks": Array("r", dtype=torch.int64),
}


@register
@dataclass(frozen=True, eq=False)
class FrameModel:
    """A fitted `TabularEstimator` with the names of its target and weights, and marks of the rows it was trained on.

    >>> from mercer import KernelRidge, tabular
    >>> rows = {"size": np.arange(9.0), "kind": list("abcabcabc")}
    >>> model = tabular(KernelRidge()).fit(rows, np.arange(9.0))
    >>> int(FrameModel(model, "price", None, marks_of(model, Table.of(rows))).trained_on(Table.of(rows)).sum())
    9
    """

    model: TabularEstimator
    target: str
    weights: str | None
    marks: np.ndarray

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that it needs."""
        return tuple(t.name for t in self.model.encoder_.treatments if t.columns)

    @property
    def ids(self) -> tuple[str, ...]:
        """Columns that were left out because they name rows."""
        return tuple(t.name for t in self.model.encoder_.left_out if "different" in t.why)

    @property
    def classifies(self) -> bool:
        """Whether it predicts classes."""
        return hasattr(self.model.estimator_, "classes_")

    def rows_of(self, table: Table) -> Table:
        """The columns of a table that the model was fitted on, in their order; ids need not be there."""
        names = [str(name) for name in self.model.feature_names_in_]
        gap = np.full(len(table), None, dtype=object)
        return Table({name: table.columns.get(name, gap) for name in names}, len(table))

    def trained_on(self, table: Table) -> np.ndarray:
        """Which rows the model has seen when it was fitted."""
        return np.isin(marks_of(self.model, table), self.marks)

    def save(self, path: Path) -> None:
        """Write one safetensors file that `mercer predict` reads."""
        save(self, path)

    def to_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Plain data and arrays, from which `from_state` makes an equal object."""
        return written(FIELDS, self)

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, Tensor]) -> Self:
        """The object that `to_state` described."""
        found = read(FIELDS, meta, arrays, "FrameModel")[0]
        if found["target"] in [t.name for t in found["model"].encoder_.treatments]:
            raise ModelFileError("the target is one of the features")
        return cls(found["model"], found["target"], found["weights"], found["marks"].numpy())


def marks_of(model: TabularEstimator, table: Table) -> np.ndarray:
    """A number for each row, which is another one for a row with other values."""
    encoded = np.ascontiguousarray(model.encoder_.encode(table)[:MOST_MARKS] + 0.0)
    digests = (hashlib.blake2b(row.tobytes(), digest_size=8).digest() for row in encoded)
    return np.frombuffer(b"".join(digests), dtype=np.int64).copy()
