"""Points in a plane, coloured by what is known of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.core.errors import InputError
from mercer.plots.canvas import BLUE, INK, axes_for, legend, name_axes, vector
from mercer.plots.dials import SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CLASSES = (BLUE, "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#222222", "#999999", "#8B4513")
"""Colours of Okabe and Ito, and two more."""


def coordinates(
    x: Any,
    y: Any,
    *,
    labels: Any = None,
    x_name: str = "First coordinate",
    y_name: str = "Second coordinate",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Points in a plane; up to ten different labels have a colour each, more numbers a scale of colours.

    >>> ax = coordinates([0.0, 1.0, 2.0], [0.0, 1.0, 0.5], labels=["a", "a", "b"])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['a', 'b']
    """
    x = vector(x, "x")
    y = vector(y, "y", len(x))
    ax = axes_for(ax, 5.4, 4.2)
    size = float(np.clip(4000 / len(x), 4, 26))
    if labels is None:
        ax.scatter(x, y, s=size, color=BLUE, linewidths=0, alpha=0.8)
    else:
        _coloured(ax, x, y, np.asarray(labels), size)
    name_axes(ax, x_name, y_name, title)
    return ax


def _coloured(ax: Axes, x: np.ndarray, y: np.ndarray, labels: np.ndarray, size: float) -> None:
    if labels.shape != x.shape:
        raise InputError(f"labels have shape {labels.shape}, expected ({len(x)},).")
    kinds = np.unique(labels)
    if len(kinds) > len(CLASSES):
        if labels.dtype.kind not in "fiub":
            raise InputError(f"There are {len(kinds)} different labels; at most {len(CLASSES)} have a colour.")
        drawn = ax.scatter(x, y, s=size, c=labels.astype(float), cmap="cividis", linewidths=0)
        bar = ax.figure.colorbar(drawn, ax=ax, shrink=0.85)
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=SMALL, labelcolor=INK)
        return
    for kind, colour in zip(kinds, CLASSES, strict=False):
        chosen = labels == kind
        ax.scatter(x[chosen], y[chosen], s=size, color=colour, linewidths=0, alpha=0.8, label=str(kind))
    legend(ax, loc="best")
