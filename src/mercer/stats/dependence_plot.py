"""Pictures of what depends on what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.plots.canvas import INK, MUTED, ORANGE, axes_for, name_axes
from mercer.plots.dials import SMALL
from mercer.stats.dials import MOST_DEPENDENCES

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_shares(found: Sequence[Any], ax: Axes | None = None) -> Axes:
    """How much each column has to do with the other side, those that are significant in colour."""
    shown = list(found[:MOST_DEPENDENCES])[::-1]
    ax = axes_for(ax, 5.0, 1.2 + 0.28 * len(shown))
    ax.barh(range(len(shown)), [c.share for c in shown], color=[ORANGE if c.pvalue <= 0.05 else MUTED for c in shown])
    ax.set_yticks(range(len(shown)), [f"{c.name} ({c.side})" for c in shown], fontsize=SMALL)
    ax.grid(False, axis="y")
    name_axes(ax, "Dependence on the other side, from 0 to 1", "")
    if any(c.pvalue <= 0.05 for c in shown):
        ax.set_title("coloured: p < 0.05, corrected", loc="left", color=INK, fontsize=SMALL)
    return ax


def plot_pairs(x: np.ndarray, y: np.ndarray, weight: np.ndarray, of_x: str, of_y: str, ax: Axes | None = None) -> Axes:
    """The pairs, coloured by how much they say of the dependence."""
    ax = axes_for(ax)
    largest = float(np.abs(weight).max()) or 1.0
    drawn = ax.scatter(x, y, c=weight, cmap="RdBu_r", vmin=-largest, vmax=largest, s=14, linewidths=0)
    bar = ax.figure.colorbar(drawn, ax=ax)
    bar.set_label("Together more often (+) or less (-) than by chance", color=INK, fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    name_axes(ax, of_x, of_y)
    return ax
