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
from mercer.data.engines import Arrays, Engine, grouped, most_rows
from mercer.data.given import Rows
from mercer.data.rows import Part, RowSource
from mercer.data.rows.dask import DaskTable
from mercer.data.sample import Seen


class Values(Protocol):
    """A fit that can be sent to workers."""

    def values(self, rows: Points) -> Tensor: ...


def spread_values(fit: Values, source: RowSource, engine: Engine) -> Tensor:
    """The function of a fit at all rows of a source, found by an engine."""
    groups = grouped(source.parts(), engine.group_rows or most_rows(source))
    results = engine.map_groups(_group_values, source, groups, engine.broadcast(fit))
    return engine.reduce(_joined, results)["values"]


def predicted_later(model: BaseEstimator, seen: Seen, X: DaskTable) -> Any:
    """The predictions at the rows of a Dask array or data frame, as a Dask array that is computed block by block."""
    columns = X.shape[1] if X.ndim == 2 else None
    if columns != model.n_features_in_:
        raise InputError(f"X has {columns} features but {model.n_features_in_} are expected.")
    sent = importlib.import_module("dask").delayed(model, pure=False, traverse=False)
    like = np.empty((0,) if seen.one_target else (0, seen.n_targets))
    if not hasattr(X, "chunks"):
        return X.map_partitions(_block_values, model=sent, empty=like, meta=like)
    if X.dtype == np.float32:
        like = like.astype(np.float32)
    options: dict[str, Any] = {"drop_axis": 1} if like.ndim == 1 else {"chunks": (X.chunks[0], like.shape[1:])}
    values = {"model": sent, "empty": like}
    return X.rechunk({1: -1}).map_blocks(_block_values, **values, dtype=like.dtype, meta=like, **options)


def _group_values(rows: RowSource, parts: list[Part], fit: Values) -> Arrays:
    return {"values": torch.cat([part_values(fit, rows, part) for part in parts])}


def part_values(fit: Values, rows: RowSource, part: Part) -> Tensor:
    """The function of a fit at a part of a source, in its dtype."""
    values = fit.values(Points(rows.read(part).X, rows.names)).cpu().to(rows.dtype)
    return checked_values(values, "Predictions", part.before)


def _joined(a: Arrays, b: Arrays) -> Arrays:
    return {"values": torch.cat([a["values"], b["values"]])}


def _block_values(block: Rows, model: BaseEstimator, empty: np.ndarray) -> Any:
    return model.predict(block) if len(block) else empty
