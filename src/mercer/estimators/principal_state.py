"""Eigenvalues with a projection as plain data and arrays, for the model files of `KernelPCA` and its kin."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from mercer.core.errors import ModelFileError
from mercer.core.results import SolverReport
from mercer.estimators.common.state import POINTS, REPORT, float_array, plain_objects, read_kernel, read_points
from mercer.features import KernelProjection
from mercer.files.kinds import FLAG, Kind

PRINCIPAL: dict[str, Kind] = {"objects": POINTS["objects"], "torch_in": FLAG, "report": REPORT}


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
    """The projection and the eigenvalues; sets the kernel and the report of the solver."""
    model._torch_in = meta["torch_in"]
    points = read_points(meta, arrays)
    model.kernel_ = read_kernel(model, meta, points)
    coef = float_array(arrays, "coef", (len(points), None))
    q = coef.shape[1]
    if not q:
        raise ModelFileError("array 'coef' has no columns")
    model.solver_report_ = SolverReport(**meta["report"])
    projection = KernelProjection(
        model.kernel_, points, coef, float_array(arrays, "shift", (q,)), **model._place(points)
    )
    return projection, float_array(arrays, "eigenvalues", (q,), least=0.0)
