"""One side of paired observations: its rows and the kernels on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError, InputTypeError
from mercer.kernels import Gaussian, Kernel, Linear, resolve
from mercer.kernels.pair import DensePair
from mercer.stats.dials import SIDE_WIDTHS
from mercer.stats.families import column_scales, domain_of, family, given_kernels, some_rows
from mercer.stats.hsic import indicators, is_labels, label_values
from mercer.stats.mixed import encoded, is_mixed
from mercer.stats.samples import column_labels, sample_points


@dataclass(frozen=True, eq=False)
class Side:
    """Rows and the kernels on them, whose widths are numbers. `labels` are the values of a column of labels."""

    name: str
    points: Points
    kernels: tuple[Kernel, ...]
    labels: tuple[Any, ...] | None = None

    def __len__(self) -> int:
        return len(self.points)

    @property
    def n_columns(self) -> int:
        """Columns of a table; 0 for labels, objects and ready Gram matrices."""
        plain = self.labels is None and self.points.is_tensor and self.kernels[0].domain != "matrix"
        return self.points.values.shape[1] if plain else 0

    @property
    def column_names(self) -> tuple[str, ...]:
        return column_labels(self.points.names, self.n_columns)

    @property
    def middle(self) -> Kernel:
        """One kernel that stands for all: of middle width."""
        return self.kernels[len(self.kernels) // 2]

    def by_column(self, seed: int) -> list[Side]:
        """Each column by itself, with one kernel."""
        columns = [Points(self.points.values[:, i : i + 1]) for i in range(self.n_columns)]
        return [Side(self.name, c, (resolve(Gaussian("median"), c, seed=seed),)) for c in columns]

    def against(self, X: Any, kernel: Kernel) -> Tensor:
        """Kernel values of new rows and those of the sample."""
        if kernel.domain == "matrix":
            raise InputTypeError("A ready Gram matrix has no kernel for new rows.")
        new = sample_points(X, self.name, kernel.domain) if self.labels is None else indicators(X, self.labels)
        return kernel.on(DensePair(new, self.points)).double().cpu()


def side(X: Any, name: str, kernel: Any, seed: int) -> Side:
    """Rows and kernels of one side.

    >>> len(side([1.0, 2.0, 4.0], "X", None, 0).kernels), side(["a", "b"], "Y", None, 0).kernels
    (5, (Linear(bias=0.0),))
    """
    if kernel is None and is_labels(X):
        values = label_values(X)
        return Side(name, indicators(X, values), (Linear(),), values)
    kernels = given_kernels(kernel)
    if is_mixed(X) and domain_of(kernels, X) == "vectors":
        (X,) = encoded([X])
    points = sample_points(X, name, domain_of(kernels, X))
    if kernels is None:
        return Side(name, points, _gaussians(points, seed) if points.is_tensor else family(None, points, seed))
    if kernels[0].domain == "matrix" and points.values.shape[0] != points.values.shape[1]:
        raise InputError(f"{name} is not a Gram matrix: its shape is {tuple(points.values.shape)}.")
    return Side(name, points, family(kernels, points, seed))


def check_paired(*sides: Side) -> None:
    """Equally many rows on each side, and at least two."""
    for s in sides[1:]:
        if len(s) != len(sides[0]):
            raise InputError(f"{sides[0].name} has {len(sides[0])} rows but {s.name} has {len(s)}; rows are paired.")
    if len(sides[0]) < 2:
        raise InputError(f"There is {len(sides[0])} row; a test of dependence needs at least two.")


def _gaussians(points: Points, seed: int) -> tuple[Kernel, ...]:
    scales = column_scales(points.values)
    rows = some_rows(points.values, seed).double().cpu() / scales
    made = []
    for width in _widths(rows):
        scale = width * scales
        made.append(Gaussian(float(scale[0]) if bool((scales == scales[0]).all()) else tuple(scale.tolist())))
    return tuple(made)


def _widths(rows: Tensor) -> list[float]:
    distances = torch.nn.functional.pdist(rows).numpy()
    distances = distances[distances > 0]
    if not len(distances):
        return [1.0]
    low, median = np.quantile(distances, [0.05, 0.5])
    result: list[float] = np.geomspace(min(max(median / 8, low / 2), median), 2 * median, SIDE_WIDTHS).tolist()
    return result
