"""KernelRidge as plain data and arrays, for model files; everything read back is checked before use."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError, ModelFileError
from mercer.core.results import SolverReport
from mercer.estimators.data import TrainingData
from mercer.kernels import Kernel, from_dict, to_dict
from mercer.selection import AlphaPath, Tuned

if TYPE_CHECKING:
    from mercer.estimators.kernel_ridge import KernelRidge

PATH_ARRAYS = ("alphas", "errors", "alpha", "at_edge")


def ridge_state(model: KernelRidge) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain data and arrays from which `ridge_from_state` makes an equal model."""
    data, path = model._data, model.alpha_path_
    meta = {
        "params": {name: _plain_param(name, value) for name, value in model.get_params(deep=False).items()},
        "kernel": to_dict(model.kernel_),
        "alpha": np.atleast_1d(model.alpha_).tolist(),
        "alpha_shared": isinstance(model.alpha_, float),
        "report": asdict(model.solver_report_),
        "names": None if data.rows.names is None else list(data.rows.names),
        "objects": None if data.rows.is_tensor else _plain_objects(data.rows.values),
        "one_target": data.one_target,
        "torch_in": data.torch_in,
        "criterion": None if path is None else path.criterion,
        "tuning": None if model.tuning_ is None else _plain_tuning(model.tuning_),
    }
    arrays = {"coef": torch.as_tensor(model.dual_coef_).reshape(len(data.rows), -1), "targets": data.targets}
    if data.rows.is_tensor:
        arrays["X"] = data.rows.values
    if data.weights is not None:
        arrays["weights"] = data.weights
    if model._loo is not None:
        arrays["loo"] = model._loo
    if path is not None:
        arrays |= {f"path_{name}": getattr(path, name) for name in PATH_ARRAYS}
    return meta, arrays


def ridge_from_state(cls: type[KernelRidge], meta: dict[str, Any], arrays: dict[str, Tensor]) -> KernelRidge:
    """The model that `ridge_state` described."""
    arrays = dict(arrays)
    model = cls(**{name: _param(name, value) for name, value in _typed(meta, "params", dict).items()})
    data = _training_data(meta, arrays)
    n, t = data.targets.shape
    model.kernel_ = from_dict(_typed(meta, "kernel", dict))
    model.tuning_ = _tuning(meta["tuning"])
    model.solver_report_ = _report(_typed(meta, "report", dict))
    model.alpha_path_ = _path(meta["criterion"], arrays, t)
    model._loo = _float_array(arrays, "loo", (n, t)) if "loo" in arrays else None
    model._data, model._seed = data, 0
    if data.rows.is_tensor:
        model.n_features_in_ = data.rows.values.shape[1]
    if data.rows.names is not None:
        model.feature_names_in_ = np.asarray(data.rows.names, dtype=object)
    model._keep(_float_array(arrays, "coef", (n, t)), _alpha(meta, t))
    if arrays:
        raise ModelFileError(f"the arrays {sorted(arrays)} do not belong to a KernelRidge")
    return model


# Out


def _plain_param(name: str, value: Any) -> Any:
    if isinstance(value, Kernel):
        return to_dict(value)
    if isinstance(value, np.ndarray | np.generic | Tensor):
        return value.tolist()
    if isinstance(value, torch.device | torch.dtype):
        return str(value).removeprefix("torch.")
    if name == "random_state" and not isinstance(value, int | None):
        return None  # a generator has no lasting meaning once it was used
    return value


def _plain_objects(objects: list[Any]) -> list[str]:
    for i, item in enumerate(objects):
        if not isinstance(item, str):
            raise InputError(
                f"X[{i}] is a {type(item).__name__}: only strings and numbers fit a model file. Use pickle instead."
            )
    return list(objects)


def _plain_tuning(tuning: Tuned) -> dict[str, Any]:
    values = {f.name: getattr(tuning, f.name) for f in fields(tuning)}
    alpha = values["alpha"]
    return values | {
        "kernel": to_dict(tuning.kernel),
        "alpha": alpha.tolist() if isinstance(alpha, Tensor) else alpha,
        "history": list(tuning.history),
    }


