"""The picture of a fitted Gaussian process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.data.given import Axes
from mercer.estimators.gaussian.fit import ProcessFit
from mercer.estimators.gaussian.learned import relevance_plot
from mercer.kernels.shown import kernel_text
from mercer.plots import components_1d, predicted_against_actual, surface
from mercer.plots.gaussian_process import process_1d
from mercer.plots.places import grid_over, line_over
from mercer.processes.components import terms_of
from mercer.processes.joint import joint_samples


def process_plot(
    fit: ProcessFit,
    given: tuple[Any, Any] | None,
    predict: Callable[[Any], Any],
    *,
    n_samples: int,
    ax: Axes | None = None,
) -> Any:
    """The process itself for one feature, maps for two, else the relevance of features.

    `given` are rows and targets to show: those of the training by default; for more features their predictions.

    `predict` gives predictions at the caller's rows.
    """
    if not fit.seen.one_target:
        raise InputError(f"plot() draws one target, but the model has {fit.seen.n_targets}.")
    data = fit.posterior.data
    if data.n_features == 1:
        X, y = (data.X.values.cpu().numpy(), data.Y.cpu().numpy()) if given is None else given
        return _curve(fit, np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64), ax, n_samples)
    if data.n_features == 2:
        X, y = (data.X.values.cpu().numpy(), fit.scaled(data.Y).cpu().numpy()) if given is None else given
        return _maps(fit, np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64), ax)
    if given is not None:
        X, y = given
        return predicted_against_actual(np.asarray(y), np.asarray(predict(X)), title="Predictions", ax=ax)
    return relevance_plot(fit, ax)


def components_plot(fit: ProcessFit, axes: Sequence[Axes] | None = None) -> Any:
    """The parts of a process of one feature."""
    data, terms = fit.posterior.data, terms_of(fit.posterior.kernel)
    if data.n_features != 1 or not fit.seen.one_target:
        raise InputError("plot_components() draws functions of one feature and one target; see predict_component.")
    places = data.X.values.cpu().numpy().reshape(-1).astype(np.float64)
    grid = line_over(places, 0.1)
    rows = Points(torch.from_numpy(grid.reshape(-1, 1)), data.X.names)
    parts = [tuple(v.cpu().numpy() for v in fit.component(rows, j)) for j in range(len(terms))]
    names = [kernel_text(term) for term in terms]
    feature = "x" if data.X.names is None else str(data.X.names[0])
    return components_1d(grid, [p[0] for p in parts], [p[1] for p in parts], names, feature=feature, axes=axes)


def _maps(fit: ProcessFit, X: np.ndarray, y: np.ndarray, ax: Axes | None) -> Any:
    columns = fit.posterior.data.X.names
    first, second, grid = grid_over(X)
    mean, std = fit.mean_and_std(Points(torch.from_numpy(grid), columns), latent=True)
    shape = len(second), len(first)
    values = mean.cpu().numpy().reshape(shape), std.cpu().numpy().reshape(shape)
    names = columns or ("first feature", "second feature")
    return surface(X, y.reshape(-1), first, second, values[0], std=values[1], names=names, ax=ax)


def _curve(fit: ProcessFit, X: np.ndarray, y: np.ndarray, ax: Axes | None, n_samples: int) -> Any:
    shown = X.reshape(-1)
    grid = line_over(shown, 0.1).reshape(-1, 1)
    names, samples = fit.posterior.data.X.names, None
    rows = Points(torch.from_numpy(grid), names)
    if n_samples > 0:
        mean, covariance, prior, _ = fit.for_samples(rows, latent=True)
        samples = joint_samples(mean, covariance, n_samples, fit.plan.settings.seed, prior)[:, 0].T.cpu().numpy()
    band = (values.cpu().numpy() for values in fit.mean_and_std(rows, latent=False))
    feature = "x" if names is None else str(names[0])
    return process_1d(shown, y.reshape(-1), grid, *band, samples=samples, feature=feature, ax=ax)
