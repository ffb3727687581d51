"""The error along a path of alphas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.core.errors import InputError
from mercer.plots.canvas import BLUE, ORANGE, axes_for, legend, name_axes, vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def alpha_path(
    alphas: Any,
    errors: Any,
    chosen: float | None = None,
    *,
    criterion: str = "leave-one-out",
    error_name: str = "mean squared error",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """The error against alpha, both on logarithmic scales, with the alpha that was chosen marked.

    A choice at either end of the path is drawn in another colour and named: the best alpha may lie beyond.

    Parameters
    ----------
    alphas, errors : the path and the error at each of its values; alphas > 0, errors >= 0.
    chosen : the alpha to mark, the one of least error when None.
    criterion, error_name : how the error was found and what it is, for the label.
    title : text above the axes.
    ax : axes to draw on, those of a new figure when None.

    >>> ax = alpha_path([0.01, 0.1, 1.0, 10.0], [4.0, 2.0, 1.5, 3.0])
    >>> ax.get_xlabel()
    'alpha (ridge)'
    """
    alphas = vector(alphas, "alphas")
    errors = vector(errors, "errors", len(alphas))
    if (alphas <= 0).any() or (errors < 0).any():
        raise InputError("alphas must be > 0 and errors >= 0: both are drawn on logarithmic scales.")
    order = np.argsort(alphas)
    alphas, errors = alphas[order], errors[order]
    best = int(np.argmin(errors)) if chosen is None else int(np.argmin(np.abs(np.log(alphas / _positive(chosen)))))
    at_edge = len(alphas) > 1 and best in (0, len(alphas) - 1)
    colour = ORANGE if at_edge else BLUE

    ax = axes_for(ax)
    ax.set_xscale("log")
    positive = errors > 0
    if positive.any():
        ax.set_yscale("log")
    ax.plot(alphas[positive], errors[positive], color=BLUE, linewidth=1.6, marker="o", markersize=3)
    ax.axvline(alphas[best], color=colour, linewidth=1, linestyle=(0, (4, 3)))
    where = " (at the edge of the path)" if at_edge else ""
    label = f"alpha = {alphas[best]:.3g}{where}"
    ax.plot(alphas[best], errors[best], color=colour, marker="o", markersize=8, linestyle="none", label=label)
    _readable_errors(ax, errors[positive])
    name_axes(ax, "alpha (ridge)", f"{criterion.capitalize()} {error_name}", title)
    legend(ax, loc="best")
    return ax


def _positive(chosen: float) -> float:
    if not chosen > 0:
        raise InputError(f"chosen={chosen!r}: must be > 0, one of alphas.")
    return float(chosen)


def _readable_errors(ax: Axes, errors: np.ndarray) -> None:
    """Within a decade or so matplotlib leaves a logarithmic axis almost bare: put round numbers on it."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    if not len(errors) or errors.max() > 20 * errors.min():
        return
    ax.set_ylim(errors.min() / 1.03, errors.max() * 1.03)
    ax.yaxis.set_major_locator(MaxNLocator(6))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