# In


def _typed(meta: dict[str, Any], name: str, kind: Any) -> Any:
    value = meta[name]
    if not isinstance(value, kind):
        raise ModelFileError(f"the entry {name!r} is {value!r:.60}")
    return value


def _param(name: str, value: Any) -> Any:
    if name == "kernel" and isinstance(value, dict):
        return from_dict(value)
    if isinstance(value, dict):
        raise ModelFileError(f"the parameter {name!r:.60} is an object")
    return value


def _float_array(arrays: dict[str, Tensor], name: str, shape: tuple[int, ...]) -> Tensor:
    array = arrays.pop(name)
    if array.dtype != torch.float64 or tuple(array.shape) != shape:
        raise ModelFileError(f"array {name!r} is {array.dtype} {tuple(array.shape)}, expected float64 {shape}")
    return array


def _training_data(meta: dict[str, Any], arrays: dict[str, Tensor]) -> TrainingData:
    targets = arrays.pop("targets")
    if targets.ndim != 2 or targets.dtype != torch.float64 or 0 in targets.shape:
        raise ModelFileError(f"array 'targets' is {targets.dtype} {tuple(targets.shape)}")
    one_target = _typed(meta, "one_target", bool)
    if one_target and targets.shape[1] != 1:
        raise ModelFileError(f"array 'targets' has {targets.shape[1]} columns, expected 1")
    rows = _rows(meta, arrays)
    if len(rows) != len(targets):
        raise ModelFileError(f"there are {len(rows)} rows but {len(targets)} targets")
    weights = _float_array(arrays, "weights", (len(rows),)) if "weights" in arrays else None
    if weights is not None and bool((weights < 0).any()):
        raise ModelFileError("array 'weights' has negative entries")
    return TrainingData(rows, targets, weights, one_target, _typed(meta, "torch_in", bool))


def _rows(meta: dict[str, Any], arrays: dict[str, Tensor]) -> Points:
    objects, names = meta["objects"], meta["names"]
    if objects is not None:
        if not isinstance(objects, list) or not all(isinstance(item, str) for item in objects):
            raise ModelFileError("the entry 'objects' is not a list of strings")
        return Points(objects)
    X = arrays.pop("X")
    if X.ndim != 2 or 0 in X.shape or X.dtype not in (torch.float32, torch.float64):
        raise ModelFileError(f"array 'X' is {X.dtype} {tuple(X.shape)}")
    if names is None:
        return Points(X)
    if not isinstance(names, list) or len(names) != X.shape[1] or not all(isinstance(c, str) for c in names):
        raise ModelFileError(f"the entry 'names' is not a list of {X.shape[1]} strings")
    return Points(X, tuple(names))


def _alpha(meta: dict[str, Any], n_targets: int) -> float | Tensor:
    values, shared = _typed(meta, "alpha", list), _typed(meta, "alpha_shared", bool)
    if len(values) != (1 if shared else n_targets) or not all(isinstance(v, int | float) and v >= 0 for v in values):
        raise ModelFileError(f"the entry 'alpha' is {values!r:.60}")
    return float(values[0]) if shared else torch.tensor(values, dtype=torch.float64)


def _report(values: dict[str, Any]) -> SolverReport:
    kinds = {"str": str, "bool": bool, "float": (int, float), "int": int}
    for f in fields(SolverReport):
        if not isinstance(values.get(f.name), kinds[str(f.type)]):  # type: ignore[arg-type]
            raise ModelFileError(f"the entry {f.name!r} of the report is {values.get(f.name)!r:.60}")
    return SolverReport(**values)


def _path(criterion: Any, arrays: dict[str, Tensor], n_targets: int) -> AlphaPath | None:
    if criterion is None:
        return None
    if criterion not in ("loo", "gcv"):
        raise ModelFileError(f"the entry 'criterion' is {criterion!r:.60}")
    k = len(arrays["path_alphas"])
    parts = {
        "alphas": _float_array(arrays, "path_alphas", (k,)),
        "errors": _float_array(arrays, "path_errors", (k, n_targets)),
        "alpha": _float_array(arrays, "path_alpha", (n_targets,)),
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
