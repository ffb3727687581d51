"""A fitted function of one feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.plots.canvas import BLUE, INK, axes_for, legend, name_axes, vector, with_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def fit_1d(
    X: Any,
    y: Any,
    grid: Any,
    mean: Any,
    *,
    std: Any = None,
    label: str = "fit",
    feature: str = "x",
    target: str = "y",
    feature_unit: str = "",
    target_unit: str = "",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Data of one feature as points and the fitted function as a line, with a band of two deviations if given.

    Parameters
    ----------
    X, y : array-like of shape (n, d), or list of objects and array-like of shape (n,) or (n, t)
        The n training rows, (n,) or (n, 1), and their targets.
    grid, mean : array-like of shape (m,)
        Places, sorted for drawing, and the predictions there.
    std : array-like of shape (m,) or None
        Standard deviations, drawn as a band of two of them.
    label : str
        Name of the line in the legend.
    feature, target, feature_unit, target_unit : str
        Words for the axes.
    title : str
        Text above the axes.
    ax : Axes or None
        Axes to draw on, those of a new figure when None.

    Examples
    --------
    >>> ax = fit_1d([0.0, 1.0, 2.0], [0.0, 1.0, 4.0], [0.0, 1.0, 2.0], [0.1, 1.1, 3.8], feature="time", target="height")
    >>> ax.get_xlabel()
    'time'
    """
    X = vector(X, "X")
    y = vector(y, "y", len(X))
    grid = vector(grid, "grid")
    mean = vector(mean, "mean", len(grid))
    order = np.argsort(grid, kind="stable")
    grid, mean = grid[order], mean[order]
    ax = axes_for(ax, 6.0, 3.8)
    if std is not None:
        reach = 2 * vector(std, "std", len(grid))[order]
        ax.fill_between(grid, mean - reach, mean + reach, color=BLUE, alpha=0.15, linewidth=0, label="± 2 deviations")
    ax.scatter(X, y, s=float(np.clip(3000 / len(X), 4, 26)), color=INK, linewidths=0, zorder=3, label="data")
    ax.plot(grid, mean, color=BLUE, linewidth=1.8, zorder=2, label=label)
    name_axes(ax, with_unit(feature, feature_unit), with_unit(target, target_unit), title)
    legend(ax, loc="best")
    return ax
