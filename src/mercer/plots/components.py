"""The parts that a function is a sum of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.plots.canvas import BLUE, INK, axes_for, name_axes, shown_figure, vector
from mercer.plots.dials import LABEL

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def components_1d(
    grid: Any,
    means: Sequence[Any],
    stds: Sequence[Any],
    names: Sequence[str],
    *,
    feature: str = "x",
    target: str = "y",
    axes: Sequence[Axes] | None = None,
) -> list[Axes]:
    """One panel for each part of a function of one feature: its mean and a band of two deviations.

    >>> drawn = components_1d([0.0, 1.0], [[0.0, 1.0]], [[0.1, 0.1]], ["trend"])
    >>> drawn[0].get_title(loc="left")
    'trend'
    """
    places = vector(grid, "grid")
    order = np.argsort(places, kind="stable")
    if axes is None:
        figure = shown_figure(7.0, 0.6 + 1.7 * len(means))
        axes = list(figure.subplots(len(means), 1, sharex=True, squeeze=False)[:, 0])
    for ax, mean, std, name in zip(axes, means, stds, names, strict=True):
        axes_for(ax)
        middle, reach = vector(mean, "mean", len(places))[order], 2 * vector(std, "std", len(places))[order]
        ax.fill_between(places[order], middle - reach, middle + reach, color=BLUE, alpha=0.15, linewidth=0)
        ax.plot(places[order], middle, color=BLUE, linewidth=1.6)
        ax.set_title(name, loc="left", color=INK, fontsize=LABEL)
        name_axes(ax, "", target)
        ax.set_title(name, loc="left", color=INK, fontsize=LABEL)
    axes[-1].set_xlabel(feature, color=INK, fontsize=LABEL)
    return list(axes)
