"""GaussianProcessRegressor as plain data and arrays, for model files; everything read back is checked before use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from mercer.core.errors import InputError, ModelFileError
from mercer.estimators.common.state import float_array, nothing_left, read_order, read_params
from mercer.estimators.gaussian.fit import ProcessFit
from mercer.estimators.gaussian.learned_state import LEARNED, NOISE, SMALLEST, learned_state, read_learned
from mercer.estimators.gaussian.plan import ProcessPlan, method_of, place_of
from mercer.estimators.gaussian.settings import ProcessSettings
from mercer.files.kinds import TEXT, Either, Table, number, one_of
from mercer.kernels.pair import vectors
from mercer.processes import Observations
from mercer.processes.means import ConstantMean, FittedMean, LinearMean, Mean, ZeroMean, as_mean
from mercer.processes.methods import METHODS

if TYPE_CHECKING:
    from mercer.estimators.gaussian.regressor import GaussianProcessRegressor

PROCESS = Table(
    LEARNED
    | {
        "noise": NOISE,
        "method": one_of(*METHODS),
        "mean": Either((one_of("zero", "constant", "linear"), number())),
        "mean_reason": TEXT,
        "y_scale": number(above=0),
    }
)


def process_state(model: GaussianProcessRegressor, fit: ProcessFit) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain data and arrays from which `process_from_state` makes an equal model."""
    plan, posterior = fit.plan, fit.posterior
    mean = posterior.mean_function
    meta, arrays = learned_state(model, fit)
    meta |= {
        "noise": posterior.noise,
        "method": plan.method.name,
        "mean": _plain_mean(mean.mean),
        "mean_reason": fit.mean_reason,
        "y_scale": plan.scales.y,
    }
    arrays |= {"mean_coef": mean.coef, "target_scale": plan.target_scale}
    if posterior.data.noise is not None:
        arrays["row_noise"] = posterior.data.noise
    if fit.order is not None:
        arrays["order"] = fit.order
    if isinstance(mean.mean, LinearMean):
        arrays |= {"mean_centre": mean.mean.centre, "mean_scale": mean.mean.scale}
    return meta, arrays | {f"posterior_{name}": value for name, value in posterior.extra_arrays().items()}


def process_from_state(
    cls: type[GaussianProcessRegressor], meta: dict[str, Any], arrays: dict[str, Tensor]
) -> tuple[GaussianProcessRegressor, ProcessFit]:
    """The model that `process_state` described, and its fit."""
    PROCESS.check(meta, "meta")
    arrays = dict(arrays)
    model = read_params(cls, meta["params"])
    settings = ProcessSettings.of(model.get_params(deep=False))
    read = read_learned(model, meta, arrays, float(meta["y_scale"]))
    seen, kernel, budget = read.seen, read.kernel, settings.memory_budget
    n, t = len(read.X), seen.n_targets
    row_noise = float_array(arrays, "row_noise", (n,), least=0.0) if "row_noise" in arrays else None
    data = Observations(read.X, float_array(arrays, "targets", (n, t)), row_noise, kernel.domain == "matrix")
    target_scale = float_array(arrays, "target_scale", (t,), least=SMALLEST)
    mean = _fitted_mean(meta["mean"], data, arrays)
    weights = float_array(arrays, "weights", (None, t))
    extra = {key.removeprefix("posterior_"): arrays.pop(key) for key in list(arrays) if key.startswith("posterior_")}
    method = method_of(settings, meta["method"], seen, budget)
    if meta["method"] == "sgpr" and not meta["noise"] > 0 and row_noise is None:
        raise ModelFileError("inducing points need noise > 0")
    posterior = method.restored(kernel, float(meta["noise"]), data, mean, weights, read.report, extra)
    order = read_order(arrays, n)
    nothing_left(arrays, "GaussianProcessRegressor")
    place, learned = place_of(settings, seen, budget), read.optimum is not None
    reason = read.report.reason
    plan = ProcessPlan(
        settings, read.hyper, read.scales, learned, place, method, reason, mean.mean, target_scale, taught=None
    )
    return model, ProcessFit(plan, seen, posterior, read.likelihood, read.optimum, meta["mean_reason"], order)


def _plain_mean(mean: Mean) -> str | float:
    """What was fitted, whatever the parameter is by now."""
    match mean:
        case ZeroMean():
            return "zero"
        case LinearMean():
            return "linear"
        case ConstantMean():
            return "constant" if mean.value is None else mean.value
    raise InputError("The mean is a Python function, which does not fit a model file. Use pickle.")


def _fitted_mean(mean: str | float, data: Observations, arrays: dict[str, Tensor]) -> FittedMean:
    made = _mean(mean, data, arrays)
    basis = made.basis(data.X.take(slice(0, 1)))
    p = 0 if basis is None else basis.shape[1]
    return FittedMean(made, float_array(arrays, "mean_coef", (p, data.n_targets)))


def _mean(mean: str | float, data: Observations, arrays: dict[str, Tensor]) -> Mean:
    if mean == "linear":
        d = vectors(data.X).shape[1]
        return LinearMean(float_array(arrays, "mean_centre", (d,)), float_array(arrays, "mean_scale", (d,), least=0.0))
    return as_mean(mean, data.X)
