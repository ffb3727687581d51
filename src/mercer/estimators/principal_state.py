"""Eigenvalues with a projection as plain data and arrays, for the model files of `KernelPCA` and its kin."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.estimators.state import float_array, plain_objects, read_names, read_points, read_report, typed
from mercer.features import KernelProjection


def principal_arrays(model: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What `principal_from_arrays` reads."""
    projection = model.features_
    arrays = {
        "coef": projection.coef,
        "shift": projection.shift,
        "eigenvalues": torch.as_tensor(model.eigenvalues_),
    }
    if projection.points.is_tensor:
        arrays["X"] = projection.points.values
    report = asdict(model.solver_report_)
    return {"objects": plain_objects(projection.points), "torch_in": model._torch_in, "report": report}, arrays


def principal_from_arrays(
    model: Any, meta: dict[str, Any], arrays: dict[str, Tensor]
) -> tuple[KernelProjection, Tensor]:
    """The projection and the eigenvalues; sets the report of the solver."""
    model._torch_in = typed(meta, "torch_in", bool)
    points = read_points(meta, arrays, read_names(meta))
    if points.is_tensor and points.values.shape[1] != model.n_features_in_:
        raise InputError(f"X has {points.values.shape[1]} columns, expected {model.n_features_in_}.")
    coef = float_array(arrays, "coef", (len(points), None))
    q = coef.shape[1]
    model.solver_report_ = read_report(typed(meta, "report", dict))
    projection = KernelProjection(
        model.kernel_, points, coef, float_array(arrays, "shift", (q,)), **model._place(points)
    )
    return projection, float_array(arrays, "eigenvalues", (q,))
