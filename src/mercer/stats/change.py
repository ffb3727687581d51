"""`change_points`: where does the distribution of a series of rows change?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.core.memory import require, resolve_budget
from mercer.core.seeding import as_seed
from mercer.data.rows import RowSource
from mercer.functions.fourier import FourierFeatures
from mercer.kernels import Gaussian, Kernel, resolve
from mercer.kernels.spectral import NoSpectralMeasureError
from mercer.plots.canvas import BLUE, MUTED, ORANGE, axes_for, name_axes
from mercer.stats.arguments import check
from mercer.stats.columns import ColumnDifference, column_differences
from mercer.stats.dials import KEPT_ROWS, MOST_BLOCKS
from mercer.stats.families import column_scales, given_kernels
from mercer.stats.mixed import encoded, is_mixed
from mercer.stats.resampling import block_length, is_ordered, rows_of_block
from mercer.stats.samples import column_labels, sample_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHRINK = math.sqrt(0.5)
"""Each layer of intervals is so many times as long as the one before."""


def change_points(
    X: Any,
    *,
    kernel: Any = None,
    level: float = 0.05,
    min_size: int = 10,
    order: Any = None,
    n_features: int = 64,
    n_resamples: int = 199,
    random_state: Any = None,
    memory_budget: Any = None,
) -> ChangePoints:
    r"""Places in a series of rows where the distribution changes, by a kernel cumulative sum statistic of intervals,

    .. math:: T_{s, k, e} = \frac{(k - s)(e - k)}{e - s} \, \| \hat\mu_{s:k} - \hat\mu_{k:e} \|^2.

    Mean embeddings are those of random Fourier features. Intervals of all lengths cover the series (seeded binary
    segmentation); of those whose largest T is above the threshold the shortest counts first. The threshold is the
    1 - level quantile of the largest T of all intervals over permutations of the series, so that a series without a
    change has one found with a probability of at most `level`. Memory does not grow with the number of rows: beyond
    2,048 rows places are found to the length of a block, which `resolution` states.

    Parameters
    ----------
    X : array, table or RowSource of shape (n, d)
        Rows in the order of time.
    kernel : Kernel, str or None
        A shift-invariant kernel. None for a Gaussian of half the median distance, with each
        column in units of its deviation.
    level : float
        The probability of finding a change where there is none.
    min_size : int
        Rows between two changes, at least.
    order : bool, int or None
        True where rows depend on those before them, apart from changes: blocks of rows are permuted, as long as the
        correlation of differences of neighbours asks for; or the length of a block.
    n_features, n_resamples : int
        Random features of the kernel, and permutations for each decision.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None
        The seed; None is 0.
    memory_budget : int, str or None
        Bytes, or text such as "2GiB"; by default half of what is free.

    Returns
    -------
    ChangePoints

    References
    ----------
    Arlot, Celisse and Harchaoui, *A kernel multiple change-point algorithm via model selection*, 2019; Kovács et al.,
    *Seeded binary segmentation*, 2023.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = np.concatenate([rng.normal(size=150), 3 * rng.normal(size=100), rng.normal(size=150)])
    >>> found = change_points(x[:, None], random_state=0)
    >>> len(found.points), bool(np.abs(found.points - [150, 250]).max() < 15)
    (2, True)
    """
    check(n_resamples=n_resamples, level=level, min_size=min_size, n_features=n_features, random_state=random_state)
    if level < 1 / (n_resamples + 1):
        raise InputError(f"level={level!r}: must be below 1, and at least 1 / (n_resamples + 1).")
    seed = as_seed(random_state)
    series = _series(X, kernel, n_features, seed, memory_budget)
    least = max(1, math.ceil(min_size / series.resolution))
    n = len(series.means)
    if n < 2 * least:
        raise InputError(f"X has {series.n_rows:,} rows; changes at least min_size={min_size} rows apart need more.")
    layers = _layers(n, 2 * least)
    found = _largest(series.means, layers, least)
    shuffled = (_largest(series.means[p], layers, least) for p in _orders(series, order, n_resamples, seed))
    null = np.array([max(float(values.max()) for values, _ in largest) for largest in shuffled])
    threshold = float(np.sort(null)[math.ceil((1 - level) * (n_resamples + 1)) - 1])
    places, statistics = _narrowest(layers, found, threshold)
    pvalues = [(1 + int((null >= t).sum())) / (n_resamples + 1) for t in statistics]
    points = np.minimum(np.array(places, dtype=int) * series.resolution, series.n_rows)
    return ChangePoints(
        points, np.array(statistics), np.array(pvalues), threshold, series.resolution, series.n_rows, null, kept=series
    )


@dataclass(frozen=True, eq=False)
class Series:
    """Mean features of blocks of `resolution` rows that follow each other, and rows that are kept to look at."""

    means: Tensor
    resolution: int
    n_rows: int
    rows: np.ndarray
    at: np.ndarray
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class ChangePoints:
    """The result of `change_points`.

    Attributes
    ----------
    points : array
        The places, rising: row points[i] is the first after a change.
    statistics, pvalues : array
        Of each change; a p-value is the probability of a statistic as large anywhere in the series.
    threshold : float
        The statistic above which a change is found.
    resolution : int
        Rows within which a place is known, at best.
    n_rows : int
        Of the series.
    null_distribution : array
        The largest statistics of the permuted series.
    """

    points: np.ndarray
    statistics: np.ndarray
    pvalues: np.ndarray
    threshold: float
    resolution: int
    n_rows: int
    null_distribution: np.ndarray
    kept: Series = field(kw_only=True)

    def columns(self, i: int) -> tuple[ColumnDifference, ...]:
        """How much each column differs between the stretches before and after change i, those that moved most first."""
        edges = [0, *self.points.tolist(), self.n_rows]
        before = (self.kept.at >= edges[i]) & (self.kept.at < edges[i + 1])
        after = (self.kept.at >= edges[i + 1]) & (self.kept.at < edges[i + 2])
        return column_differences(self.kept.rows[before], self.kept.rows[after], self.kept.names)

    @property
    def summary(self) -> str:
        """What was found, and how sure."""
        if not len(self.points):
            return f"No change found in {self.n_rows:,} rows."
        shown = [f"{p:,}" for p in self.points[:5]]
        last = f"{len(self.points) - 5} more" if len(self.points) > 5 else shown.pop()
        places = f"rows {', '.join(shown)} and {last}" if shown else f"row {last}"
        close = f", to within about {self.resolution:,} rows" if self.resolution > 1 else ""
        word = "change" if len(self.points) == 1 else "changes"
        sure = f"(p <= {self.pvalues.max():.2g})"
        return f"{len(self.points)} {word} in {self.n_rows:,} rows, at {places}{close} {sure}."

    def __repr__(self) -> str:
        return self.summary

    def plot(self, ax: Axes | None = None, column: int = 0) -> Axes:
        """One column of the series, with the changes."""
        ax = axes_for(ax, 7.0, 3.0)
        ax.plot(self.kept.at, self.kept.rows[:, column], ".", color=BLUE, markersize=2.5, alpha=0.6)
        for point in self.points:
            ax.axvline(point, color=ORANGE, linewidth=1.5)
        edges = [0, *self.points.tolist(), self.n_rows]
        for start, stop in itertools.pairwise(edges):
            here = self.kept.rows[(self.kept.at >= start) & (self.kept.at < stop), column]
            if len(here):
                ax.hlines(here.mean(), start, stop, color=MUTED, linewidth=1.5)
        name_axes(ax, "Row", self.kept.names[column] if self.kept.names[column] != str(column) else "x")
        return ax


def _series(X: Any, kernel: Any, n_features: int, seed: int, memory_budget: Any) -> Series:
    chunks, n, names = _chunks(X)
    resolution = max(1, 2 ** int(math.log2(n / MOST_BLOCKS))) if n > 2 * MOST_BLOCKS else 1
    blocks = math.ceil(n / resolution)
    require(4 * 8 * blocks * n_features, resolve_budget(memory_budget), f"mean features of {blocks:,} blocks of rows")
    step = max(1, n // KEPT_ROWS)
    at = np.arange(0, n, step)
    kept = torch.cat([rows[_within(at, start, len(rows))] for start, rows in chunks()])
    features, centre, scale = _features(kept, kernel, n_features, seed, names)
    sums = torch.zeros(blocks, features.n_features, dtype=torch.float64)
    for start, rows in chunks():
        phi = features(Points((rows - centre) / scale))
        sums.index_add_(0, torch.arange(start, start + len(rows)) // resolution, phi)
    sizes = torch.full((blocks, 1), float(resolution), dtype=torch.float64)
    sizes[-1] = n - resolution * (blocks - 1)
    means = sums / sizes
    return Series((means - means.mean(0)).float(), resolution, n, kept.numpy(), at, column_labels(names, kept.shape[1]))


def _chunks(X: Any) -> tuple[Any, int, tuple[str, ...] | None]:
    """A function that goes through the rows, their number, and names of columns."""
    if isinstance(X, RowSource):
        source = X

        def read() -> Iterator[tuple[int, Tensor]]:
            return ((part.before, source.read(part).X.double()) for part in source.parts())

        return read, source.n_rows, source.names
    points = encoded([X])[0] if is_mixed(X) else sample_points(X, "X")
    if not points.is_tensor:
        raise InputError("change_points needs a table, not a list of objects.")
    values = points.values.detach().cpu()

    def cut() -> Iterator[tuple[int, Tensor]]:
        return ((start, values[start : start + 65_536].double()) for start in range(0, len(values), 65_536))

    return cut, len(values), points.names


def _within(at: np.ndarray, start: int, count: int) -> Tensor:
    return torch.from_numpy(at[(at >= start) & (at < start + count)] - start)


def _features(rows: Tensor, kernel: Any, count: int, seed: int, names: Any) -> tuple[FourierFeatures, Tensor, Tensor]:
    """Features of rows less a centre and over a scale: by default in units of the columns."""
    centre = rows.mean(0)
    if kernel is None:
        scale = column_scales(rows)
        found = resolve(Gaussian("median"), Points(rows / scale), seed=seed)
        chosen: Kernel = Gaussian(found.length_scale / 2)
    else:
        kernels = given_kernels(kernel)
        if kernels is None or len(kernels) != 1:
            raise InputError(f"kernel={kernel!r}: change_points takes one kernel.")
        scale, chosen = torch.ones_like(centre), resolve(kernels[0].bind(names), Points(rows, names), seed=seed)
    try:
        return FourierFeatures.draw(chosen, Points(rows, names), count, seed), centre, scale
    except NoSpectralMeasureError as error:
        raise InputError(error.reason) from None


def _layers(n: int, least: int) -> list[tuple[int, Tensor]]:
    """Lengths and starts of seeded intervals, half overlapping, from all of the series down to `least` blocks."""
    layers, length = [(n, torch.zeros(1, dtype=torch.long))], n * SHRINK
    while length >= least:
        whole = math.ceil(length)
        count = 2 * math.ceil(n / length) - 1
        layers.append((whole, torch.linspace(0, n - whole, count).round().long().unique()))
        length *= SHRINK
    return layers


def _largest(means: Tensor, layers: list[tuple[int, Tensor]], least: int) -> list[tuple[Tensor, Tensor]]:
    """For each layer the largest statistics of its intervals, and where they are."""
    sums = torch.cat([means.new_zeros(1, means.shape[1]), means.cumsum(0)])
    found = []
    for length, starts in layers:
        k = torch.arange(least, length - least + 1)
        ends = sums[starts + length] - sums[starts]
        share = (k / length).to(sums)
        apart = sums[starts[:, None] + k] - sums[starts][:, None] - share[:, None] * ends[:, None]
        T = apart.square_().sum(2) * (length / (k * (length - k))).to(sums)
        best = T.max(1)
        found.append((best.values, starts + k[best.indices]))
    return found


def _orders(series: Series, order: Any, count: int, seed: int) -> Iterator[Tensor]:
    n, rng = len(series.means), np.random.default_rng(seed)
    length = 1
    if is_ordered(order):
        length = rows_of_block(order, lambda: block_length(series.means[:, :8]) * series.resolution)
    blocks = np.array_split(np.arange(n), max(2, n // max(1, math.ceil(length / series.resolution))))
    for _ in range(count):
        yield torch.from_numpy(np.concatenate([blocks[i] for i in rng.permutation(len(blocks))]))


def _narrowest(
    layers: list[tuple[int, Tensor]], largest: list[tuple[Tensor, Tensor]], threshold: float
) -> tuple[list[int], list[float]]:
    """The change of the shortest interval above the threshold, then those of intervals that do not hold it."""
    above = [
        (length, -float(values[i]), int(starts[i]), int(places[i]))
        for (length, starts), (values, places) in zip(layers, largest, strict=True)
        for i in (values > threshold).nonzero().squeeze(1).tolist()
    ]
    found: list[tuple[int, float]] = []
    for length, value, start, place in sorted(above):
        if not any(start < p < start + length for p, _ in found):
            found.append((place, -value))
    found.sort()
    return [p for p, _ in found], [t for _, t in found]
