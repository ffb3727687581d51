"""Fitted maps as plain data and arrays, for model files: what all of them write, and how reading one begins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor

from mercer.core.errors import ModelFileError
from mercer.data.sample import Seen
from mercer.estimators.common.base import KernelEstimator
from mercer.estimators.common.state import (
    POINTS,
    checked_params,
    plain_names,
    plain_objects,
    read_params,
    remember_features,
)
from mercer.estimators.transformers.fit import MapFit
from mercer.files.kinds import ANY_TABLE, FLAG, TEXT, Kind, Table, optional, whole
from mercer.kernels import to_dict

T = TypeVar("T", bound=KernelEstimator)

MAP: dict[str, Kind] = {
    "params": ANY_TABLE,
    "kernel": optional(ANY_TABLE),
    "names": POINTS["names"],
    "n_features": optional(whole(1)),
    "n_rows": whole(1),
    "note": TEXT,
}
"""What the model files of all maps hold."""

ROWS: dict[str, Kind] = {"objects": POINTS["objects"], "torch_in": FLAG}
"""What those of maps that keep rows hold beside."""


def map_state(
    model: KernelEstimator, fit: MapFit[Any], arrays: dict[str, Tensor], **own: Any
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What `begun` reads, with plain data and arrays of one's own."""
    meta = {
        "params": checked_params(model),
        "kernel": None if fit.limit is not None else to_dict(fit.kernel),
        "names": plain_names(model),
        "n_features": getattr(model, "n_features_in_", None),
        "n_rows": fit.seen.n_rows,
        "note": fit.note,
    }
    return meta | own, arrays


def rows_state(points: Any, seen: Seen) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The rows that a map keeps."""
    arrays = {"X": points.values} if points.is_tensor else {}
    return {"objects": plain_objects(points), "torch_in": seen.torch_in}, arrays


def begun(
    cls: type[T], meta: dict[str, Any], arrays: dict[str, Tensor], own: Mapping[str, Kind]
) -> tuple[T, Seen, dict[str, Tensor]]:
    """A model with its parameters, what it saw, and the arrays that are still to be read; all fields are checked."""
    Table({**MAP, **own}).check(meta, "meta")
    if meta["n_features"] is None and meta.get("objects") is None:
        raise ModelFileError("meta.n_features is None, expected a number for rows of a table")
    model = read_params(cls, meta["params"])
    remember_features(model, meta["n_features"], meta["names"])
    n = meta["n_rows"]
    seen = Seen(n, 0, float(n), False, meta.get("torch_in", False), None, torch.device("cpu"))
    return model, seen, dict(arrays)
