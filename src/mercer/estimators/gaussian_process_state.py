"""GaussianProcessRegressor as plain data and arrays, for model files; everything read back is checked before use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError, ModelFileError
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
from mercer.kernels import from_dict, to_dict
from mercer.processes import Hyperparameters, Maximum, Observations
from mercer.processes.means import ConstantMean, FittedMean, LinearMean, Mean, ZeroMean, as_mean
from mercer.processes.methods import METHODS
from mercer.processes.priors import PRIORS
from mercer.processes.start import Scales

if TYPE_CHECKING:
    from mercer.estimators.gaussian_process import GaussianProcessRegressor

APART = ("bounds", "priors")
"""Parameters that are dictionaries, written as lists of pairs."""
OPTIMUM = {
    "value": float,
    "start_value": float,
    "evaluations": int,
    "converged": bool,
    "message": str,
    "n_rows": int,
    "n_copies": int,
}


def process_state(model: GaussianProcessRegressor) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain data and arrays from which `process_from_state` makes an equal model."""
    posterior, hyper = model._posterior, model._hyperparameters
    data, mean = posterior.data, posterior.mean_function
    params = plain_params(model)
    meta = {
        "params": {name: value for name, value in params.items() if name not in APART},
        "bounds": _plain_bounds(model.bounds),
        "priors": _plain_priors(model.priors),
        "kernel": to_dict(model.kernel_),
        "start_kernel": to_dict(hyper.kernel),
        "start_noise": hyper.noise,
        "learn_noise": hyper.learn_noise,
        "tied": sorted(hyper.tied),
        "noise": posterior.noise,
        "method": model._method.name,
        "mean": _plain_mean(mean.mean),
        "mean_reason": model._mean_reason,
        "report": asdict(posterior.report),
        "likelihood": model.log_marginal_likelihood_,
        "seen": plain_seen(model._seen),
        "y_scale": model._scales.y,
        "names": plain_names(model),
        "objects": plain_objects(data.X),
        "optimum": None if model.optimum_ is None else _plain_optimum(model.optimum_),
    }
    arrays: dict[str, Any] = {
        "targets": data.Y,
        "weights": posterior.weights,
        "mean_coef": mean.coef,
        "target_scale": model._target_scale,
        "start_bounds": torch.from_numpy(hyper.bounds),
    }
    if data.X.is_tensor:
        arrays["X"] = data.X.values
    if data.noise is not None:
        arrays["row_noise"] = data.noise
    if model._scales.X is not None:
        arrays["X_scale"] = torch.from_numpy(model._scales.X)
    if isinstance(mean.mean, LinearMean):
        arrays |= {"mean_centre": mean.mean.centre, "mean_scale": mean.mean.scale}
    if model.optimum_ is not None:
        arrays["theta"] = torch.from_numpy(model.optimum_.theta)
    return meta, arrays | {f"posterior_{name}": value for name, value in posterior.extra_arrays().items()}


def process_from_state(
    cls: type[GaussianProcessRegressor], meta: dict[str, Any], arrays: dict[str, Tensor]
) -> GaussianProcessRegressor:
    """The model that `process_state` described."""
    arrays = dict(arrays)
    model = cls(**read_params(meta))
    model.bounds, model.priors = _bounds(meta["bounds"]), _priors(meta["priors"])
    seen = model._seen = read_seen(typed(meta, "seen", dict))
    n, t = seen.n_rows, seen.n_targets
    model._seed = 0
    kernel, names = from_dict(typed(meta, "kernel", dict)), read_names(meta)
    X = read_points(meta, arrays, names)
    if len(X) != n:
        raise ModelFileError(f"there are {len(X)} rows but {n} targets")
    row_noise = float_array(arrays, "row_noise", (n,)) if "row_noise" in arrays else None
    data = Observations(X, float_array(arrays, "targets", (n, t)), row_noise, kernel.domain == "matrix")
    d = X.values.shape[1] if X.is_tensor else None
    model._target_scale = float_array(arrays, "target_scale", (t,))
    spread = float_array(arrays, "X_scale", (d,)).numpy() if "X_scale" in arrays else None
    model._scales = Scales(spread, _positive(meta, "y_scale"))
    model._hyperparameters = _hyperparameters(meta, arrays, model.priors)
    model.optimum_ = _optimum(meta["optimum"], arrays, len(model._hyperparameters))
    model._mean_reason = typed(meta, "mean_reason", str)
    name = typed(meta, "method", str)
    if name not in METHODS:
        raise ModelFileError(f"the entry 'method' is {name!r:.60}")
    remember_features(model, d, names)
    model._method = model._make_method(name)
    mean = FittedMean(_mean(meta["mean"], data, arrays), float_array(arrays, "mean_coef", (None, t)))
    weights = float_array(arrays, "weights", (None, t))
    extra = {key.removeprefix("posterior_"): arrays.pop(key) for key in list(arrays) if key.startswith("posterior_")}
    report = read_report(typed(meta, "report", dict))
    noise = meta["noise"]
    if not isinstance(noise, int | float) or not noise >= 0:
        raise ModelFileError(f"the entry 'noise' is {noise!r:.60}")
    likelihood = float(typed(meta, "likelihood", (int, float)))
    posterior = model._method.restored(kernel, float(noise), data, mean, weights, report, extra)
    nothing_left(arrays, "GaussianProcessRegressor")
    model._restore(posterior, likelihood)
    return model


