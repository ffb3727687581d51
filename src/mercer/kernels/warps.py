"""Kernels of transformed points: a kernel on some of the columns, and the inner product of features."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Columns, Points, Warp, check_finite
from mercer.core.errors import InputError, InputTypeError, NotPositiveDefiniteError
from mercer.kernels.algebra import Unary, need_function
from mercer.kernels.base import FoundScale, Kernel
from mercer.kernels.pair import Pair, call_on_rows, function_name, vectors
from mercer.kernels.properties import ANALYTIC, Properties
from mercer.kernels.registry import register
from mercer.kernels.spectral import SpectralMeasure


@register
class Subspace(Unary):
    r"""A kernel that sees only some columns, :math:`k(x_S, z_S)`; `columns` are positions or names.

    Sums of them make additive models, products make interactions.

    >>> from mercer.kernels import Linear
    >>> Subspace(Linear(), [0, 2])([[1.0, 9.0, 3.0]], [[1.0, 7.0, 1.0]])
    array([[4.]])
    """

    columns: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kernel.domain == "matrix":
            raise InputTypeError(f"{self.kernel!r} reads a precomputed Gram matrix, which has no columns to select.")
        object.__setattr__(self, "columns", _as_columns(self.columns))

    def of(self, pair: Pair) -> Any:
        return self.kernel.of(pair.warped(Columns(self.columns)))

    def spectral_measure(self, n_columns: int) -> SpectralMeasure:
        positions = Columns(self.columns).positions(n_columns, None)
        return self.kernel.spectral_measure(len(positions)).embedded(positions, n_columns)

    def resolved(self, found: FoundScale, warps: tuple[Warp, ...] = ()) -> Kernel:
        """Length scales are those of the selected columns."""
        return replace(self, kernel=self.kernel.resolved(found, (*warps, Columns(self.columns))))

    def bind(self, names: Sequence[str] | None) -> Kernel:
        """The columns become positions; inner kernels see the names of the selected columns."""
        if names is None:
            return replace(self, kernel=self.kernel.bind(None))
        positions = Columns(self.columns).positions(len(names), names)
        return Subspace(self.kernel.bind([names[i] for i in positions]), tuple(positions))

    @property
    def properties(self) -> Properties:
        inner = self.kernel.properties
        analytic = inner.smoothness == ANALYTIC
        return replace(
            inner,
            characteristic=None if inner.characteristic else inner.characteristic,
            universal=None if inner.universal else inner.universal,
            smoothness=ANALYTIC if analytic else None,
            controls_convergence=None,
        )


@dataclass(frozen=True, eq=False, repr=False)
class FeatureMap(Kernel):
    r"""The kernel of a finite-dimensional space of functions,

    .. math:: k(x, z) = \varphi(x)^\top A\, \varphi(z).

    `phi` maps an (n, d) tensor of rows to n rows of p features, in torch (for gradients) or numpy. `metric` is the
    symmetric, positive semi-definite A, the identity by default. With the inverse of their Gram matrix G for A,
    this is the reproducing kernel of the span of the features.

    >>> FeatureMap(lambda X: X**2)([[1.0], [3.0]])
    array([[ 1.,  9.],
           [ 9., 81.]])
    """

    phi: Callable[..., Any]
    metric: Any = None

    def __post_init__(self) -> None:
        need_function(self.phi, "FeatureMap", "phi")
        if self.metric is not None:
            object.__setattr__(self, "metric", _as_metric(self.metric))

    def of(self, pair: Pair) -> Any:
        return pair.warped(Features(self.phi, self.metric)).inner()

    @property
    def properties(self) -> Properties:
        return Properties(characteristic=False, universal=False)


@dataclass(frozen=True)
class Features:
    """The warp x -> L^T phi(x) with A = L L^T, so that inner products of its values are the kernel."""

    phi: Callable[..., Any]
    metric: tuple[tuple[float, ...], ...] | None = None

    def __call__(self, points: Points) -> Points:
        x = vectors(points)
        features = call_on_rows(self.phi, x)
        if features.shape == (len(x),):
            features = features.unsqueeze(1)
        if features.ndim != 2 or len(features) != len(x):
            raise InputError(
                f"{function_name(self.phi)} must map {len(x)} rows to a matrix of {len(x)} rows of features; it gave "
                f"shape {tuple(features.shape)}."
            )
        if self.metric is None:
            return Points(features)
        if features.shape[1] != len(self.metric):
            raise InputError(
                f"metric is {len(self.metric)} x {len(self.metric)} but {function_name(self.phi)} gives "
                f"{features.shape[1]} features."
            )
        return Points(features @ _square_root(self.metric).to(features))


@functools.lru_cache(maxsize=32)
def _square_root(metric: tuple[tuple[float, ...], ...]) -> Tensor:
    """L with L L^T equal to the metric."""
    values, vectors_ = torch.linalg.eigh(torch.tensor(metric, dtype=torch.float64))
    result: Tensor = vectors_ * values.clamp(min=0.0).sqrt()
    return result


def _as_columns(columns: Any) -> tuple[int | str, ...]:
    listed = [columns] if isinstance(columns, str | numbers.Integral) else columns
    if not isinstance(listed, Iterable) or isinstance(listed, dict | set | frozenset):
        raise InputTypeError(f"Subspace(columns={columns!r}): columns must be positions or names of columns.")
    entries = tuple(listed)
    for column in entries:
        if isinstance(column, bool | np.bool_) or not isinstance(column, str | numbers.Integral):
            raise InputTypeError(f"Subspace(columns={columns!r}): {column!r} is neither a position nor a name.")
    if not entries:
        raise InputError(f"Subspace(columns={columns!r}): at least one column is needed.")
    return tuple(str(c) if isinstance(c, str) else int(cast(int, c)) for c in entries)


def _as_metric(metric: Any) -> tuple[tuple[float, ...], ...]:
    where = "FeatureMap(metric)"
    try:
        A = torch.as_tensor(
            np.asarray(metric.detach().cpu() if isinstance(metric, Tensor) else metric, dtype=np.float64)
        )
    except (TypeError, ValueError):
        raise InputTypeError(f"{where}: must be a square matrix of numbers, got {type(metric).__name__}.") from None
    if A.ndim != 2 or A.shape[0] != A.shape[1] or len(A) == 0:
        raise InputError(f"{where}: must be a square matrix, got shape {tuple(A.shape)}.")
    check_finite(A, where)
    gap = (A - A.T).abs()
    if float(gap.max()) > 1e-8 * float(A.abs().max()):
        i, j = divmod(int(gap.argmax()), len(A))
        raise InputError(f"{where}: must be symmetric, but entry {i}, {j} is {A[i, j]:g} and {j}, {i} is {A[j, i]:g}.")
    A = (A + A.T) / 2
    values = torch.linalg.eigvalsh(A)
    if float(values[0]) < -1e-10 * float(values.abs().max()):
        raise NotPositiveDefiniteError(f"{where}: must be positive semi-definite, but has eigenvalue {values[0]:g}.")
    return tuple(map(tuple, A.tolist()))
