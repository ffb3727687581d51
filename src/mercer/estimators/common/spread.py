"""Predictions on an engine: at the rows of a source, or later at those of a Dask collection."""

from __future__ import annotations

import importlib
from typing import Any, Protocol

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor

from mercer.core.arrays import Points, checked_values
from mercer.core.errors import InputError
from mercer.core.memory import give_back
from mercer.core.progress import Progress
from mercer.data.engines import Arrays, Engine, grouped, most_rows, using_engine
from mercer.data.given import Rows
from mercer.data.rows import Part, RowSource, read_ahead
from mercer.data.rows.dask import DaskTable


class Values(Protocol):
    """A fit that can be sent to workers."""

    def values(self, rows: Points) -> Tensor: ...

    def to_send(self) -> Values:
        """What predictions need, for other machines."""


def values_at(fit: Values, source: RowSource, client: Any, *, verbose: bool = False) -> Tensor:
    """The function of a fit at all rows of a source, part after part, here or by an engine."""
    if len(source) == 0:
        raise InputError("The source has no rows to predict at.")
    with using_engine(client, source) as engine:
        if engine is not None:
            return spread_values(fit.to_send(), source, engine)
        values: Tensor | None = None
        with Progress(len(source), "predictions", shown=verbose) as progress:
            for part, chunk in read_ahead(source.read, source.parts()):
                found = fit.values(Points(chunk.X, source.names)).cpu().to(source.dtype)
                values = found.new_empty(len(source), *found.shape[1:]) if values is None else values
                values[part.before : part.before + len(part)] = checked_values(found, "Predictions", part.before)
                del chunk
                give_back()
                progress.advance(len(part))
        assert values is not None
        return values


def spread_values(fit: Values, source: RowSource, engine: Engine) -> Tensor:
    """The function of a fit at all rows of a source, found by an engine."""
    groups = grouped(source.parts(), engine.group_rows or most_rows(source))
    results = engine.map_groups(_group_values, source, groups, engine.broadcast(fit))
    return engine.reduce(_joined, results)["values"]


def predicted_later(model: BaseEstimator, X: DaskTable, like: np.ndarray, method: str = "predict") -> Any:
    """What a method of a model gives for the rows of a Dask array or data frame, as a Dask array.

    It is computed block by block; `like` is that for no rows.
    """
    columns = X.shape[1] if X.ndim == 2 else None
    if columns != model.n_features_in_:
        raise InputError(f"X has {columns} features but {model.n_features_in_} are expected.")
    sent = importlib.import_module("dask").delayed(model, pure=False, traverse=False)
    known = {"model": sent, "method": method}
    if not hasattr(X, "chunks"):
        return X.map_partitions(_block_values, **known, empty=like, meta=like)
    if X.dtype == np.float32 and like.dtype == np.float64:
        like = like.astype(np.float32)
    options: dict[str, Any] = {"drop_axis": 1} if like.ndim == 1 else {"chunks": (X.chunks[0], like.shape[1:])}
    return X.rechunk({1: -1}).map_blocks(_block_values, **known, empty=like, dtype=like.dtype, meta=like, **options)


def _group_values(rows: RowSource, parts: list[Part], fit: Values) -> Arrays:
    return {"values": torch.cat([part_values(fit, rows, part) for part in parts])}


def part_values(fit: Values, rows: RowSource, part: Part) -> Tensor:
    """The function of a fit at a part of a source, in its dtype."""
    values = fit.values(Points(rows.read(part).X, rows.names)).cpu().to(rows.dtype)
    return checked_values(values, "Predictions", part.before)


def _joined(a: Arrays, b: Arrays) -> Arrays:
    return {"values": torch.cat([a["values"], b["values"]])}


def _block_values(block: Rows, model: BaseEstimator, method: str, empty: np.ndarray) -> Any:
    return getattr(model, method)(block) if len(block) else empty
