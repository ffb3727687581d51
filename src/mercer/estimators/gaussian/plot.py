"""The picture of a fitted Gaussian process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.estimators.gaussian.fit import ProcessFit
from mercer.estimators.gaussian.learned import feature_names, relevances
from mercer.plots import predicted_against_actual
from mercer.plots.gaussian_process import feature_relevance, process_1d
from mercer.processes.joint import joint_samples


def process_plot(
    fit: ProcessFit, given: tuple[Any, Any] | None, predict: Callable[[Any], Any], *, n_samples: int, ax: Any = None
) -> Any:
    """The process itself for one feature; else predictions at rows and targets that are `given`, or the relevance of
    features.

    `predict` gives predictions at the caller's rows.
    """
    if not fit.seen.one_target:
        raise InputError(f"plot() draws one target, but the model has {fit.seen.n_targets}.")
    data = fit.posterior.data
    if data.n_features == 1:
        X, y = (data.X.values.cpu().numpy(), data.Y.cpu().numpy()) if given is None else given
        return _curve(fit, np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64), ax, n_samples)
    if given is not None:
        X, y = given
        return predicted_against_actual(np.asarray(y), np.asarray(predict(X)), title="Predictions", ax=ax)
    relevance = relevances(fit)
    if relevance is None:
        raise InputError("plot() draws the relevance of features from a length scale for each: give X and y instead.")
    return feature_relevance(relevance, feature_names(fit), ax=ax)


def _curve(fit: ProcessFit, X: np.ndarray, y: np.ndarray, ax: Any, n_samples: int) -> Any:
    shown = X.reshape(-1)
    low, high = shown.min(), shown.max()
    margin = 0.1 * (high - low) or 1.0
    grid = np.linspace(low - margin, high + margin, 400).reshape(-1, 1)
    names, samples = fit.posterior.data.X.names, None
    rows = Points(torch.from_numpy(grid), names)
    if n_samples > 0:
        mean, covariance, _ = fit.for_samples(rows, latent=True)
        samples = joint_samples(mean, covariance, n_samples, fit.plan.settings.seed)[:, 0].T.cpu().numpy()
    band = (values.cpu().numpy() for values in fit.mean_and_std(rows, latent=False))
    feature = "x" if names is None else str(names[0])
    return process_1d(shown, y.reshape(-1), grid, *band, samples=samples, feature=feature, ax=ax)
