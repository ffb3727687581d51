"""What is saved of GaussianProcessRegressor, and how a fit is made of it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mercer.core.errors import InputError, ModelFileError
from mercer.estimators.common.state import ORDER, Saved
from mercer.estimators.dials import SMALLEST_VARIANCE
from mercer.estimators.gaussian.fit import ProcessFit
from mercer.estimators.gaussian.learned_state import LEARNED, NOISE, learned
from mercer.estimators.gaussian.plan import ProcessPlan, method_of, place_of
from mercer.estimators.gaussian.settings import ProcessSettings
from mercer.files.fields import Array, Field, Fields, Group
from mercer.files.kinds import TEXT, Either, number, one_of
from mercer.processes import Observations
from mercer.processes.means import ConstantMean, FittedMean, LinearMean, Mean, ZeroMean, as_mean
from mercer.processes.methods import METHODS
from mercer.processes.posterior import Kept

if TYPE_CHECKING:
    from mercer.estimators.gaussian.regressor import GaussianProcessRegressor


def _plain_mean(fit: ProcessFit) -> str | float:
    """What was fitted, whatever the parameter is by now."""
    match fit.posterior.mean_function.mean:
        case ZeroMean():
            return "zero"
        case LinearMean():
            return "linear"
        case ConstantMean(value):
            return "constant" if value is None else value
    raise InputError("The mean is a Python function, which does not fit a model file. Use pickle.")


def _of_mean(name: str) -> Any:
    """An array of a linear mean."""
    return lambda fit: getattr(fit.posterior.mean_function.mean, name, None)


FIELDS: Fields = {
    **LEARNED,
    "noise": Field(NOISE, at="posterior.noise"),
    "method": Field(one_of(*METHODS), at="plan.method.name"),
    "mean": Field(Either((one_of("zero", "constant", "linear"), number())), at=_plain_mean),
    "mean_reason": Field(TEXT),
    "y_scale": Field(number(above=0), at="plan.scales.y"),
    "weights": Array("w t", at="posterior.weights"),
    "mean_coef": Array("b t", at="posterior.mean_function.coef"),
    "mean_centre": Array("d", at=_of_mean("centre"), may_lack=True),
    "mean_scale": Array("d", at=_of_mean("scale"), least=0.0, may_lack=True),
    "target_scale": Array("t", at="plan.target_scale", least=SMALLEST_VARIANCE),
    "row_noise": Array("m", at="posterior.data.noise", least=0.0, may_lack=True),
    "order": ORDER,
    "posterior": Group("posterior_", at=lambda fit: fit.posterior.extra_arrays()),
}


def _restored(model: GaussianProcessRegressor, found: Any) -> ProcessFit:
    settings = ProcessSettings.of(model.get_params(deep=False))
    read, seen, budget = learned(model, found, float(found.y_scale)), found.seen, settings.memory_budget
    data = Observations(found.rows, found.targets, found.row_noise, found.kernel.domain == "matrix")
    method = method_of(settings, found.method, seen, budget)
    if found.method == "sgpr" and not found.noise > 0 and found.row_noise is None:
        raise ModelFileError("inducing points need noise > 0")
    mean, noise, report = _mean(found, data), float(found.noise), found.report
    posterior = method.restored(Kept(found.kernel, noise, data, mean, found.weights, report, found.posterior))
    place, learns, scales = place_of(settings, seen, budget), read.optimum is not None, read.scales
    plan = ProcessPlan(
        settings, read.hyper, scales, learns, place, method, report.reason, mean.mean, found.target_scale, taught=None
    )
    return ProcessFit(plan, seen, posterior, read.likelihood, read.optimum, found.mean_reason, found.order)


PROCESS = Saved(FIELDS, _restored)


def _mean(found: Any, data: Observations) -> FittedMean:
    linear = (found.mean_centre, found.mean_scale)
    if any((array is not None) != (found.mean == "linear") for array in linear):
        raise ModelFileError("the arrays mean_centre and mean_scale go with a linear mean")
    made: Mean = LinearMean(*linear) if found.mean == "linear" else as_mean(found.mean, data.X)
    basis = made.basis(data.X.take(slice(0, 1)))
    size = 0 if basis is None else basis.shape[1]
    if len(found.mean_coef) != size:
        raise ModelFileError(f"array 'mean_coef' has {len(found.mean_coef)} rows, expected {size}")
    return FittedMean(made, found.mean_coef)
