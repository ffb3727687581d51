"""What the model files of both Gaussian processes share; everything read back is checked before use."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import ModelFileError
from mercer.core.results import SolverReport
from mercer.data.given import ByName
from mercer.data.sample import Seen
from mercer.estimators.common.state import (
    POINTS,
    REPORT,
    SEEN,
    checked_params,
    float_array,
    plain_names,
    plain_objects,
    plain_seen,
    read_points,
    read_seen,
    remember_features,
)
from mercer.estimators.gaussian.learned import AnyFit
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
    optional,
    whole,
)
from mercer.kernels import Kernel, to_dict
from mercer.kernels.serialize import from_dict_at
from mercer.processes import Hyperparameters, Maximum
from mercer.processes.start import Scales

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

SMALLEST = 1e-300
"""Of what is divided by."""


@dataclass(frozen=True, eq=False)
class Learned:
    """What was read."""

    seen: Seen
    X: Points
    kernel: Kernel
    hyper: Hyperparameters
    scales: Scales
    optimum: Maximum | None
    report: SolverReport
    likelihood: float


def learned_state(model: Any, fit: AnyFit) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the files of both processes have."""
    hyper, posterior, optimum = fit.plan.hyper, fit.posterior, fit.optimum
    meta = {
        "params": checked_params(model),
        "kernel": to_dict(posterior.kernel),
        "start_kernel": to_dict(hyper.kernel),
        "start_noise": hyper.noise,
        "learn_noise": hyper.learn_noise,
        "tied": sorted(hyper.tied),
        "report": asdict(posterior.report),
        "likelihood": fit.likelihood,
        "seen": plain_seen(fit.seen),
        "names": plain_names(model),
        "objects": plain_objects(posterior.data.X),
        "optimum": _plain_optimum(optimum),
    }
    arrays: dict[str, Any] = {
        "targets": posterior.data.Y,
        "weights": posterior.weights,
        "start_bounds": torch.from_numpy(hyper.bounds),
    }
    if posterior.data.X.is_tensor:
        arrays["X"] = posterior.data.X.values
    if fit.plan.scales.X is not None:
        arrays["X_scale"] = torch.from_numpy(fit.plan.scales.X)
    if optimum is not None:
        arrays["theta"] = torch.from_numpy(optimum.theta)
    return meta, arrays


def read_learned(model: Any, meta: dict[str, Any], arrays: dict[str, Tensor], y_scale: float) -> Learned:
    """The same from a checked file; the model remembers the features, and arrays that are used are taken out."""
    seen, X = read_seen(meta["seen"]), read_points(meta, arrays)
    kept_some = "posterior_count" in arrays  # the others were read in parts, and stand in sums
    if len(X) > seen.n_rows or (len(X) < seen.n_rows and not kept_some):
        raise ModelFileError(f"there are {len(X)} points but {seen.n_rows} rows")
    kernel = from_dict_at(meta["kernel"], X)
    d = X.values.shape[1] if X.is_tensor else None
    remember_features(model, d, meta["names"])
    scales = Scales(_read_spread(arrays, d), y_scale)
    hyper = _read_hyperparameters(meta, arrays, X, model.priors)
    optimum = _read_optimum(meta["optimum"], arrays, len(hyper))
    report, likelihood = SolverReport(**meta["report"]), float(meta["likelihood"])
    return Learned(seen, X, kernel, hyper, scales, optimum, report, likelihood)


def _plain_optimum(optimum: Maximum | None) -> dict[str, Any] | None:
    """The account of the learning."""
    if optimum is None:
        return None
    return {name: getattr(optimum, name) for name in OPTIMUM.fields} | {"history": list(optimum.history)}


def _read_spread(arrays: dict[str, Tensor], n_features: int | None) -> np.ndarray | None:
    """The deviations of the columns."""
    return float_array(arrays, "X_scale", (n_features,), least=SMALLEST).numpy() if "X_scale" in arrays else None


def _read_hyperparameters(
    meta: dict[str, Any], arrays: dict[str, Tensor], X: Points, priors: ByName
) -> Hyperparameters:
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


def _read_optimum(values: dict[str, Any] | None, arrays: dict[str, Tensor], size: int) -> Maximum | None:
    """The account of the learning."""
    if values is None:
        return None
    return Maximum(
        theta=float_array(arrays, "theta", (size,)).numpy(), **values | {"history": tuple(values["history"])}
    )
