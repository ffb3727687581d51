"""Pictures of fitted functions of one or two features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mercer.data.given import Axes, Rows, Targets
from mercer.plots import fit_1d, surface
from mercer.plots.places import grid_over, line_over


def function_plot(
    values: Callable[[np.ndarray], np.ndarray], X: Rows, y: Targets, features: Sequence[str], ax: Axes | None = None
) -> Any:
    """A line over one feature or a map over two, with the rows; `values` are those of the function at places (m, d)."""
    rows, actual = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64).reshape(-1)
    if len(features) == 1:
        grid = line_over(rows.reshape(-1)).reshape(-1, 1)
        return fit_1d(rows.reshape(-1), actual, grid, values(grid), feature=features[0], ax=ax)
    first, second, places = grid_over(rows)
    found = values(places).reshape(len(second), len(first))
    return surface(rows, actual, first, second, found, names=features, ax=ax)
