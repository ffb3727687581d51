"""GaussianProcessClassifier as plain data and arrays, for model files; everything read back is checked before use."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError, ModelFileError
from mercer.estimators.gaussian_process_state import (
    APART,
    _bounds,
    _hyperparameters,
    _optimum,
    _plain_bounds,
    _plain_optimum,
    _plain_priors,
    _priors,
)
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
from mercer.processes import Observations
from mercer.processes.laplace_posterior import LaplacePosterior
from mercer.processes.start import Scales

if TYPE_CHECKING:
    from mercer.estimators.gaussian_process_classifier import GaussianProcessClassifier

KINDS: dict[str, Any] = {"b": bool, "i": np.int64, "u": np.uint64, "f": np.float64, "U": None, "O": object}
"""Types of classes by their letter."""


def labels_state(model: GaussianProcessClassifier) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain data and arrays from which `labels_from_state` makes an equal model."""
    posterior, hyper, classes = model._posterior, model._hyperparameters, model.classes_
    if classes.dtype.kind not in KINDS or not all(isinstance(c, str | int | float) for c in classes.tolist()):
        raise InputError(f"classes of type {classes.dtype} do not fit a model file. Use pickle instead.")
    meta = {
        "params": {name: value for name, value in plain_params(model).items() if name not in APART},
        "bounds": _plain_bounds(model.bounds),
        "priors": _plain_priors(model.priors),
        "classes": classes.tolist(),
        "class_kind": classes.dtype.kind,
        "kernel": to_dict(model.kernel_),
        "start_kernel": to_dict(hyper.kernel),
        "start_noise": hyper.noise,
        "learn_noise": hyper.learn_noise,
        "tied": sorted(hyper.tied),
        "report": asdict(posterior.report),
        "likelihood": model.log_marginal_likelihood_,
        "seen": plain_seen(model._seen),
        "names": plain_names(model),
        "objects": plain_objects(posterior.data.X),
        "optimum": None if model.optimum_ is None else _plain_optimum(model.optimum_),
    }
    arrays: dict[str, Any] = {
        "targets": posterior.data.Y,
        "weights": posterior.weights,
        "start_bounds": torch.from_numpy(hyper.bounds),
    }
    if posterior.data.X.is_tensor:
        arrays["X"] = posterior.data.X.values
    if model._scales.X is not None:
        arrays["X_scale"] = torch.from_numpy(model._scales.X)
    if model.optimum_ is not None:
        arrays["theta"] = torch.from_numpy(model.optimum_.theta)
    return meta, arrays


def labels_from_state(
    cls: type[GaussianProcessClassifier], meta: dict[str, Any], arrays: dict[str, Tensor]
) -> GaussianProcessClassifier:
    """The model that `labels_state` described."""
    arrays = dict(arrays)
    model = cls(**read_params(meta))
    model.bounds, model.priors = _bounds(meta["bounds"]), _priors(meta["priors"])
    model.classes_ = _classes(meta)
    seen = model._seen = read_seen(typed(meta, "seen", dict))
    model._seed = 0
    kernel, names = from_dict(typed(meta, "kernel", dict)), read_names(meta)
    X = read_points(meta, arrays, names)
    n, classes = seen.n_rows, len(model.classes_)
    if len(X) != n:
        raise ModelFileError(f"there are {len(X)} rows but {n} labels")
    codes = float_array(arrays, "targets", (n, 1))
    if bool((codes != codes.floor()).any()) or not 0 <= float(codes.min()) <= float(codes.max()) < classes:
        raise ModelFileError("array 'targets' does not hold codes of classes")
    d = X.values.shape[1] if X.is_tensor else None
    remember_features(model, d, names)
    spread = float_array(arrays, "X_scale", (d,)).numpy() if "X_scale" in arrays else None
    model._scales = Scales(spread, 1.0)
    model._hyperparameters = _hyperparameters(meta, arrays, model.priors)
    model.optimum_ = _optimum(meta["optimum"], arrays, len(model._hyperparameters))
    weights = float_array(arrays, "weights", (n, 1 if classes == 2 else classes))
    report, likelihood = read_report(typed(meta, "report", dict)), float(typed(meta, "likelihood", (int, float)))
    nothing_left(arrays, "GaussianProcessClassifier")
    place = model._place()
    data = Observations(X, codes, square=kernel.domain == "matrix").to(place.device)
    model._restore(LaplacePosterior(kernel, data, classes, weights.to(place.device), place, report), likelihood)
    return model


def _classes(meta: dict[str, Any]) -> np.ndarray:
    values, kind = typed(meta, "classes", list), typed(meta, "class_kind", str)
    if len(values) < 2 or kind not in KINDS or not all(isinstance(v, str | int | float) for v in values):
        raise ModelFileError(f"the entry 'classes' is {values!r:.60}")
    return np.asarray(values, dtype=KINDS[kind])
