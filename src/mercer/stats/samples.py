"""What users pass in becomes `Points`: tables with their column names, objects, ready Gram matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points, as_points, plain_array, promote
from mercer.core.errors import InputError, InputTypeError
from mercer.core.memory import require, resolve_budget
from mercer.core.values import as_values
from mercer.data.rows import RowSource
from mercer.stats.dials import ROOM_FOR_SQUARES
from mercer.stats.mixed import encoded, is_mixed


@dataclass(frozen=True, eq=False)
class Pooled:
    """The rows of two samples, the first `m` and the other `n`, as one.

    >>> Pooled.of([[0.0]], [[1.0], [2.0]]).n
    2
    """

    points: Points
    m: int

    @property
    def n(self) -> int:
        return len(self.points) - self.m

    @property
    def first(self) -> Points:
        """The rows of the first sample."""
        return self.points.take(slice(0, self.m))

    @property
    def second(self) -> Points:
        """The rows of the second sample."""
        return self.points.take(slice(self.m, None))

    @classmethod
    def of(cls, X: Any, Y: Any, domain: str = "vectors") -> Pooled:
        """Both samples in one dtype, or an error where they have other columns."""
        if domain == "vectors" and (is_mixed(X) or is_mixed(Y)):
            X, Y = encoded([X, Y])
        x, y = sample_points(X, "X", domain), sample_points(Y, "Y", domain)
        _check_alike(x, y)
        if not x.is_tensor:
            return cls(Points([*x.values, *y.values]), len(x))
        values = torch.cat(promote(x.values, y.values))
        if domain == "matrix":
            _check_gram(values)
        return cls(Points(values, x.names or y.names), len(x))


def sample_points(X: Any, name: str, domain: str = "vectors") -> Points:
    """One sample: a table of numbers, a list of objects where the kernel takes them, or a source of rows that fits.

    Numbers of one dimension are one column.

    >>> sample_points([1.0, 2.0, 4.0], "X").values.shape
    torch.Size([3, 1])
    """
    if domain == "vectors":
        X = _column(X, name)
    points = _read(X) if isinstance(X, RowSource) else as_points(X, name, objects=domain == "objects")
    if len(points) == 0:
        raise InputError(f"{name} has no rows: give at least one.")
    if not points.is_tensor:
        return points
    if points.values.requires_grad:
        raise InputTypeError(f"{name} requires grad, but tests are not differentiable: pass {name}.detach().")
    if domain == "vectors":
        _check_squares(points.values, name)
    return points


def _column(X: Any, name: str) -> Any:
    """One dimension as a column, anything else as it is."""
    if isinstance(X, list | tuple):
        X = plain_array(X, name)
    if isinstance(X, Points) or np.ndim(X) != 1:
        return X
    return (X if isinstance(X, Tensor) else np.asarray(X)).reshape(-1, 1)


def _check_squares(values: Tensor, name: str) -> None:
    """Raise an error where squared distances overflow, or all vanish."""
    largest, limits = float(values.abs().max()), torch.finfo(values.dtype)
    over = largest > limits.max**0.5 / ROOM_FOR_SQUARES
    if over or 0 < largest < limits.tiny**0.5 * ROOM_FOR_SQUARES:
        size, square = ("as large as", "overflow") if over else ("of at most", "vanish")
        dtype = str(values.dtype).removeprefix("torch.")
        raise InputError(
            f"{name} has values {size} {largest:.3g}, whose squares {square} in {dtype}; scale its columns."
        )


def _read(source: RowSource) -> Points:
    """All rows of a source, where they fit."""
    size = source.dtype.itemsize * source.n_rows * source.n_features
    require(2 * size, resolve_budget(None), f"{source.n_rows:,} rows of a source in memory")
    return Points(torch.cat([chunk.X for chunk in source]), source.names)


def sample_weights(weights: Any, n: int, name: str) -> Tensor:
    """Weights of the rows, which may be negative, with the sum one; None for equal ones.

    >>> sample_weights([1.0, 3.0], 2, "weights")
    tensor([0.2500, 0.7500], dtype=torch.float64)
    """
    if weights is None:
        return torch.full((n,), 1.0 / n, dtype=torch.float64)
    found = as_values(weights, name).cpu()
    if found.shape != (n,):
        raise InputError(f"{name} has shape {tuple(found.shape)} but there are {n} rows.")
    total = float(found.sum())
    if abs(total) <= 1e-12 * float(found.abs().sum()):
        raise InputError(f"{name} sum to zero; their sum must not be zero.")
    return found / total


def column_labels(names: Sequence[str] | None, d: int) -> tuple[str, ...]:
    """Names of the columns, or their numbers.

    >>> column_labels(None, 2)
    ('0', '1')
    """
    return tuple(map(str, range(d))) if names is None else tuple(names)


def in_words(name: str, names: Sequence[str] | None) -> str:
    """A column in a sentence.

    >>> in_words("bmi", ["age", "bmi"]), in_words("1", None)
    ('bmi', 'column 1')
    """
    return f"column {name}" if names is None else name


def _check_gram(K: Tensor) -> None:
    """An error for what cannot be the Gram matrix of all rows of both samples."""
    if K.shape[0] != K.shape[1]:
        raise InputError(
            f"X and Y are to be the rows of one Gram matrix, but together they have {K.shape[0]} rows and {K.shape[1]} "
            "columns."
        )
    off = (K - K.T).abs()
    if float(off.max()) > 1e-5 * float(K.abs().max()):
        i, j = divmod(int(off.argmax()), len(K))
        raise InputError(f"The Gram matrix is not symmetric: entries ({i}, {j}) and ({j}, {i}) differ.")


def _check_alike(x: Points, y: Points) -> None:
    if x.is_tensor != y.is_tensor:
        raise InputTypeError("X and Y must be of one kind: one holds rows of numbers, the other objects.")
    if x.is_tensor and x.values.shape[1] != y.values.shape[1]:
        raise InputError(
            f"X has {x.values.shape[1]} columns but Y has {y.values.shape[1]}; both need the same features."
        )
    if x.names and y.names and x.names != y.names:
        raise InputError(f"The columns of X are {list(x.names)} but those of Y are {list(y.names)}.")
