"""The error measured with fewer rows and expected with more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.plots.canvas import BLUE, INK, MUTED, ORANGE, axes_for, legend, name_axes, vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def learning_curve_plot(
    measured: tuple[Any, Any],
    forecast: tuple[Any, Any, Any, Any, Any],
    n: int,
    *,
    level: float = 0.9,
    floor: float | None = None,
    error_name: str = "RMSE",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Measured and forecast errors against the number of rows, with intervals.

    Parameters
    ----------
    measured : tuple[Any, Any]
        Numbers of rows and errors.
    forecast : tuple[Any, Any, Any, Any, Any]
        Numbers of rows, errors, both ends of their intervals, and whether each can be believed.
    n : int
        Rows at hand, marked.
    level : float
        Of the intervals.
    floor : float or None
        An error that more rows do not remove, drawn as a line.
    error_name : str
        What the errors are.
    title : str
        Text above the axes.
    ax : Axes or None
        Axes to draw on, those of a new figure when None.

    Examples
    --------
    >>> ax = learning_curve_plot(([50, 100], [0.5, 0.4]), ([200], [0.3], [0.2], [0.4], [True]), 100)
    >>> ax.get_xlabel()
    'Rows'
    """
    rows, errors = vector(measured[0], "rows"), vector(measured[1], "errors")
    later, expected, low, high = (vector(part, "forecast") for part in forecast[:4])
    believed = np.asarray(forecast[4], dtype=bool)
    ax = axes_for(ax)
    ax.set_xscale("log", base=2)
    ax.plot(rows, errors, color=INK, marker="o", markersize=4, linewidth=1, label="measured")
    ax.fill_between(later, low, high, color=BLUE, alpha=0.15, linewidth=0, label=f"{level:.0%} interval")
    ax.plot(later, expected, color=BLUE, linewidth=1.6)
    if believed.any():
        ax.plot(later[believed], expected[believed], "o", color=BLUE, label="forecast")
    if not believed.all():
        ax.plot(later[~believed], expected[~believed], "o", color=ORANGE, fillstyle="none", label="do not rely on it")
    ax.axvline(n, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    ax.annotate("now", (n, 1.0), xycoords=("data", "axes fraction"), color=MUTED, fontsize=9, ha="right", va="top",
                xytext=(-3, -2), textcoords="offset points")  # fmt: skip
    if floor is not None and floor > 0:
        ax.axhline(floor, color=MUTED, linewidth=1, linestyle=":", label="noise, as far as the rows say")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    name_axes(ax, "Rows", error_name, title)
    legend(ax, loc="best")
    return ax
