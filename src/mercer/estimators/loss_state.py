"""KernelClassifier and KernelRegressor as plain data and arrays, for model files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.devices import DTYPES
from mercer.core.errors import InputError, ModelFileError
from mercer.core.losses import Loss
from mercer.estimators.calibration import Calibration
from mercer.estimators.data import Seen, TrainingData
from mercer.estimators.expansion import Centres
from mercer.estimators.state import (
    float_array,
    nothing_left,
    plain_names,
    plain_objects,
    plain_params,
    read_names,
    read_params,
    read_points,
    read_report,
    remember_features,
    typed,
)
from mercer.kernels import from_dict, to_dict
from mercer.selection import AlphaPath
from mercer.solvers.choose import LOSS_SOLVERS

SEEN = ("n_rows", "n_targets", "total_weight", "one_target", "torch_in")
PATH_ARRAYS = ("alphas", "errors", "alpha", "at_edge")


def classifier_state(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain data and arrays from which `classifier_from_state` makes an equal model."""
    meta, arrays = _state(model)
    classes = model.classes_
    if classes.dtype.kind not in "biufUO" or not all(isinstance(c, str | int | float | bool) for c in classes.tolist()):
        raise InputError(f"classes of type {classes.dtype} do not fit a model file. Use pickle instead.")
    meta["classes"], meta["class_kind"] = classes.tolist(), classes.dtype.kind
    if isinstance(model.class_weight, dict):
        keys = [k.item() if isinstance(k, np.generic) else k for k in model.class_weight]
        meta["params"]["class_weight"] = [list(pair) for pair in zip(keys, model.class_weight.values(), strict=True)]
    if model._calibration.value is not None:
        arrays |= {"slope": model._calibration.value.slope, "shift": model._calibration.value.shift}
    return meta, arrays


def classifier_from_state(cls: Any, meta: dict[str, Any], arrays: dict[str, Tensor]) -> Any:
    """The model that `classifier_state` described."""
    from mercer.estimators.kernel_classifier import Later

    arrays = dict(arrays)
    model = cls(**read_params(meta))
    if isinstance(model.class_weight, list):
        model.class_weight = dict(model.class_weight)
    values, kind = typed(meta, "classes", list), typed(meta, "class_kind", str)
    if len(values) < 2 or kind not in "biufUO" or not all(isinstance(v, str | int | float | bool) for v in values):
        raise ModelFileError(f"the entry 'classes' is {values!r:.60}")
    model.classes_ = np.asarray(values, dtype=object if kind == "O" else {"b": bool, "i": np.int64}.get(kind))
    t = 1 if len(values) == 2 else len(values)
    model._calibration = Later()
    if "slope" in arrays:
        model._calibration.value = Calibration(float_array(arrays, "slope", (1,)), float_array(arrays, "shift", (1,)))
    _restore(model, meta, arrays, t)
    if model._data is not None:
        codes = model._data.targets
        if bool((codes != codes.floor()).any()) or not 0 <= float(codes.min()) <= float(codes.max()) < len(values):
            raise ModelFileError("array 'targets' does not hold codes of classes")
    model._keep_support()
    return model


def regressor_state(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain data and arrays from which `regressor_from_state` makes an equal model."""
    meta, arrays = _state(model)
    return meta | {"crossings": model.n_crossings_}, arrays


def regressor_from_state(cls: Any, meta: dict[str, Any], arrays: dict[str, Tensor]) -> Any:
    """The model that `regressor_state` described."""
    arrays = dict(arrays)
    model = cls(**read_params(meta))
    model.quantiles_ = model._checked_quantiles()
    model.n_crossings_ = typed(meta, "crossings", int)
    _restore(model, meta, arrays, 1 if model.quantiles_ is None else len(model.quantiles_))
    model._keep_support()
    return model


def _state(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    if isinstance(model.loss, Loss):
        raise InputError(f"loss={model.loss!r}: a model file holds losses by name. Use pickle instead.")
    seen, points, path = model._seen, model._centres.points, model.alpha_path_
    meta = {
        "params": plain_params(model),
        "kernel": to_dict(model.kernel_),
        "where": model._where,
        "alpha": model.alpha_,
        "objective": model.objective_,
        "report": asdict(model.solver_report_),
        "seen": {name: getattr(seen, name) for name in SEEN} | {"dtype": str(seen.dtype).removeprefix("torch.")},
        "names": plain_names(model),
        "objects": plain_objects(points),
        "criterion": None if path is None else path.criterion,
    }
    arrays: dict[str, Any] = {"coef": model._coef.cpu(), "intercept": model._intercept.cpu()}
    if points.is_tensor:
        arrays["X"] = points.values
    if model._data is not None:
        arrays["targets"] = model._data.targets
        if model._data.weights is not None:
            arrays["weights"] = model._data.weights
    if path is not None:
        arrays |= {f"path_{name}": getattr(path, name) for name in PATH_ARRAYS}
    return meta, arrays


def _restore(model: Any, meta: dict[str, Any], arrays: dict[str, Tensor], t: int) -> None:
    """Everything that both estimators have."""
    seen = typed(meta, "seen", dict)
    dtype = seen.get("dtype")
    if not all(isinstance(seen.get(name), int | float) for name in SEEN) or dtype not in ("None", *DTYPES):
        raise ModelFileError(f"the entry 'seen' is {seen!r:.80}")
    model._seen = Seen(**{name: seen[name] for name in SEEN}, dtype=DTYPES.get(dtype), device=torch.device("cpu"))
    model._where, model._seed = typed(meta, "where", str), 0
    if model._where not in LOSS_SOLVERS:
        raise ModelFileError(f"the entry 'where' is {model._where!r:.60}")
    model.kernel_ = from_dict(typed(meta, "kernel", dict))
    model.alpha_, model.objective_ = float(typed(meta, "alpha", (int, float))), float(meta["objective"])
    model.solver_report_ = read_report(typed(meta, "report", dict))
    names = read_names(meta)
    points = read_points(meta, arrays, names)
    remember_features(model, points.values.shape[1] if points.is_tensor else None, names)
    model.alpha_path_ = _path(meta["criterion"], arrays)
    model._data = None
    if "targets" in arrays:
        targets = float_array(arrays, "targets", (len(points), 1))
        weights = float_array(arrays, "weights", (len(points),)) if "weights" in arrays else None
        model._data = TrainingData(points, targets, weights, True, model._seen.torch_in)
    coef = float_array(arrays, "coef", (len(points), t))
    model._restore_fit(Centres(model.kernel_, points), coef, float_array(arrays, "intercept", (t,)))
    nothing_left(arrays, type(model).__name__)


def _path(criterion: Any, arrays: dict[str, Tensor]) -> AlphaPath | None:
    if criterion is None:
        return None
    if criterion not in ("loo", "folds"):
        raise ModelFileError(f"the entry 'criterion' is {criterion!r:.60}")
    k = len(arrays["path_alphas"])
    parts = {
        "alphas": float_array(arrays, "path_alphas", (k,)),
        "errors": float_array(arrays, "path_errors", (k, 1)),
        "alpha": float_array(arrays, "path_alpha", (1,)),
        "at_edge": arrays.pop("path_at_edge").to(torch.bool),
    }
    return AlphaPath(**parts, criterion=criterion)
