"""KernelRidge as plain data and arrays, for model files; everything read back is checked before use."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError, ModelFileError
from mercer.estimators.data import Seen, TrainingData
from mercer.estimators.expansion import Centres, Features
from mercer.estimators.state import (
    float_array,
    nothing_left,
    plain_names,
    plain_objects,
    plain_params,
    plain_seen,
    read_names,
    read_params,
    read_points,
    read_report,
    read_seen,
    remember_features,
    typed,
)
from mercer.kernels import Kernel, from_dict, to_dict
from mercer.selection import AlphaPath, Tuned
from mercer.solvers import SOLVERS
from mercer.solvers.random_features import FourierFeatures

if TYPE_CHECKING:
    from mercer.estimators.kernel_ridge import KernelRidge

PATH_ARRAYS = ("alphas", "errors", "alpha", "at_edge")
GIVEN = "given"
"""Stands for landmarks that are the points of the model, so that they are written once."""


def ridge_state(model: KernelRidge) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain data and arrays from which `ridge_from_state` makes an equal model."""
    seen, path, expansion = model._seen, model.alpha_path_, model._expansion
    points = expansion.points if isinstance(expansion, Centres) else Points([])
    meta = {
        "params": plain_params(model),
        "kernel": to_dict(model.kernel_),
        "solver": model._solver,
        "alpha": np.atleast_1d(model.alpha_).tolist(),
        "alpha_shared": isinstance(model.alpha_, float),
        "report": asdict(model.solver_report_),
        "seen": plain_seen(seen),
        "names": plain_names(model),
        "objects": plain_objects(points),
        "criterion": None if path is None else path.criterion,
        "tuning": None if model.tuning_ is None else _plain_tuning(model.tuning_),
    }
    if not isinstance(model.landmarks, str):
        meta["params"]["landmarks"] = GIVEN
    arrays: dict[str, Any] = {"coef": model._coef}
    if isinstance(expansion, Features):
        arrays |= expansion.features.to_arrays()
    if points.is_tensor:
        arrays["X"] = points.values
    if model._data is not None:
        arrays["targets"] = model._data.targets
        if model._data.weights is not None:
            arrays["weights"] = model._data.weights
    if model._loo is not None:
        arrays["loo"] = model._loo
    if path is not None:
        arrays |= {f"path_{name}": getattr(path, name) for name in PATH_ARRAYS}
    return meta, arrays


def ridge_from_state(cls: type[KernelRidge], meta: dict[str, Any], arrays: dict[str, Tensor]) -> KernelRidge:
    """The model that `ridge_state` described."""
    arrays = dict(arrays)
    model = cls(**read_params(meta))
    seen = model._seen = read_seen(typed(meta, "seen", dict))
    model._solver, model._seed, model._sums = typed(meta, "solver", str), 0, None
    model.kernel_ = from_dict(typed(meta, "kernel", dict))
    model.tuning_ = _tuning(meta["tuning"])
    model.solver_report_ = read_report(typed(meta, "report", dict))
    model.alpha_path_ = _path(meta["criterion"], arrays, seen.n_targets)
    model._loo = float_array(arrays, "loo", (seen.n_rows, seen.n_targets)) if "loo" in arrays else None
    names = read_names(meta)
    expansion, m, d = _expansion(model.kernel_, meta, arrays, names)
    model._data = _training_data(expansion, seen, arrays) if model._solver in SOLVERS else None
    remember_features(model, d, names)
    model._restore_fit(expansion, float_array(arrays, "coef", (m, seen.n_targets)), _alpha(meta, seen.n_targets))
    if model.landmarks == GIVEN and isinstance(expansion, Centres):
        model.landmarks = model.X_fit_
    nothing_left(arrays, "KernelRidge")
    return model


# Out


def _plain_tuning(tuning: Tuned) -> dict[str, Any]:
    values = {f.name: getattr(tuning, f.name) for f in fields(tuning)}
    alpha = values["alpha"]
    return values | {
        "kernel": to_dict(tuning.kernel),
        "alpha": alpha.tolist() if isinstance(alpha, Tensor) else alpha,
        "history": list(tuning.history),
    }


# In


def _expansion(
    kernel: Kernel, meta: dict[str, Any], arrays: dict[str, Tensor], names: tuple[str, ...] | None
) -> tuple[Centres | Features, int, int | None]:
    """What the function is a sum of, the number of its terms and of the columns of X."""
    if "frequencies" in arrays:
        parts = {name: arrays.pop(name) for name in ("frequencies", "offset", "masses")}
        try:
            features = FourierFeatures.from_arrays(parts)
        except InputError as error:
            raise ModelFileError(str(error)) from None
        return Features(features), features.n_features, features.frequencies.shape[1]
    points = read_points(meta, arrays, names)
    return Centres(kernel, points), len(points), points.values.shape[1] if points.is_tensor else None


def _training_data(expansion: Centres | Features, seen: Seen, arrays: dict[str, Tensor]) -> TrainingData:
    if not isinstance(expansion, Centres):
        raise ModelFileError("array 'targets' does not belong to a model of random features")
    rows = expansion.points
    targets = float_array(arrays, "targets", (seen.n_rows, seen.n_targets))
    if len(rows) != seen.n_rows:
        raise ModelFileError(f"there are {len(rows)} rows but {seen.n_rows} targets")
    weights = float_array(arrays, "weights", (len(rows),)) if "weights" in arrays else None
    if weights is not None and bool((weights < 0).any()):
        raise ModelFileError("array 'weights' has negative entries")
    return TrainingData(rows, targets, weights, seen.one_target, seen.torch_in)


def _alpha(meta: dict[str, Any], n_targets: int) -> float | Tensor:
    values, shared = typed(meta, "alpha", list), typed(meta, "alpha_shared", bool)
    if len(values) != (1 if shared else n_targets) or not all(isinstance(v, int | float) and v >= 0 for v in values):
        raise ModelFileError(f"the entry 'alpha' is {values!r:.60}")
    return float(values[0]) if shared else torch.tensor(values, dtype=torch.float64)


def _path(criterion: Any, arrays: dict[str, Tensor], n_targets: int) -> AlphaPath | None:
    if criterion is None:
        return None
    if criterion not in ("loo", "gcv"):
        raise ModelFileError(f"the entry 'criterion' is {criterion!r:.60}")
    k = len(arrays["path_alphas"])
    parts = {
        "alphas": float_array(arrays, "path_alphas", (k,)),
        "errors": float_array(arrays, "path_errors", (k, n_targets)),
        "alpha": float_array(arrays, "path_alpha", (n_targets,)),
        "at_edge": arrays.pop("path_at_edge").to(torch.bool),
    }
    return AlphaPath(**parts, criterion=criterion)


def _tuning(values: Any) -> Tuned | None:
    if values is None:
        return None
    if not isinstance(values, dict):
        raise ModelFileError(f"the entry 'tuning' is {values!r:.60}")
    alpha = values["alpha"]
    return Tuned(
        kernel=from_dict(values["kernel"]),
        alpha=torch.tensor(alpha, dtype=torch.float64) if isinstance(alpha, list) else float(alpha),
        error=float(values["error"]),
        start_error=float(values["start_error"]),
        history=tuple(float(v) for v in values["history"]),
        message=str(values["message"]),
        rows_used=int(values["rows_used"]),
    )
