"""The picture of a fitted Gaussian process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.estimators.gaussian_process_report import feature_names, relevances
from mercer.plots import predicted_against_actual
from mercer.plots.gaussian_process import feature_relevance, process_1d
from mercer.processes.joint import joint_samples

if TYPE_CHECKING:
    from mercer.estimators.gaussian_process import GaussianProcessRegressor


def process_plot(model: GaussianProcessRegressor, X: Any, y: Any, ax: Any, n_samples: int) -> Any:
    """The process itself for one feature; else predictions at X, y where given, or the relevance of features."""
    if (X is None) != (y is None):
        raise InputError("plot(X, y): give both, or neither for the training rows.")
    if not model._seen.one_target:
        raise InputError(f"plot() draws one target, but the model has {model._seen.n_targets}.")
    data = model._posterior.data
    if data.X.is_tensor and not data.square and data.X.values.shape[1] == 1:
        if X is None:
            X, y = data.X.values.cpu().numpy(), data.Y.cpu().numpy()
        return _curve(model, np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64), ax, n_samples)
    if X is not None:
        return predicted_against_actual(np.asarray(y), np.asarray(model.predict(X)), title="Predictions", ax=ax)
    relevance = relevances(model)
    if relevance is None:
        raise InputError("plot() draws the relevance of features from a length scale for each: give X and y instead.")
    return feature_relevance(relevance, feature_names(model), ax=ax)


def _curve(model: GaussianProcessRegressor, X: np.ndarray, y: np.ndarray, ax: Any, n_samples: int) -> Any:
    shown = X.reshape(-1)
    low, high = shown.min(), shown.max()
    margin = 0.1 * (high - low) or 1.0
    grid = np.linspace(low - margin, high + margin, 400).reshape(-1, 1)
    rows = Points(torch.from_numpy(grid), model._posterior.data.X.names)
    mean, std = model._scaled(model._posterior.mean(rows)), model._std(rows, latent=False)
    samples = None
    if n_samples > 0:
        drawn = joint_samples(model._posterior.mean(rows), model._posterior.covariance(rows), n_samples, model._seed)
        samples = drawn[:, 0].T.cpu().numpy()
    names = getattr(model, "feature_names_in_", None)
    feature = "x" if names is None else str(names[0])
    band = (values.cpu().numpy() for values in (mean, std))
    return process_1d(shown, y.reshape(-1), grid, *band, samples=samples, feature=feature, ax=ax)
