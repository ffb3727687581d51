"""GaussianProcessClassifier as plain data and arrays, for model files; everything read back is checked before use."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from mercer.core.errors import ModelFileError
from mercer.core.results import SolverReport
from mercer.estimators.common.state import (
    CLASSES,
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
    read_points,
    read_seen,
    remember_features,
)
from mercer.estimators.gaussian_process_state import (
    LEARNED,
    plain_optimum,
    read_hyperparameters,
    read_optimum,
    read_spread,
)
from mercer.files.kinds import Table
from mercer.kernels import to_dict
from mercer.kernels.serialize import from_dict_at
from mercer.processes import Observations
from mercer.processes.laplace_posterior import LaplacePosterior
from mercer.processes.start import Scales

if TYPE_CHECKING:
    from mercer.estimators.gaussian_process_classifier import GaussianProcessClassifier

LABELS = Table(LEARNED | CLASSES)


def labels_state(model: GaussianProcessClassifier) -> tuple[dict[str, Any], dict[str, Any]]:
    """Plain data and arrays from which `labels_from_state` makes an equal model."""
    posterior, hyper = model._posterior, model._hyperparameters
    meta = plain_classes(model.classes_) | {
        "params": checked_params(model),
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
        "optimum": plain_optimum(model.optimum_),
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
    LABELS.check(meta, "meta")
    arrays = dict(arrays)
    model = read_params(cls, meta["params"])
    model.classes_ = read_classes(meta)
    seen = model._seen = read_seen(meta["seen"])
    model._seed = 0
    X = read_points(meta, arrays)
    n, classes = seen.n_rows, len(model.classes_)
    if len(X) != n:
        raise ModelFileError(f"there are {len(X)} points but {n} rows")
    kernel = from_dict_at(meta["kernel"], X)
    codes = float_array(arrays, "targets", (n, 1))
    check_codes(codes, classes)
    d = X.values.shape[1] if X.is_tensor else None
    remember_features(model, d, meta["names"])
    model._scales = Scales(read_spread(arrays, d), 1.0)
    model._hyperparameters = read_hyperparameters(meta, arrays, X, model.priors)
    model.optimum_ = read_optimum(meta["optimum"], arrays, len(model._hyperparameters))
    weights = float_array(arrays, "weights", (n, 1 if classes == 2 else classes))
    nothing_left(arrays, "GaussianProcessClassifier")
    place = model._place()
    data = Observations(X, codes, square=kernel.domain == "matrix").to(place.device)
    report = SolverReport(**meta["report"])
    posterior = LaplacePosterior(kernel, data, classes, weights.to(place.device), place, report)
    model._restore(posterior, float(meta["likelihood"]))
    return model
