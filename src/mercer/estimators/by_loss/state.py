"""What is saved of KernelClassifier and KernelRegressor, and how a fit is made of it again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mercer.core.errors import ModelFileError
from mercer.estimators.by_loss.fit import Later, LossFit
from mercer.estimators.by_loss.plan import LossPlan, place_of
from mercer.estimators.by_loss.settings import LossSettings
from mercer.estimators.common.state import (
    DATA,
    KERNEL,
    ORDER,
    REPORT,
    SEEN,
    TUNING,
    Classes,
    Path,
    Saved,
    calibration,
    calibration_of,
    check_codes,
    sample_of,
)
from mercer.files.fields import Array, Field, Fields, Rows
from mercer.files.kinds import number, one_of, whole
from mercer.functions.basis import Centres
from mercer.solvers.registry import LOSS_SOLVERS

if TYPE_CHECKING:
    from mercer.estimators.by_loss.kernel_classifier import KernelClassifier
    from mercer.estimators.by_loss.kernel_regressor import KernelRegressor

COMMON: Fields = {
    "seen": SEEN,
    "rows": Rows(at="function.centres"),
    "kernel": Field(KERNEL, at="plan.kernel"),
    "where": Field(one_of(*LOSS_SOLVERS), at="plan.solver"),
    "alpha": Field(number(above=0)),
    "objective": Field(number()),
    "report": Field(REPORT),
    "path": Path(("loo", "gcv", "folds")),
    "tuning": TUNING,
    "coef": Array("m c", at="function.coef"),
    "intercept": Array("c"),
    **DATA,
    "order": ORDER,
}
"""What both have; c is the number of functions."""


def _fit(settings: LossSettings, found: Any) -> LossFit:
    seen, solver = found.seen, found.where
    if seen.n_targets != 1:
        raise ModelFileError(f"seen.n_targets is {seen.n_targets}, expected 1")
    path = None if found.path is None else replace(found.path, measure=settings.measure)
    place = place_of(settings, solver, seen, settings.memory_budget)
    alpha, report = float(found.alpha), found.report
    plan = LossPlan(settings, found.kernel, alpha, solver, report.reason, place)
    function, objective = Centres(found.kernel, found.rows).sum(found.coef), float(found.objective)
    sample = sample_of(found, plan.keeps_rows)
    fit = LossFit(plan, seen, function, found.intercept, alpha, objective, report, path, sample, order=found.order)
    return replace(fit, tuning=found.tuning)


def _classifier(model: KernelClassifier, found: Any) -> LossFit:
    fit = _fit(LossSettings.of_classifier(model.get_params(deep=False)), found)
    known = calibration_of(found.slope, found.shift)
    fit = replace(fit, plan=replace(fit.plan, classes=found.classes), calibration=Later(known))
    if fit.sample is not None:
        check_codes(fit.sample.targets, len(found.classes))
    elif known is None and fit.plan.calibrates:
        raise ModelFileError("there are neither training rows nor a calibration")
    return fit


def _regressor(model: KernelRegressor, found: Any) -> LossFit:
    settings = LossSettings.of_regressor(model.get_params(deep=False))
    if found.coef.shape[1] != len(settings.losses):
        raise ModelFileError(f"there are {found.coef.shape[1]} functions, expected {len(settings.losses)}")
    fit = _fit(settings, found)
    return replace(fit, plan=replace(fit.plan, unit=found.unit), crossings=found.crossings)


CLASSIFIER = Saved(
    {"classes": Classes(at="plan.classes"), **COMMON, **calibration("calibration.value", "slope", "shift")}, _classifier
)
REGRESSOR = Saved(
    {**COMMON, "crossings": Field(whole()), "unit": Field(number(above=0), at="plan.unit", lacking=1.0)}, _regressor
)
