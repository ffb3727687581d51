"""The look shared by all plots, and the figures they are drawn on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.core.errors import InputError, InputTypeError, MercerError
from mercer.plots.dials import LABEL, SMALL, TICK_LETTERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

BLUE, ORANGE = "#0072B2", "#D55E00"
"""Colours of Okabe and Ito that people with any colour vision tell apart."""
INK, MUTED, FAINT = "#222222", "#6B6B6B", "#E3E3E3"
"""Text and marks, what stays behind them, and lines of the grid."""


MISSING = 'Plots need matplotlib: pip install "mercer[plot]"'


class PlotError(MercerError, ImportError):
    """matplotlib is missing: the message says how to install it."""


def new_figure(width: float = 5.0, height: float = 4.0) -> Figure:
    """An empty figure, in inches, that belongs to nobody: it needs no display and no pyplot, and is never shown."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PlotError(MISSING) from error
    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def shown_figure(width: float = 5.0, height: float = 4.0) -> Figure:
    """A figure of pyplot: notebooks and `plt.show()` show it, `plt.savefig` saves it.

    It is the current one of pyplot where that is still empty, else a new one. Pyplot does not complain about many of
    them; `plt.close("all")` frees their memory.
    """
    try:
        import matplotlib.pyplot as plt
        from matplotlib import rc_context
    except ImportError as error:
        raise PlotError(MISSING) from error
    if plt.get_fignums() and not (plt.gcf().axes or plt.gcf().subfigs):
        return plt.gcf()
    with rc_context({"figure.max_open_warning": 0}):
        return plt.figure(figsize=(width, height), layout="constrained", facecolor="white")


def axes_for(ax: Axes | None, width: float = 5.0, height: float = 4.0) -> Axes:
    """The axes given, or those of a `shown_figure`, in the common look."""
    ax = shown_figure(width, height).add_subplot() if ax is None else ax
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(MUTED)
    ax.tick_params(which="both", color=MUTED, labelcolor=INK, labelsize=SMALL)
    ax.grid(True, which="major", color=FAINT, linewidth=0.7)
    ax.set_axisbelow(True)
    return ax


def name_axes(ax: Axes, x: str, y: str, title: str = "") -> None:
    """Label both axes; the title, where there is one, starts at the left edge."""
    ax.set_xlabel(x, color=INK, fontsize=LABEL)
    ax.set_ylabel(y, color=INK, fontsize=LABEL)
    if title:
        ax.set_title(title, loc="left", color=INK, fontsize=LABEL + 1)


def legend(ax: Axes, **place: Any) -> None:
    """A legend without a frame that hides no data more than it must."""
    box = ax.legend(fontsize=SMALL, frameon=True, framealpha=0.7, edgecolor="none", borderpad=0.3, **place)
    for text in box.get_texts():
        text.set_color(INK)


def with_unit(name: str, unit: str) -> str:
    """A label such as "Height (m)"."""
    return f"{name} ({unit})" if unit else name


def readable_ticks(axis: Axis, low: float, high: float) -> None:
    """Numbers that people read along an axis, as few as have room beside each other."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    size = max(abs(low), abs(high))
    if not 1000 <= size < 1e9:
        axis.set_major_locator(MaxNLocator(5))
        return
    room = max(2, min(5, TICK_LETTERS // len(f"{size:,.0f}")))
    axis.set_major_locator(MaxNLocator(room, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"))


def brief(value: float) -> str:
    """Three digits that matter, without an exponent where people read numbers.

    >>> brief(48.4312), brief(123456.0), brief(0.00001234)
    ('48.4', '123,456', '1.23e-05')
    """
    size = abs(value)
    if 100 <= size < 1e9:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def vector(values: Any, name: str, length: int | None = None) -> np.ndarray:
    """`values` as finite float64 numbers in one dimension, of the given length."""
    array = numbers(values, name)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.size == 0:
        raise InputError(f"{name} must be a sequence of numbers, got shape {array.shape}.")
    if length is not None and len(array) != length:
        raise InputError(f"{name} has {len(array)} values, expected {length}.")
    return array


def numbers(values: Any, name: str) -> np.ndarray:
    """`values` as a float64 array without NaN and infinity."""
    if isinstance(values, np.ndarray) and np.iscomplexobj(values):
        raise InputTypeError(f"{name} is complex; give real numbers.")
    if isinstance(values, bool | np.bool_):
        raise InputTypeError(f"{name}={values!r}: must be numbers.")
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise InputTypeError(f"{name}={values!r:.100}: must be numbers ({error}).") from error
    if not np.isfinite(array).all():
        raise InputError(f"{name} contains NaN or infinity.")
    return array
