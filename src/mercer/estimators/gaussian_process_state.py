"""GaussianProcessRegressor as plain data and arrays, for model files; everything read back is checked before use."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError, ModelFileError
from mercer.core.results import SolverReport
from mercer.estimators.common.state import (
    POINTS,
    REPORT,
    SEEN,
    checked_params,
    float_array,
    nothing_left,
    plain_names,
    plain_objects,
    plain_seen,
    read_params,
    read_points,
    read_seen,
    remember_features,
)
from mercer.files.kinds import (
    ANY_TABLE,
    FLAG,
    TEXT,
    TEXTS,
    Either,
    Plain,
    Several,
    Table,
    number,
    one_of,
    optional,
    whole,
)
from mercer.kernels import to_dict
from mercer.kernels.pair import vectors
from mercer.kernels.serialize import from_dict_at
from mercer.processes import Hyperparameters, Maximum, Observations
from mercer.processes.means import ConstantMean, FittedMean, LinearMean, Mean, ZeroMean, as_mean
from mercer.processes.methods import METHODS
from mercer.processes.start import Scales

if TYPE_CHECKING:
    from mercer.estimators.gaussian_process import GaussianProcessRegressor

OPTIMUM = Table(
    {
        "value": number(finite=False),
        "start_value": number(finite=False),
        "history": Several(number(finite=False)),
        "evaluations": whole(),
        "converged": FLAG,
        "message": TEXT,
        "n_rows": whole(1),
        "n_copies": whole(),
    }
)
"""A `Maximum` but for theta, which is an array."""

NOISE = Either((Plain("0", lambda value: type(value) in (int, float) and value == 0), number(1e-300)))
"""Zero, or a number that float64 can divide by."""

LEARNED = POINTS | {
    "params": ANY_TABLE,
    "kernel": ANY_TABLE,
    "start_kernel": ANY_TABLE,
    "start_noise": NOISE,
    "learn_noise": FLAG,
    "tied": TEXTS,
    "report": REPORT,
    "likelihood": number(finite=False),
    "seen": SEEN,
    "optimum": optional(OPTIMUM),
}
"""What both processes have."""

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


SMALLEST = 1e-300
"""Of what is divided by."""


def process_state(model: GaussianProcessRegressor) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain data and arrays from which `process_from_state` makes an equal model."""
    posterior, hyper = model._posterior, model._hyperparameters
    data, mean = posterior.data, posterior.mean_function
    meta = {
        "params": checked_params(model),
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
        "optimum": plain_optimum(model.optimum_),
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
    PROCESS.check(meta, "meta")
    arrays = dict(arrays)
    model = read_params(cls, meta["params"])
    seen = model._seen = read_seen(meta["seen"])
    n, t = seen.n_rows, seen.n_targets
    model._seed = 0
    X = read_points(meta, arrays)
    if len(X) != n:
        raise ModelFileError(f"there are {len(X)} points but {n} rows")
    kernel = from_dict_at(meta["kernel"], X)
    row_noise = float_array(arrays, "row_noise", (n,), least=0.0) if "row_noise" in arrays else None
    data = Observations(X, float_array(arrays, "targets", (n, t)), row_noise, kernel.domain == "matrix")
    d = X.values.shape[1] if X.is_tensor else None
    remember_features(model, d, meta["names"])
    model._target_scale = float_array(arrays, "target_scale", (t,), least=SMALLEST)
    model._scales = Scales(read_spread(arrays, d), float(meta["y_scale"]))
    model._hyperparameters = read_hyperparameters(meta, arrays, X, model.priors)
    model.optimum_ = read_optimum(meta["optimum"], arrays, len(model._hyperparameters))
    model._mean_reason = meta["mean_reason"]
    model._method = model._make_method(meta["method"])
    mean = _fitted_mean(meta["mean"], data, arrays)
    weights = float_array(arrays, "weights", (None, t))
    extra = {key.removeprefix("posterior_"): arrays.pop(key) for key in list(arrays) if key.startswith("posterior_")}
    report, noise = SolverReport(**meta["report"]), float(meta["noise"])
    posterior = model._method.restored(kernel, noise, data, mean, weights, report, extra)
    nothing_left(arrays, "GaussianProcessRegressor")
    model._restore(posterior, float(meta["likelihood"]))
    return model


# Out


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


def plain_optimum(optimum: Maximum | None) -> dict[str, Any] | None:
    """The account of the learning."""
    if optimum is None:
        return None
    return {name: getattr(optimum, name) for name in OPTIMUM.fields} | {"history": list(optimum.history)}


# In


def read_spread(arrays: dict[str, Tensor], n_features: int | None) -> np.ndarray | None:
    """The deviations of the columns."""
    return float_array(arrays, "X_scale", (n_features,), least=SMALLEST).numpy() if "X_scale" in arrays else None


def read_hyperparameters(meta: dict[str, Any], arrays: dict[str, Tensor], X: Points, priors: Any) -> Hyperparameters:
    """The kernel and the noise that learning began with, and the box they could move in."""
    kernel, learn, tied = from_dict_at(meta["start_kernel"], X), meta["learn_noise"], frozenset(meta["tied"])
    if not tied <= kernel.tunable().keys():
        raise ModelFileError(f"tied is {sorted(tied)!r:.60}, expected parameters of the kernel")
    noise = float(meta["start_noise"])
    if learn and noise == 0.0:
        raise ModelFileError("start_noise is 0, expected a number > 0 where the noise is learned")
    plain = Hyperparameters.of(kernel, noise, learn, priors=priors, tied=tied)
    bounds = float_array(arrays, "start_bounds", (len(plain), 2)).numpy()
    if (bounds[:, 0] > bounds[:, 1]).any():
        raise ModelFileError("array 'start_bounds' has ranges that end before they begin")
    return Hyperparameters(kernel, noise, learn, bounds, plain.priors, tied)


def read_optimum(values: dict[str, Any] | None, arrays: dict[str, Tensor], size: int) -> Maximum | None:
    """The account of the learning."""
    if values is None:
        return None
    return Maximum(
        theta=float_array(arrays, "theta", (size,)).numpy(), **values | {"history": tuple(values["history"])}
    )


def _fitted_mean(mean: Any, data: Observations, arrays: dict[str, Tensor]) -> FittedMean:
    made = _mean(mean, data, arrays)
    basis = made.basis(data.X.take(slice(0, 1)))
    p = 0 if basis is None else basis.shape[1]
    return FittedMean(made, float_array(arrays, "mean_coef", (p, data.n_targets)))


def _mean(mean: Any, data: Observations, arrays: dict[str, Tensor]) -> Mean:
    if mean == "linear":
        d = vectors(data.X).shape[1]
        return LinearMean(float_array(arrays, "mean_centre", (d,)), float_array(arrays, "mean_scale", (d,), least=0.0))
    return as_mean(mean, data.X)
