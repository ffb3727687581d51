"""Pictures of a Gaussian process: the function with its uncertainty, what matters, and how honest it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.plots.canvas import BLUE, INK, MUTED, ORANGE, axes_for, legend, name_axes, numbers, vector
from mercer.plots.dials import MOST_BARS
from mercer.plots.function import fit_1d

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def process_1d(
    X: Any,
    y: Any,
    grid: Any,
    mean: Any,
    std: Any,
    *,
    samples: Any = None,
    feature: str = "x",
    target: str = "y",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Data of one feature, the mean of a process with a band of two deviations, and some functions drawn from it.

    Parameters
    ----------
    X, y : array-like of shape (n, d), or list of objects and array-like of shape (n,) or (n, t)
        The n training rows, (n,) or (n, 1), and their targets.
    grid, mean, std : array-like of shape (m,)
        Places, the mean and the deviation there.
    samples : array-like of shape (k, m) or None
        Values of k functions at these places.
    feature, target : str
        Words for the axes.
    title : str
        Text above the axes.
    ax : Axes or None
        Axes to draw on, those of a new figure when None.

    Examples
    --------
    >>> ax = process_1d([0.0, 1.0], [0.0, 1.0], [0.0, 0.5, 1.0], [0.0, 0.5, 1.0], [0.1, 0.3, 0.1], samples=[[0, 0, 1]])
    >>> len(ax.lines)
    2
    """
    places = vector(grid, "grid")
    drawn = np.empty((0, len(places))) if samples is None else np.atleast_2d(numbers(samples, "samples"))
    order = np.argsort(places, kind="stable")
    ax = axes_for(ax, 6.0, 3.8)
    for i, values in enumerate(drawn):
        words = "functions drawn" if i == 0 else None
        ax.plot(places[order], values[order], color=ORANGE, linewidth=0.8, alpha=0.7, zorder=1, label=words)
    return fit_1d(X, y, grid, mean, std=std, label="mean", feature=feature, target=target, title=title, ax=ax)


def feature_relevance(relevance: Any, names: Sequence[str], *, title: str = "", ax: Axes | None = None) -> Axes:
    """A bar for each feature: how far the function may bend along it, in units of its deviation.

    >>> ax = feature_relevance([2.0, 0.1], ["age", "height"])
    >>> ax.get_xlabel()
    'Deviation of the feature / length scale'
    """
    values = vector(relevance, "relevance", len(names))
    order = np.argsort(values)[-MOST_BARS:]
    ax = axes_for(ax, 5.0, 1.2 + 0.28 * len(order))
    ax.barh(np.arange(len(order)), values[order], color=BLUE, height=0.7)
    ax.set_yticks(np.arange(len(order)), [str(names[i]) for i in order], color=INK)
    ax.grid(False, axis="y")
    ax.locator_params(axis="x", nbins=5)
    left_out = len(values) - len(order)
    text = title or (f"The {len(order)} most relevant of {len(values)} features" if left_out else "")
    name_axes(ax, "Deviation of the feature / length scale", "", text)
    return ax


def interval_coverage(
    levels: Any, coverage: Any, *, n: int | None = None, title: str = "", ax: Axes | None = None
) -> Axes:
    """The share of observations inside intervals against the share promised, with what chance allows for n of them.

    >>> ax = interval_coverage([0.5, 0.9], [0.45, 0.92], n=100)
    >>> ax.get_xlabel()
    'Promised'
    """
    levels = vector(levels, "levels")
    coverage = vector(coverage, "coverage", len(levels))
    ax = axes_for(ax, 4.4, 4.2)
    line = np.linspace(0, 1, 101)
    ax.plot(line, line, color=MUTED, linewidth=1)
    if n:
        reach = 2.0 * np.sqrt(line * (1 - line) / n)
        low, high = np.maximum(line - reach, 0), np.minimum(line + reach, 1)
        ax.fill_between(line, low, high, color=MUTED, alpha=0.15, linewidth=0, label=f"chance, {n:,} observations")
    ax.plot(levels, coverage, color=BLUE, marker="o", markersize=4, linewidth=1.4, label="intervals")
    ax.set(xlim=(0, 1), ylim=(0, 1))
    ax.set_aspect("equal", adjustable="box")
    name_axes(ax, "Promised", "Covered", title)
    legend(ax, loc="upper left")
    return ax
