"""A Gram matrix as an image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mercer.core.errors import InputError
from mercer.plots.canvas import INK, axes_for, name_axes, numbers
from mercer.plots.dials import LABEL, SMALL

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def gram_matrix(K: Any, *, title: str = "", ax: Axes | None = None) -> Axes:
    """The entries k(x_i, z_j) as an image, one colour per value.

    Values run from dark at zero to light at the largest; where some are negative, from orange through white at zero to
    purple.

    >>> ax = gram_matrix([[1.0, 0.6], [0.6, 1.0]])
    >>> ax.get_ylabel()
    'row i'
    """
    K = numbers(K, "K")
    if K.ndim != 2 or K.size == 0:
        raise InputError(f"K must be a matrix, got shape {K.shape}.")
    ax = axes_for(ax, 4.8, 4.0)
    low, high = float(K.min()), float(K.max())
    if low < 0:
        reach = max(-low, high)
        colours, low, high = "PuOr", -reach, reach
    else:
        colours, low, high = "cividis", 0.0, high or 1.0
    image = ax.imshow(K, cmap=colours, vmin=low, vmax=high, interpolation="auto", aspect="equal")
    ax.grid(False)
    for spine in ax.spines.values():
        spine.set_visible(False)
    _whole_numbers(ax)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.85)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=SMALL, labelcolor=INK)
    bar.set_label(r"$k(x_i, z_j)$", color=INK, fontsize=LABEL)
    name_axes(ax, "row j", "row i", title)
    return ax


def _whole_numbers(ax: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
