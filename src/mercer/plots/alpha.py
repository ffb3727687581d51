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
    alphas, errors : array-like of shape (k,)
        The path and the error at each of its values, none negative; alpha = 0 has no place on the scale.
    chosen : float or None
        The alpha to mark, the one of least error when None.
    criterion, error_name : str
        How the error was found and what it is, for the label.
    title : str
        Text above the axes.
    ax : Axes or None
        Axes to draw on, those of a new figure when None.

    Examples
    --------
    >>> ax = alpha_path([0.01, 0.1, 1.0, 10.0], [4.0, 2.0, 1.5, 3.0])
    >>> ax.get_xlabel()
    'alpha (ridge)'
    """
    alphas = vector(alphas, "alphas")
    errors = vector(errors, "errors", len(alphas))
    if (alphas < 0).any() or (errors < 0).any():
        raise InputError("alphas and errors must not be negative.")
    order = np.argsort(alphas)
    alphas, errors = alphas[order], errors[order]
    best = float(alphas[np.argmin(errors)]) if chosen is None else float(vector([chosen], "chosen")[0])
    if not best >= 0:
        raise InputError(f"chosen={chosen!r}: must not be negative.")
    at_edge = len(alphas) > 1 and not alphas[0] < best < alphas[-1]

    drawn = (alphas > 0) & (errors > 0)
    alphas, errors = alphas[drawn], errors[drawn]
    ax = axes_for(ax)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.plot(alphas, errors, color=BLUE, linewidth=1.6, marker="o", markersize=3)
    _mark(ax, alphas, errors, best, at_edge)
    _readable_errors(ax, errors)
    name_axes(ax, "alpha (ridge)", f"{criterion.capitalize()} {error_name}", title)
    legend(ax, loc="best")
    return ax


def _mark(ax: Axes, alphas: np.ndarray, errors: np.ndarray, best: float, at_edge: bool) -> None:
    label = f"alpha = {best:.3g}" + (" (at the edge of the path)" if at_edge else "")
    colour = ORANGE if at_edge else BLUE
    if best == 0 or not len(alphas):
        ax.plot([], [], linestyle="none", label=label)
        return
    height = np.exp(np.interp(np.log(best), np.log(alphas), np.log(errors)))
    ax.axvline(best, color=colour, linewidth=1, linestyle=(0, (4, 3)))
    ax.plot(best, height, color=colour, marker="o", markersize=7, linestyle="none", label=label)


def _readable_errors(ax: Axes, errors: np.ndarray) -> None:
    """Within a decade or two matplotlib leaves a logarithmic axis almost bare: put round numbers on it."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    ratio = errors.max() / errors.min() if len(errors) else np.inf
    if ratio > 100:
        return
    margin = max(ratio, 1.1) ** 0.06
    ax.set_ylim(errors.min() / margin, errors.max() * margin)
    ax.yaxis.set_major_locator(
        MaxNLocator(6) if ratio < 4 else LogLocator(subs=(1, 2, 3, 5) if ratio < 30 else (1, 2, 5))
    )
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
