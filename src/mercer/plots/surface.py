"""A fitted function of two features, with its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.core.errors import InputError
from mercer.plots.canvas import INK, axes_for, name_axes, numbers, shown_figure, vector
from mercer.plots.dials import LABEL, SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def surface(
    X: Any,
    y: Any,
    first: Any,
    second: Any,
    mean: Any,
    *,
    std: Any = None,
    names: Sequence[str] = ("first feature", "second feature"),
    target: str = "y",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """A map of the mean over two features, with rows in the colours of their targets; beside it a map of the deviation.

    On axes that are given, lines of equal deviation take the place of the second map. Returns the axes of the mean.

    Parameters
    ----------
    X, y : array-like of shape (n, d), or list of objects and array-like of shape (n,) or (n, t)
        The rows (n, 2) to show and their targets.
    first, second : array-like of shape (a,) and array-like of shape (b,)
        Places along the two features, ascending.
    mean, std : array-like of shape (b, a) and array-like of shape (b, a) or None
        Values at each pair of places, and their deviations.
    names, target : Sequence[str], str
        Words for the axes.
    title : str
        Text above the mean.
    ax : Axes or None
        Axes to draw on, those of a new figure when None.

    Examples
    --------
    >>> side = np.linspace(0, 1, 5)
    >>> ax = surface([[0.5, 0.5]], [1.0], side, side, np.add.outer(side, side), std=np.ones((5, 5)))
    >>> len(ax.figure.axes)  # two maps and their colour bars
    4
    """
    X, y = numbers(X, "X"), vector(y, "y")
    first, second = vector(first, "first"), vector(second, "second")
    shape = len(second), len(first)
    mean = _values(mean, "mean", shape)
    spread = None if std is None else _values(std, "std", shape)
    if X.shape != (len(y), 2):
        raise InputError(f"X has shape {X.shape}; expected ({len(y)}, 2).")
    other = None
    if ax is None and spread is not None:
        ax, other = shown_figure(9.0, 3.9).subplots(1, 2, sharex=True, sharey=True)
    ax = axes_for(ax, 5.4, 4.2)
    low, high = min(mean.min(), y.min()), max(mean.max(), y.max())
    colours = {"cmap": "viridis", "vmin": low, "vmax": high if high > low else low + 1.0}
    _map(ax, first, second, mean, target if other is None else f"mean of {target}", colours)
    size = float(np.clip(3000 / max(1, len(X)), 4, 30))
    ax.scatter(X[:, 0], X[:, 1], s=size, c=y, edgecolors="white", linewidths=0.5, **colours)
    name_axes(ax, str(names[0]), str(names[1]), title)
    if other is not None and spread is not None:
        axes_for(other)
        top = float(spread.max()) or 1.0
        _map(other, first, second, spread, f"standard deviation of {target}", {"cmap": "Greys", "vmin": 0, "vmax": top})
        other.scatter(X[:, 0], X[:, 1], s=0.5 * size, color="#D55E00", linewidths=0)
        name_axes(other, str(names[0]), "")
    elif spread is not None and np.ptp(spread) > 0:
        lines = ax.contour(first, second, spread, levels=5, colors=[INK], linewidths=0.7, alpha=0.7)
        ax.clabel(lines, fmt="± %.3g", fontsize=7)
    return ax


def _map(ax: Axes, first: Any, second: Any, values: np.ndarray, words: str, colours: dict[str, Any]) -> None:
    ax.grid(False)
    drawn = ax.pcolormesh(first, second, values, shading="gouraud", rasterized=True, **colours)
    ax.set(xlim=(first[0], first[-1]), ylim=(second[0], second[-1]))
    bar = ax.figure.colorbar(drawn, ax=ax)
    bar.outline.set_visible(False)
    bar.set_label(words, fontsize=LABEL, color=INK)
    bar.ax.tick_params(labelsize=SMALL, labelcolor=INK)


def _values(values: Any, name: str, shape: tuple[int, int]) -> np.ndarray:
    found = numbers(values, name)
    if found.shape != shape:
        raise InputError(f"{name} has shape {found.shape}; expected {shape}.")
    return found