# Out


def _plain_bounds(bounds: Any) -> list[Any] | None:
    if bounds is None:
        return None
    return [[name, value if isinstance(value, str) else np.asarray(value).tolist()] for name, value in bounds.items()]


def _plain_priors(priors: Any) -> list[Any] | None:
    if priors is None:
        return None
    for name, prior in priors.items():
        if PRIORS.get(type(prior).__name__) is not type(prior) or not is_dataclass(prior):
            raise InputError(f"priors[{name!r}] is a Python function, which does not fit a model file. Use pickle.")
    return [[name, type(prior).__name__, asdict(prior)] for name, prior in priors.items()]


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


def _plain_optimum(optimum: Maximum) -> dict[str, Any]:
    return {name: getattr(optimum, name) for name in OPTIMUM} | {"history": list(optimum.history)}


# In


def _bounds(entries: Any) -> dict[str, Any] | None:
    if entries is None:
        return None
    return {str(name): value if isinstance(value, str) else np.asarray(value, float) for name, value in entries}


def _priors(entries: Any) -> dict[str, Any] | None:
    if entries is None:
        return None
    priors = {}
    for name, kind, params in entries:
        if kind not in PRIORS or not isinstance(params, dict):
            raise ModelFileError(f"there is no prior {kind!r:.60}")
        priors[str(name)] = PRIORS[kind](**params)
    return priors


def _hyperparameters(meta: dict[str, Any], arrays: dict[str, Tensor], priors: Any) -> Hyperparameters:
    kernel, learn = from_dict(typed(meta, "start_kernel", dict)), typed(meta, "learn_noise", bool)
    noise = float(typed(meta, "start_noise", (int, float)))
    tied = frozenset(map(str, typed(meta, "tied", list)))
    plain = Hyperparameters.of(kernel, noise, learn, priors=priors, tied=tied)
    bounds = float_array(arrays, "start_bounds", (len(plain), 2)).numpy()
    return Hyperparameters(kernel, noise, learn, bounds, plain.priors, tied)


def _optimum(values: Any, arrays: dict[str, Tensor], size: int) -> Maximum | None:
    if values is None:
        return None
    if not isinstance(values, Mapping):
        raise ModelFileError(f"the entry 'optimum' is {values!r:.60}")
    parts = {name: kind(values[name]) for name, kind in OPTIMUM.items()}
    theta = float_array(arrays, "theta", (size,)).numpy()
    return Maximum(theta=theta, history=tuple(float(v) for v in values["history"]), **parts)


def _mean(mean: Any, data: Observations, arrays: dict[str, Tensor]) -> Mean:
    if mean == "linear":
        d = data.X.values.shape[1]
        return LinearMean(float_array(arrays, "mean_centre", (d,)), float_array(arrays, "mean_scale", (d,)))
    if mean not in ("zero", "constant") and (isinstance(mean, bool) or not isinstance(mean, int | float)):
        raise ModelFileError(f"the entry 'mean' is {mean!r:.60}")
    return as_mean(mean, data.X)


def _positive(meta: dict[str, Any], name: str) -> float:
    value = meta[name]
    if not isinstance(value, int | float) or not value > 0:
        raise ModelFileError(f"the entry {name!r} is {value!r:.60}")
    return float(value)
