"""Places at which a function is drawn."""

from __future__ import annotations

import numpy as np

from mercer.plots.dials import SIDE


def line_over(values: np.ndarray, share: float = 0.05, count: int = 400) -> np.ndarray:
    """Places that reach beyond the values by a share of their range at either end.

    >>> line_over(np.array([0.0, 1.0]), 0.5, 3)
    array([-0.5,  0.5,  1.5])
    """
    low, high = float(values.min()), float(values.max())
    margin = share * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, count)


def grid_over(X: np.ndarray, share: float = 0.08, side: int = SIDE) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places along two features, and all pairs of them as rows.

    >>> [part.shape for part in grid_over(np.eye(2), side=3)]
    [(3,), (3,), (9, 2)]
    """
    first, second = (line_over(X[:, j], share, side) for j in range(2))
    return first, second, np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
