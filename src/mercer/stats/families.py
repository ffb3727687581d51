"""Which kernels a test uses: those given, or a family of widths that covers the distances of the data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError, InputTypeError
from mercer.kernels import Gaussian, InverseMultiquadric, Kernel, Laplace, Spectrum, as_kernel, resolve
from mercer.kernels.dials import MAX_ROWS
from mercer.stats.dials import WIDTHS


@dataclass(frozen=True)
class Span:
    """From `low` times a quantile of the distances of the rows to `high` times the largest."""

    quantile: float
    low: float
    high: float


OF_SAMPLES = Span(0.05, 0.25, 1.0)
"""On perturbed uniform samples the statistic is largest, in its standard deviations, at widths of .12 to .18 of those
of the columns, with one column and with two; half of the quantile begins at .22 with two."""
OF_SCORES = Span(0.05, 0.5, 2.0)
"""Widths of the inverse multiquadrics under Stein kernels."""


def given_kernels(kernel: Any) -> tuple[Kernel, ...] | None:
    """The kernels a user asked for, with their widths still open; None for the default family.

    >>> given_kernels("median")
    (Gaussian(length_scale='median'),)
    """
    if kernel is None:
        return None
    if isinstance(kernel, str) and kernel == "median":
        return (Gaussian("median"),)
    if isinstance(kernel, Sequence) and not isinstance(kernel, str):
        if not len(kernel):
            raise InputError("kernel is an empty list; give at least one kernel, or None for the default family.")
        found = tuple(as_kernel(k) for k in kernel)
        if len({k.domain for k in found} - {"any"}) > 1:
            raise InputTypeError(f"The kernels {list(found)} take data of different kinds; use kernels of one kind.")
        return found
    return (as_kernel(kernel),)


def domain_of(kernels: tuple[Kernel, ...] | None, X: Any) -> str:
    """What the samples are: "vectors", "objects" or "matrix"."""
    if kernels is None:
        return "objects" if _is_text(X) else "vectors"
    return next((k.domain for k in kernels if k.domain != "any"), "vectors")


def family(
    kernels: tuple[Kernel, ...] | None, points: Points, seed: int, *, smooth: bool = False
) -> tuple[Kernel, ...]:
    """The kernels with every width a number, from pooled rows alone, so that permutations know of no label.

    By default Gaussian kernels and Laplace kernels of the L1 distance; `smooth` ones are inverse multiquadrics alone.
    """
    if kernels is not None:
        return tuple(resolve(k.bind(points.names), points, seed=seed) if _has_width(k) else k for k in kernels)
    if not points.is_tensor:
        return tuple(Spectrum(length) for length in (1, 2, 3))
    scales = column_scales(points.values)
    rows = some_rows(points.values, seed).double().cpu() / scales
    shapes: list[tuple[Any, str]] = [(InverseMultiquadric, "l2")] if smooth else [(Gaussian, "l2"), (Laplace, "l1")]
    span = OF_SCORES if smooth else OF_SAMPLES
    return tuple(
        _made(shape, metric, width, scales) for shape, metric in shapes for width in widths(rows, metric, WIDTHS, span)
    )


def column_scales(values: Tensor) -> Tensor:
    """The standard deviation of each column, one where it is constant.

    >>> column_scales(torch.tensor([[0.0, 5.0], [2.0, 5.0]]))
    tensor([1., 1.], dtype=torch.float64)
    """
    found = values.double()
    centre, largest = found.mean(0), found.abs().amax(0)
    spread = (found - centre).square().mean(0).sqrt().cpu()
    if not bool(torch.isfinite(spread).all()):
        column = int((~torch.isfinite(spread)).int().argmax())
        raise InputError(
            f"Column {column} has values as large as {float(largest[column]):.3g}, whose squares overflow; scale it."
        )
    return torch.where(spread > 1e-12 * largest.cpu(), spread, torch.ones_like(spread))


def widths(rows: Tensor, metric: str, count: int, span: Span) -> list[float]:
    """Geometric widths that cover the distances of the rows.

    >>> widths(torch.tensor([[0.0], [1.0]]), "l2", 3, OF_SAMPLES)
    [0.25, 0.5, 1.0]
    """
    distances = torch.nn.functional.pdist(rows, p=1.0 if metric == "l1" else 2.0).numpy()
    distances = distances[distances > 0]
    if not len(distances):
        return [1.0]
    low = np.quantile(distances, span.quantile)
    result: list[float] = np.geomspace(span.low * low, span.high * distances.max(), count).tolist()
    return result


def _made(shape: Any, metric: str, width: float, scales: Tensor) -> Kernel:
    equal = bool((scales == scales[0]).all())
    scale: Any = float(width * scales[0]) if equal else tuple((width * scales).tolist())
    result: Kernel = shape(scale, metric) if metric == "l1" else shape(scale)
    return result


def some_rows(values: Tensor, seed: int) -> Tensor:
    """At most so many rows, each as likely."""
    if len(values) <= MAX_ROWS // 2:
        return values
    chosen = np.random.default_rng(seed).choice(len(values), size=MAX_ROWS // 2, replace=False)
    return values[torch.from_numpy(np.sort(chosen))]


def _has_width(kernel: Kernel) -> bool:
    return kernel.domain not in ("matrix", "objects")


def _is_text(X: Any) -> bool:
    return isinstance(X, list | tuple) and len(X) > 0 and all(isinstance(x, str) for x in X)


def log_mean_exp(values: Tensor) -> Tensor:
    """The logarithm of the mean of exp over the first axis, without overflow."""
    return torch.logsumexp(values, 0) - math.log(len(values))
