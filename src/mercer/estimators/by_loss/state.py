"""KernelClassifier and KernelRegressor as plain data and arrays, for model files; everything read back is checked."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from torch import Tensor

from mercer.core.errors import ModelFileError
from mercer.core.results import SolverReport
from mercer.estimators.by_loss.fit import Later, LossFit
from mercer.estimators.by_loss.plan import LossPlan, place_of
from mercer.estimators.by_loss.settings import LossSettings
from mercer.estimators.common.state import (
    CLASSES,
    POINTS,
    REPORT,
    SEEN,
    check_codes,
    checked_params,
    float_array,
    nothing_left,
    path_arrays,
    plain_classes,
    plain_names,
    plain_objects,
    plain_seen,
    read_classes,
    read_order,
    read_params,
    read_path,
    read_points,
    read_seen,
    read_training_data,
    remember_features,
)
from mercer.estimators.common.tuning_state import TUNING, plain_tuning, read_tuning
from mercer.files.kinds import ANY_TABLE, Table, number, one_of, optional, whole
from mercer.functions.basis import Centres
from mercer.kernels import to_dict
from mercer.kernels.serialize import from_dict_at
from mercer.selection.calibration import Calibration
from mercer.solvers.choose import LOSS_SOLVERS

if TYPE_CHECKING:
    from mercer.estimators.by_loss.kernel_classifier import KernelClassifier
    from mercer.estimators.by_loss.kernel_regressor import KernelRegressor

COMMON = POINTS | {
    "params": ANY_TABLE,
    "kernel": ANY_TABLE,
    "where": one_of(*LOSS_SOLVERS),
    "alpha": number(above=0),
    "objective": number(),
    "report": REPORT,
    "seen": SEEN,
    "criterion": one_of(None, "loo", "gcv", "folds"),
    "tuning": optional(TUNING),
}
CLASSIFIER = Table(COMMON | CLASSES, may_lack=("tuning",))
REGRESSOR = Table(COMMON | {"crossings": whole(), "unit": number(above=0)}, may_lack=("unit", "tuning"))


def classifier_state(model: KernelClassifier, fit: LossFit) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain data and arrays from which `classifier_from_state` makes an equal model."""
    meta, arrays = _state(model, fit)
    calibration = fit.calibration.value
    if calibration is not None:
        arrays |= {"slope": calibration.slope, "shift": calibration.shift}
    assert fit.plan.classes is not None
    return meta | plain_classes(fit.plan.classes), arrays


def classifier_from_state(
    cls: type[KernelClassifier], meta: dict[str, Any], arrays: dict[str, Tensor]
) -> tuple[KernelClassifier, LossFit]:
    """The model that `classifier_state` described, and its fit."""
    CLASSIFIER.check(meta, "meta")
    arrays, classes = dict(arrays), read_classes(meta)
    model = read_params(cls, meta["params"])
    calibration = None
    if "slope" in arrays:
        slope = float_array(arrays, "slope", (1,), least=0.0)
        calibration = Calibration(slope, float_array(arrays, "shift", (1,)))
    settings = LossSettings.of_classifier(model.get_params(deep=False))
    fit = _read_fit(model, settings, meta, arrays, 1 if len(classes) == 2 else len(classes))
    fit = replace(fit, plan=replace(fit.plan, classes=classes), calibration=Later(calibration))
    if fit.sample is not None:
        check_codes(fit.sample.targets, len(classes))
    elif calibration is None and fit.plan.calibrates:
        raise ModelFileError("there are neither training rows nor what they would calibrate")
    return model, fit


def regressor_state(model: KernelRegressor, fit: LossFit) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain data and arrays from which `regressor_from_state` makes an equal model."""
    meta, arrays = _state(model, fit)
    return meta | {"crossings": fit.crossings, "unit": fit.plan.unit}, arrays


def regressor_from_state(
    cls: type[KernelRegressor], meta: dict[str, Any], arrays: dict[str, Tensor]
) -> tuple[KernelRegressor, LossFit]:
    """The model that `regressor_state` described, and its fit."""
    REGRESSOR.check(meta, "meta")
    model = read_params(cls, meta["params"])
    settings = LossSettings.of_regressor(model.get_params(deep=False))
    fit = _read_fit(model, settings, meta, dict(arrays), len(settings.losses))
    plan = replace(fit.plan, unit=meta.get("unit", 1.0))
    return model, replace(fit, plan=plan, crossings=meta["crossings"])


def _state(model: KernelClassifier | KernelRegressor, fit: LossFit) -> tuple[dict[str, Any], dict[str, Any]]:
    """What both have."""
    points, path, sample = fit.function.centres, fit.path, fit.sample
    meta = {
        "params": checked_params(model),
        "kernel": to_dict(fit.plan.kernel),
        "where": fit.plan.solver,
        "alpha": fit.alpha,
        "objective": fit.objective,
        "report": asdict(fit.report),
        "seen": plain_seen(fit.seen),
        "names": plain_names(model),
        "objects": plain_objects(points),
        "criterion": None if path is None else path.criterion,
        "tuning": None if fit.tuning is None else plain_tuning(fit.tuning),
    }
    arrays: dict[str, Any] = {"coef": fit.function.coef.cpu(), "intercept": fit.intercept.cpu()}
    if points.is_tensor:
        arrays["X"] = points.values
    if sample is not None:
        arrays["targets"] = sample.targets
        if sample.weights is not None:
            arrays["weights"] = sample.weights
        if sample.units is not None:
            arrays["units"] = sample.units
    if fit.order is not None:
        arrays["order"] = fit.order
    return meta, arrays | path_arrays(path)


def _read_fit(
    model: KernelClassifier | KernelRegressor,
    settings: LossSettings,
    meta: dict[str, Any],
    arrays: dict[str, Tensor],
    t: int,
) -> LossFit:
    """The fit that `_state` described, with t columns; the model remembers its features."""
    seen, solver, report = read_seen(meta["seen"]), meta["where"], SolverReport(**meta["report"])
    points = read_points(meta, arrays)
    kernel, alpha = from_dict_at(meta["kernel"], points), float(meta["alpha"])
    remember_features(model, points.values.shape[1] if points.is_tensor else None, meta["names"])
    path, sample = read_path(meta["criterion"], arrays, 1), None
    path = None if path is None else replace(path, measure=settings.measure)
    if solver != "nystrom":
        sample = replace(read_training_data(points, seen, 1, arrays), square=kernel.domain == "matrix")
        if "units" in arrays:
            sample = replace(sample, units=float_array(arrays, "units", (seen.n_rows,), least=0.0))
    coef, intercept = float_array(arrays, "coef", (len(points), t)), float_array(arrays, "intercept", (t,))
    order = read_order(arrays, seen.n_rows)
    nothing_left(arrays, type(model).__name__)
    place = place_of(settings, solver, seen, settings.memory_budget)
    plan = LossPlan(settings, kernel, alpha, solver, report.reason, place)
    function, objective = Centres(kernel, points).sum(coef), float(meta["objective"])
    tuning = None if meta.get("tuning") is None else read_tuning(meta["tuning"])
    fit = LossFit(plan, seen, function, intercept, alpha, objective, report, path, sample, order=order)
    return replace(fit, tuning=tuning)
