"""KernelClassifier and KernelRegressor as plain data and arrays, for model files; everything read back is checked."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from torch import Tensor

from mercer.core.errors import InputError, ModelFileError
from mercer.core.results import SolverReport
from mercer.estimators.common.calibration import Calibration
from mercer.estimators.common.state import (
    CLASSES,
    PATH_ARRAYS,
    POINTS,
    REPORT,
    SEEN,
    check_codes,
    checked_params,
    float_array,
    nothing_left,
    plain_classes,
    plain_names,
    plain_objects,
    plain_seen,
    read_classes,
    read_params,
    read_path,
    read_points,
    read_seen,
    read_training_data,
    remember_features,
)
from mercer.files.kinds import ANY_TABLE, Table, number, one_of, whole
from mercer.functions.basis import Centres
from mercer.kernels import to_dict
from mercer.kernels.serialize import from_dict_at
from mercer.losses import Loss
from mercer.solvers.choose import LOSS_SOLVERS

COMMON = POINTS | {
    "params": ANY_TABLE,
    "kernel": ANY_TABLE,
    "where": one_of(*LOSS_SOLVERS),
    "alpha": number(above=0),
    "objective": number(),
    "report": REPORT,
    "seen": SEEN,
    "criterion": one_of(None, "loo", "folds"),
}
CLASSIFIER = Table(COMMON | CLASSES)
REGRESSOR = Table(COMMON | {"crossings": whole()})


def classifier_state(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain data and arrays from which `classifier_from_state` makes an equal model."""
    meta, arrays = _state(model)
    if model._calibration.value is not None:
        arrays |= {"slope": model._calibration.value.slope, "shift": model._calibration.value.shift}
    return meta | plain_classes(model.classes_), arrays


def classifier_from_state(cls: Any, meta: dict[str, Any], arrays: dict[str, Tensor]) -> Any:
    """The model that `classifier_state` described."""
    from mercer.estimators.kernel_classifier import Later

    CLASSIFIER.check(meta, "meta")
    arrays = dict(arrays)
    model = read_params(cls, meta["params"])
    model.classes_ = read_classes(meta)
    classes = len(model.classes_)
    model._calibration = Later()
    if "slope" in arrays:
        slope = float_array(arrays, "slope", (1,), least=0.0)
        model._calibration.value = Calibration(slope, float_array(arrays, "shift", (1,)))
    _restore(model, meta, arrays, 1 if classes == 2 else classes)
    if model._data is not None:
        check_codes(model._data.targets, classes)
    elif model._calibration.value is None and model._checked_loss().name != "logistic":
        raise ModelFileError("there are neither training rows nor what they would calibrate")
    model._keep_support()
    return model


def regressor_state(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain data and arrays from which `regressor_from_state` makes an equal model."""
    meta, arrays = _state(model)
    return meta | {"crossings": model.n_crossings_}, arrays


def regressor_from_state(cls: Any, meta: dict[str, Any], arrays: dict[str, Tensor]) -> Any:
    """The model that `regressor_state` described."""
    REGRESSOR.check(meta, "meta")
    arrays = dict(arrays)
    model = read_params(cls, meta["params"])
    model.quantiles_ = model._checked_quantiles()
    model.n_crossings_ = meta["crossings"]
    _restore(model, meta, arrays, 1 if model.quantiles_ is None else len(model.quantiles_))
    model._keep_support()
    return model


def _state(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    if isinstance(model.loss, Loss):
        raise InputError(f"loss={model.loss!r}: a model file holds losses by name. Use pickle instead.")
    points, path = model._centres.points, model.alpha_path_
    meta = {
        "params": checked_params(model),
        "kernel": to_dict(model.kernel_),
        "where": model._where,
        "alpha": model.alpha_,
        "objective": model.objective_,
        "report": asdict(model.solver_report_),
        "seen": plain_seen(model._seen),
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
    seen = model._seen = read_seen(meta["seen"])
    model._where, model._seed = meta["where"], 0
    model.alpha_, model.objective_ = float(meta["alpha"]), float(meta["objective"])
    model.solver_report_ = SolverReport(**meta["report"])
    points = read_points(meta, arrays)
    model.kernel_ = from_dict_at(meta["kernel"], points)
    remember_features(model, points.values.shape[1] if points.is_tensor else None, meta["names"])
    model.alpha_path_ = read_path(meta["criterion"], arrays, 1)
    model._data = None if model._where == "nystrom" else read_training_data(points, seen, 1, arrays)
    coef = float_array(arrays, "coef", (len(points), t))
    model._restore_fit(Centres(model.kernel_, points), coef, float_array(arrays, "intercept", (t,)))
    nothing_left(arrays, type(model).__name__)
