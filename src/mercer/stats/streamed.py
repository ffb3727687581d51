"""Two samples that are sources of rows: estimates of MMD^2 from sums over rows, which need not fit in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.data.engines import Arrays, Engine
from mercer.data.engines.choose import using_engine
from mercer.data.engines.engine import added, grouped
from mercer.data.engines.sample import most_rows, sample_with
from mercer.data.engines.serial import SerialEngine
from mercer.data.rows import ArrayRows, DaskRows, RowSource, SelectedRows, is_dask
from mercer.data.rows.source import Part
from mercer.functions.fourier import FourierFeatures
from mercer.kernels import Kernel, resolve
from mercer.kernels.spectral import NoSpectralMeasureError
from mercer.stats.arguments import check, check_given
from mercer.stats.dials import KEPT, STREAMED_FEATURES
from mercer.stats.estimates import Estimate, h_values, witness_values
from mercer.stats.samples import Pooled


def is_source(X: Any) -> bool:
    """Whether X is a source of rows or a Dask collection."""
    return isinstance(X, RowSource) or is_dask(X)


def as_source(X: Any) -> RowSource:
    """X as a source of rows."""
    if isinstance(X, RowSource):
        return X
    return DaskRows(X) if is_dask(X) else ArrayRows(X)


@dataclass(frozen=True, eq=False)
class Streamed:
    """Two sources, where their sums are made, and rows drawn from each."""

    x: RowSource
    y: RowSource
    client: Any
    seed: int

    def drawn(self) -> Pooled:
        """Some rows of both."""
        if self.x.n_features != self.y.n_features:
            raise InputError(
                f"X has {self.x.n_features} columns but Y has {self.y.n_features}; both need the same features."
            )
        samples = []
        for source in (self.x, self.y):
            with using_engine(self.client, source) as engine:
                generator = torch.Generator().manual_seed(self.seed)
                samples.append(sample_with(engine, source, KEPT, generator).X.double().cpu())
        return Pooled(Points(torch.cat(samples), self.x.names or self.y.names), len(samples[0]))


def streamed_estimate(
    estimator: str, kernel: Kernel, given: Streamed, block_size: int | None, budget: int | None
) -> Estimate:
    """An estimate of MMD^2 with its standard error, by a kernel whose width is a number.

    "features" and "cross" are sums over the rows of each source, made where the rows are. "linear", "block" and
    "incomplete" pair rows of both sources in the order in which they are read, which must be random.
    """
    if estimator == "features":
        return feature_estimate(kernel, given)[0]
    if estimator == "cross":
        return _by_witness(kernel, given)
    if estimator in PAIRED:
        return _by_pairs(estimator, kernel, given, block_size, budget)
    raise InputError(
        f"estimator={estimator!r}: sources of rows take 'features', 'cross', 'linear', 'block' or 'incomplete', which "
        "are sums over rows."
    )


def with_width(kernel: Kernel, pooled: Pooled, seed: int) -> Kernel:
    """The kernel with its width found from the rows that were drawn."""
    return resolve(kernel.bind(pooled.points.names), pooled.points, seed=seed)


def feature_estimate(kernel: Kernel, given: Streamed) -> tuple[Estimate, float, float]:
    r"""The distance of the mean features, :math:`|\hat\mu_X - \hat\mu_Y|^2` without its bias, and the mean and the
    variance of the biased one if both samples have one distribution.
    """
    try:
        features = FourierFeatures.draw(kernel, _row(given.x), STREAMED_FEATURES, given.seed)
    except NoSpectralMeasureError as error:
        raise InputError(f"{error.reason} estimator='cross', 'linear' and 'incomplete' take every kernel.") from None
    sums = [_total(given.client, source, _moments, features) for source in (given.x, given.y)]
    n = [float(s["n"]) for s in sums]
    means = [s["phi"] / c for s, c in zip(sums, n, strict=True)]
    pooled = (sums[0]["outer"] + sums[1]["outer"]) / sum(n)
    centre = (sums[0]["phi"] + sums[1]["phi"]) / sum(n)
    covariance = pooled - torch.outer(centre, centre)
    scale = 1.0 / n[0] + 1.0 / n[1]
    distance = float((means[0] - means[1]).square().sum())
    mean = scale * float(covariance.trace())
    variance = 2.0 * scale**2 * float(covariance.square().sum())
    return Estimate(distance - mean, math.sqrt(variance)), mean, variance


def _by_witness(kernel: Kernel, given: Streamed) -> Estimate:
    """The witness function of some rows, at all the others."""
    some, rest = [], []
    for source in (given.x, given.y):
        share = min(0.5, KEPT / source.n_rows)
        held = SelectedRows(source, share, given.seed, held_out=True)
        with using_engine(given.client, source) as engine:
            chunk = sample_with(engine, held, KEPT, torch.Generator().manual_seed(given.seed))
        some.append(Points(chunk.X.double().cpu()))
        rest.append(SelectedRows(source, share, given.seed, held_out=False))
    sums = [_total(given.client, source, _witnessed, kernel, *some) for source in rest]
    means = [float(s["f"] / s["n"]) for s in sums]
    errors = [float(s["ff"] / s["n"]) - m**2 for s, m in zip(sums, means, strict=True)]
    variance = sum(max(e, 0.0) / float(s["n"]) for e, s in zip(errors, sums, strict=True))
    return Estimate(means[0] - means[1], math.sqrt(variance))


def _moments(rows: RowSource, parts: list[Part], features: FourierFeatures) -> Arrays:
    """The number of rows, the sum of their features and that of the products of features."""
    total: Arrays | None = None
    for part in parts:
        phi = features(Points(rows.read(part).X), dtype=torch.float64)
        found = {"n": torch.tensor(float(len(phi))), "phi": phi.sum(0), "outer": phi.T @ phi}
        total = found if total is None else added(total, found)
    assert total is not None
    return total


def _witnessed(rows: RowSource, parts: list[Part], kernel: Kernel, x: Points, y: Points) -> Arrays:
    """The number of rows, and the sums of the witness function and of its square."""
    values = torch.cat([witness_values(kernel, Points(rows.read(part).X), x, y) for part in parts])
    return {"n": torch.tensor(float(len(values))), "f": values.sum(), "ff": values.square().sum()}


def _total(client: Any, source: RowSource, work: Callable[..., Arrays], *shared: Any) -> Arrays:
    with using_engine(client, source) as engine:
        used: Engine = SerialEngine() if engine is None else engine
        groups = grouped(source.parts(), used.group_rows or most_rows(source))
        return used.reduce(added, used.map_groups(work, source, groups, *map(used.broadcast, shared)))


def _by_pairs(estimator: str, kernel: Kernel, given: Streamed, block_size: int | None, budget: int | None) -> Estimate:
    n = min(given.x.n_rows, given.y.n_rows)
    if n < 4:
        raise InputError(f"estimator={estimator!r} needs at least four rows in each sample.")
    size = max(2, math.isqrt(n)) if block_size is None else block_size
    check(block_size=size)
    check_given(budget=budget)
    if size > n:
        raise InputError(
            f"block_size={block_size!r}: must be an integer from 2 to {n}, the rows of the smaller sample."
        )
    each = 10.0 if budget is None else budget / n
    rng = np.random.default_rng(given.seed)
    count, first, second = 0, 0.0, 0.0
    for x, y in side_by_side(given.x, given.y, size if estimator == "block" else 1024):
        h = PAIRED[estimator](kernel, Pooled(Points(torch.cat([x, y])), len(x)), each, rng)
        count, first, second = count + len(h), first + float(h.sum()), second + float(h.square().sum())
    if count < 2:
        raise InputError(f"estimator={estimator!r}: fewer than two pairs; use smaller blocks or a larger budget.")
    mean = first / count
    return Estimate(mean, math.sqrt(max(second / count - mean**2, 0.0) / (count - 1)))


def _linear(kernel: Kernel, pooled: Pooled, _: float, __: Any) -> Tensor:
    even = torch.arange(0, pooled.m // 2 * 2, 2)
    return h_values(kernel, pooled, even, even + 1)


def _incomplete(kernel: Kernel, pooled: Pooled, each: float, rng: np.random.Generator) -> Tensor:
    n = pooled.m
    count = max(1, round(each * n))
    i = rng.integers(n, size=count)
    j = (i + rng.integers(1, max(2, n), size=count)) % n
    return h_values(kernel, pooled, torch.from_numpy(i), torch.from_numpy(j))


def _block(kernel: Kernel, pooled: Pooled, _: float, __: Any) -> Tensor:
    n = pooled.m
    i, j = torch.triu_indices(n, n, 1)
    return h_values(kernel, pooled, i, j).mean().reshape(1)


PAIRED: dict[str, Callable[..., Tensor]] = {"linear": _linear, "incomplete": _incomplete, "block": _block}


def side_by_side(x: RowSource, y: RowSource, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """As many rows of both, `size` at a time; a rest of fewer than two is left.

    >>> source = ArrayRows(torch.arange(5.0).reshape(5, 1), rows_at_once=2)
    >>> [(len(a), len(b)) for a, b in side_by_side(source, source, 3)]
    [(3, 3), (2, 2)]
    """
    for a, b in zip(_cut(x, size), _cut(y, size), strict=False):
        n = min(len(a), len(b))
        if n >= 2:
            yield a[:n], b[:n]


def _cut(source: RowSource, size: int) -> Iterator[Tensor]:
    held = torch.empty(0, source.n_features, dtype=torch.float64)
    for chunk in source:
        held = torch.cat([held, chunk.X.double().cpu()])
        while len(held) >= size:
            yield held[:size]
            held = held[size:]
    if len(held):
        yield held


def _row(source: RowSource) -> Points:
    return Points(torch.zeros(1, source.n_features, dtype=torch.float64), source.names)
