"""Which columns matter, and how the error fell while that was learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.core.errors import InputError
from mercer.plots.canvas import BLUE, INK, ORANGE, axes_for, legend, name_axes, numbers, vector
from mercer.plots.dials import LABEL, SHOWN, SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def column_weights(names: Sequence[str], shares: Any, *, title: str = "", ax: Axes | None = None) -> Axes:
    """A bar for each column, the largest at the top; of many columns the largest.

    >>> column_weights(["age", "bmi"], [0.2, 0.8]).get_yticklabels()[0].get_text()
    'bmi'
    """
    shares = vector(shares, "shares", len(names))
    order = np.argsort(-shares, kind="stable")[:SHOWN]
    ax = axes_for(ax, 4.8, 1.2 + 0.24 * len(order))
    ax.barh(np.arange(len(order)), shares[order], color=BLUE, height=0.7)
    ax.set_yticks(np.arange(len(order)), [names[j] for j in order])
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    rest = f"; {len(shares) - SHOWN} more columns not shown" if len(shares) > SHOWN else ""
    name_axes(ax, f"share of the gradients{rest}", "", title)
    return ax


def gradient_matrix(names: Sequence[str], matrix: Any, *, title: str = "", ax: Axes | None = None) -> Axes:
    """An average gradient outer product as an image, from orange through white at zero to purple.

    >>> len(gradient_matrix(["a", "b"], [[1.0, -0.5], [-0.5, 0.3]]).get_xticklabels())
    2
    """
    matrix = numbers(matrix, "matrix")
    if matrix.ndim != 2 or matrix.shape != (len(names), len(names)):
        raise InputError(
            f"matrix has shape {matrix.shape}; expected a row and a column for each of {len(names)} columns."
        )
    ax = axes_for(ax, 4.8, 4.0)
    reach = float(np.abs(matrix).max()) or 1.0
    image = ax.imshow(matrix, cmap="PuOr", vmin=-reach, vmax=reach)
    ax.grid(False)
    if len(names) <= SHOWN:
        ax.set_xticks(np.arange(len(names)), names, rotation=90)
        ax.set_yticks(np.arange(len(names)), names)
    for spine in ax.spines.values():
        spine.set_visible(False)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.85)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=SMALL, labelcolor=INK)
    bar.set_label("average product of the gradients", color=INK, fontsize=LABEL)
    name_axes(ax, "", "", title)
    return ax


def rounds_path(errors: Mapping[str, Sequence[float]], chosen: int, *, title: str = "", ax: Axes | None = None) -> Axes:
    """The error by the number of rounds of each machine, with the number that was chosen marked.

    >>> rounds_path({"Laplace": [0.4, 0.2, 0.1]}, 2).get_xlabel()
    'rounds of learning features'
    """
    from matplotlib.ticker import MaxNLocator

    ax = axes_for(ax)
    for colour, (name, path) in zip((BLUE, ORANGE), errors.items(), strict=False):
        ax.semilogy(np.arange(len(path)), vector(path, "errors"), "o-", color=colour, markersize=4, label=name)
    ax.axvline(chosen, color=INK, linewidth=0.8, linestyle=":", label=f"chosen: {chosen}")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    name_axes(ax, "rounds of learning features", "relative squared error at rows left out", title)
    legend(ax)
    return ax
