"""Other distances of two samples, to compare the maximum mean discrepancy with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.stats import wasserstein_distance

from mercer.core.arrays import plain_array
from mercer.core.errors import InputError
from mercer.core.seeding import as_seed
from mercer.stats.arguments import check, check_name
from mercer.stats.dials import EXACT_DISTANCES
from mercer.stats.samples import Pooled


def wasserstein(X: Any, Y: Any, *, method: str = "auto", n_projections: int = 100, random_state: Any = None) -> float:
    r"""The Wasserstein-1 distance of two samples, :math:`\inf \mathbb E\, |X - Y|` over their couplings.

    One column: exact. More: "exact" solves the assignment of equally many rows (up to 2,000), "sliced" is the mean over
    random directions of the distance of projections, scaled so that a shift has its length; "auto" is exact where that
    is possible. From samples of dimension d > 2 the error of the exact distance falls like n^(-1/d), while that of the
    maximum mean discrepancy falls like n^(-1/2) in every dimension.

    References: Peyré and Cuturi, *Computational optimal transport*, 2019; Fournier and Guillin, *On the rate of
    convergence in Wasserstein distance of the empirical measure*, 2015.

    >>> wasserstein([[0.0, 0.0], [1.0, 0.0]], [[0.0, 3.0], [1.0, 3.0]])
    3.0
    """
    x, y = _arrays(X, Y)
    check_name("method", method, ("auto", "exact", "sliced"))
    check(n_projections=n_projections)
    if x.shape[1] == 1:
        return float(wasserstein_distance(x[:, 0], y[:, 0]))
    exact = len(x) == len(y) and len(x) <= EXACT_DISTANCES
    if method == "exact" and not exact:
        raise InputError(
            f'method="exact" needs equally many rows, at most {EXACT_DISTANCES:,}; got {len(x):,} and {len(y):,}. '
            'Use method="sliced".'
        )
    if exact and method != "sliced":
        costs = cdist(x, y)
        if not np.isfinite(costs).all():
            raise InputError("Distances between rows of X and Y overflow: rescale both.")
        return float(costs[linear_sum_assignment(costs)].mean())
    return _sliced(x, y, n_projections, as_seed(random_state))


def total_variation(X: Any, Y: Any, *, bins: int | None = None) -> float:
    r"""The total variation distance :math:`\tfrac12 \sum_b |p_b - q_b|` of one column, from a common histogram.

    Without `bins`, values that repeat are taken as they are; else there are as many bins of equal pooled counts as the
    cube root of the number of rows. Without bins a sample of a density would be at distance one from every other.

    >>> total_variation([0, 0, 1, 1], [1, 1, 2, 2])
    0.5
    """
    x, y = _column(X, "X"), _column(Y, "Y")
    pooled = np.concatenate([x, y])
    values = np.unique(pooled)
    if bins is None and len(values) <= len(pooled) / 4 + 2:
        p, q = (np.bincount(np.searchsorted(values, z), minlength=len(values)) / len(z) for z in (x, y))
        return float(0.5 * np.abs(p - q).sum())
    count = max(2, math.ceil(len(pooled) ** (1 / 3))) if bins is None else bins
    check(bins=count)
    edges = np.unique(np.quantile(pooled, np.linspace(0, 1, count + 1)))
    edges[0], edges[-1] = -np.inf, np.inf
    p, q = (np.histogram(z, edges)[0] / len(z) for z in (x, y))
    return float(0.5 * np.abs(p - q).sum())


def kolmogorov(X: Any, Y: Any) -> float:
    r"""The Kolmogorov-Smirnov distance :math:`\sup_t |F_X(t) - F_Y(t)|` of one column.

    >>> kolmogorov([0.0, 1.0], [1.0, 2.0])
    0.5
    """
    x, y = np.sort(_column(X, "X")), np.sort(_column(Y, "Y"))
    at = np.concatenate([x, y])
    gaps = np.searchsorted(x, at, side="right") / len(x) - np.searchsorted(y, at, side="right") / len(y)
    return float(np.abs(gaps).max())


def _sliced(x: np.ndarray, y: np.ndarray, count: int, seed: int) -> float:
    d = x.shape[1]
    directions = np.random.default_rng(seed).normal(size=(d, count))
    directions /= np.linalg.norm(directions, axis=0)
    mean = np.mean([wasserstein_distance(x @ u, y @ u) for u in directions.T])
    log_projection = math.lgamma(d / 2) - math.lgamma((d + 1) / 2) - 0.5 * math.log(math.pi)
    return float(mean / math.exp(log_projection))


def _arrays(X: Any, Y: Any) -> tuple[np.ndarray, np.ndarray]:
    X, Y = (plain_array(z, name) if isinstance(z, list | tuple) else z for z, name in ((X, "X"), (Y, "Y")))
    X, Y = (np.asarray(z)[:, None] if np.ndim(z) == 1 else z for z in (X, Y))
    pooled = Pooled.of(X, Y)
    return pooled.first.values.double().cpu().numpy(), pooled.second.values.double().cpu().numpy()


def _column(X: Any, name: str) -> np.ndarray:
    x, _ = _arrays(X, X)
    if x.shape[1] != 1:
        raise InputError(f"{name} has {x.shape[1]} columns; this distance is for one column.")
    return x[:, 0]
