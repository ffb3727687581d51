"""The estimator inside: its kernel in the units of encoded columns, which are the same for all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from mercer.core.arrays import Points
from mercer.core.seeding import as_seed
from mercer.data.given import Targets
from mercer.estimators.common.base import KernelEstimator
from mercer.estimators.common.samples import checked_targets
from mercer.estimators.gaussian import GaussianProcessClassifier, GaussianProcessRegressor
from mercer.estimators.rfm import RFMClassifier, RFMRegressor
from mercer.estimators.tabular.encoder import TableEncoder
from mercer.kernels import Kernel, Subspace, as_kernel, resolve
from mercer.processes.start import Scales, need_squares, start_kernel

PROCESSES = (GaussianProcessRegressor, GaussianProcessClassifier)
LEARNS_WEIGHTS = (RFMRegressor, RFMClassifier)
"""These find the weights of columns themselves."""


def ready(
    estimator: BaseEstimator, encoder: TableEncoder, points: Points, y: Targets | None, weights: np.ndarray | None
) -> Any:
    """An unfitted copy whose kernel knows the encoded columns.

    Columns of a `Subspace` are those of the table. "auto" is the median distance of encoded rows for each column,
    whose units are already such that each column of the table has its share. A process that is given a kernel by name
    starts from the same units.
    """
    inner = clone(estimator)
    if not isinstance(inner, KernelEstimator) or isinstance(inner, LEARNS_WEIGHTS):
        return inner
    if isinstance(inner, PROCESSES) and isinstance(inner.kernel, str):
        spread = 1.0 if isinstance(inner, GaussianProcessClassifier) else _variance(y, len(points))
        scales = Scales(np.ones(points.values.shape[1]), spread)
        return inner.set_params(kernel=start_kernel(inner.kernel, points, scales)[0])
    kernel = with_columns(as_kernel(inner.kernel), encoder)
    seed = as_seed(getattr(inner, "random_state", None))
    return inner.set_params(kernel=resolve(kernel, points, weights, seed=seed, scaled=True))


def with_columns(kernel: Kernel, encoder: TableEncoder) -> Kernel:
    """The kernel with the columns of the table that it names replaced by those that are made of them."""
    if isinstance(kernel, Subspace):
        return Subspace(kernel.kernel, encoder.positions(kernel.columns))
    changes: dict[str, Any] = {name: with_columns(child, encoder) for name, child in kernel.children()}
    return replace(kernel, **changes) if changes else kernel


def _variance(y: Targets | None, n_rows: int) -> float:
    values = checked_targets(y, n_rows).numpy()
    need_squares(np.abs(values).reshape(n_rows, -1).max(axis=0, initial=0.0), "y")
    return float(values.var(axis=0).mean()) or 1.0
