"""Length scales from the distances between the rows of the data: the median heuristic, of raw or of scaled columns."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points, Warp, check_finite
from mercer.core.errors import InputError
from mercer.data.equal import Kinds
from mercer.kernels.base import Kernel
from mercer.kernels.dials import LARGEST, MAX_ROWS, NEVER_COUNTS
from mercer.kernels.pair import vectors
from mercer.kernels.parameters import AUTO
from mercer.kernels.spread import column_spreads


def resolve(
    kernel: Kernel,
    X: Any,
    sample_weight: Any = None,
    max_rows: int = MAX_ROWS,
    seed: int | None = 0,
    *,
    scaled: bool = False,
) -> Kernel:
    r"""The kernel with every length scale found that is "median" or "auto".

    "median" is one number, the median distance of the rows of X. "auto" is one number for each column,

    .. math:: \ell_j = s_j \operatorname{median}_{i \ne k} \| (x_i - x_k) / s \|,

    with the spread s_j of the column: its deviation, cut where outliers dominate it. The units of columns then do not
    matter. A constant column, of which nothing is known, gets a length scale so large that it never counts.

    The median is over the pairs of rows at a non-zero distance, in the metric and on the columns that the kernel
    uses; a pair has weight w_i w_j, so that integer weights equal repeated rows. Of more than `max_rows` different
    rows, that many are drawn with `seed`. Where all rows are equal the length scale is one. With `scaled`, the columns
    are in units that suit them already: "auto" takes every spread s_j to be one.

    References: Garreau, Jitkrittum and Kanagawa, *Large sample analysis of the median heuristic*, 2017.

    >>> from mercer.kernels import Laplace
    >>> resolve(2.0 * Laplace(length_scale="median"), [[0.0], [1.0], [3.0]])
    2.0 * Laplace(length_scale=2.0, metric='l2')
    """
    if max_rows < 2:
        raise InputError(f"resolve(max_rows={max_rows!r}): at least two rows are needed.")

    @functools.cache
    def sample() -> tuple[Points, Tensor]:
        points = X if isinstance(X, Points) else kernel.points(X)
        return _distinct(points, _weights(sample_weight, len(points)))

    @functools.cache
    def found(asked: str, warps: tuple[Warp, ...], metric: str) -> float | tuple[float, ...]:
        points, weights = sample()
        for warp in warps:
            points = warp(points)
        if warps:
            points, weights = _distinct(points, weights)
        rows, drawn = _drawn(points.values, weights, max_rows, seed)
        if asked == AUTO and scaled:
            return (_median_distance(rows, drawn, metric),) * rows.shape[1]
        if asked == AUTO:
            return _auto_scales(points.values, weights, rows, drawn, metric)
        return _median_distance(rows, drawn, metric)

    return kernel.resolved(found)


def weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    """The smallest value at which half of the weight is reached, the mean of two where it is reached exactly.

    >>> weighted_median(np.array([3.0, 1.0, 2.0, 10.0]), np.ones(4))
    2.5
    """
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    half = reached[-1] / 2
    rounding = 1e-10 * half
    first = np.searchsorted(reached, half - rounding)
    second = np.searchsorted(reached, half + rounding, side="right")
    return float(0.5 * (values[order[first]] + values[order[second]]))


def _distinct(points: Points, weights: Tensor) -> tuple[Points, Tensor]:
    """The different rows, sorted, in float64 with the sum of their weights; rows of weight zero are left out."""
    rows = vectors(points).detach().to("cpu", torch.float64) + 0.0  # turns -0.0 into 0.0
    rows, weights = rows[weights > 0], weights[weights > 0]
    if len(rows) == 0:
        raise InputError("X has no rows of positive weight, so there is no median distance.")
    kinds = Kinds.of(rows)
    return Points(rows[kinds.first], points.names), kinds.sums(weights)


def _weights(sample_weight: Any, n: int) -> Tensor:
    if sample_weight is None:
        return torch.ones(n, dtype=torch.float64)
    weights = torch.as_tensor(sample_weight, dtype=torch.float64).detach().cpu()
    if weights.shape != (n,):
        raise InputError(f"sample_weight has shape {tuple(weights.shape)} but X has {n} rows.")
    check_finite(weights, "sample_weight")
    if bool((weights < 0).any()):
        place = int((weights < 0).nonzero()[0])
        raise InputError(f"sample_weight[{place}] is {weights[place].item():g}; weights must be >= 0.")
    return weights


def _drawn(rows: Tensor, weights: Tensor, max_rows: int, seed: int | None) -> tuple[Tensor, Tensor]:
    """At most `max_rows` of the rows, drawn without replacement."""
    if len(rows) <= max_rows:
        return rows, weights
    chosen = np.sort(np.random.default_rng(seed).choice(len(rows), size=max_rows, replace=False))
    return rows[chosen], weights[chosen]


def _power_of_two(size: float) -> float:
    """The power of two at or below a size: rows in this unit have squares that neither vanish nor overflow."""
    return math.ldexp(0.5, math.frexp(size)[1]) if size and math.isfinite(size) else 1.0


def _median_distance(rows: Tensor, weights: Tensor, metric: str) -> float:
    unit = _power_of_two(float((rows.amax(0) - rows.amin(0)).amax()))
    distances = torch.nn.functional.pdist(rows / unit, p=1.0 if metric == "l1" else 2.0).numpy()
    share = weights / weights.max()
    i, j = torch.triu_indices(len(rows), len(rows), offset=1)
    pair_weights = (share[i] * share[j]).numpy()
    apart = distances > 0
    if not apart.all():
        distances, pair_weights = distances[apart], pair_weights[apart]
    median = weighted_median(distances, pair_weights) * unit if len(distances) else 1.0
    _check_distances(median, rows)
    return median


def _check_distances(typical: float, rows: Tensor) -> None:
    if not math.isfinite(typical):
        raise InputError(
            f"The distances between the rows of X overflow (the largest entry is {float(rows.abs().max()):.0e}), so "
            f"length scales cannot be found from them: rescale the columns of X."
        )


def _auto_scales(
    values: Tensor, weights: Tensor, rows: Tensor, drawn: Tensor, metric: str
) -> float | tuple[float, ...]:
    """One length scale for each column; a number for one column."""
    _check_distances(float((values.amax(0) - values.amin(0)).amax()), values)
    spreads = torch.from_numpy(column_spreads(values.numpy(), weights.numpy(), rows.numpy(), drawn.numpy()))
    moving = spreads > 0
    if not bool(moving.any()):
        return 1.0
    scaled = (rows[:, moving] - values[0, moving]) / spreads[moving]
    constant = torch.clamp(values[0].abs(), 1.0, LARGEST / NEVER_COUNTS) * NEVER_COUNTS
    scales = torch.where(moving, spreads * _median_distance(scaled, drawn, metric), constant)
    return float(scales[0]) if len(scales) == 1 else tuple(scales.tolist())
