"""Pictures of where two samples differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.plots.canvas import BLUE, INK, MUTED, ORANGE, axes_for, legend, name_axes
from mercer.plots.dials import SMALL
from mercer.stats.columns import ColumnDifference
from mercer.stats.dials import MOST_DIFFERENCES

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_columns(found: Sequence[ColumnDifference], ax: Axes | None = None) -> Axes:
    """The distance of each column, those that differ significantly in colour."""
    shown = list(found[:MOST_DIFFERENCES])[::-1]
    ax = axes_for(ax, 5.0, 1.2 + 0.28 * len(shown))
    colours = [ORANGE if c.pvalue <= 0.05 else MUTED for c in shown]
    ax.barh(range(len(shown)), [c.distance for c in shown], color=colours)
    ax.set_yticks(range(len(shown)), [c.name for c in shown], fontsize=SMALL)
    ax.grid(False, axis="y")
    name_axes(ax, "Kolmogorov-Smirnov distance", "")
    if any(c.pvalue <= 0.05 for c in shown):
        ax.set_title("coloured: p < 0.05, corrected", loc="left", color=INK, fontsize=SMALL)
    return ax


def plot_line(x: np.ndarray, y: np.ndarray, witness: Callable[[Any], Any], name: str, ax: Axes | None = None) -> Axes:
    """Both samples of one column as histograms, and the witness function on an axis of its own."""
    ax = axes_for(ax)
    edges = np.histogram_bin_edges(np.concatenate([x, y]), bins=40).tolist()
    ax.hist(x, edges, density=True, color=BLUE, alpha=0.45, label="X")
    ax.hist(y, edges, density=True, color=ORANGE, alpha=0.45, label="Y")
    at = np.linspace(edges[0], edges[-1], 400)
    values = np.asarray(witness(at[:, None]))
    right = ax.twinx()
    right.plot(at, values, color=INK, linewidth=1.5, label="witness")
    right.axhline(0.0, color=MUTED, linewidth=0.7)
    largest = float(np.abs(values).max()) or 1.0
    right.set_ylim(-1.2 * largest, 1.2 * largest)
    right.set_ylabel("Witness: X more (+), Y more (-)", color=INK, fontsize=SMALL)
    right.tick_params(labelsize=SMALL, colors=INK)
    right.spines["top"].set_visible(False)
    name_axes(ax, name, "Density")
    legend(ax, loc="upper left")
    return ax
