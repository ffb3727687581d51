"""Errors against the number of rows or the ridge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.core.errors import InputError
from mercer.plots.canvas import INK, MUTED, axes_for, legend, name_axes, vector
from mercer.plots.classification import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def risk_curve(
    along: Any,
    errors: Mapping[str, Any],
    *,
    simulated: tuple[Any, Any, Any] | None = None,
    marks: Mapping[str, float] | None = None,
    along_name: str = "n (rows)",
    error_name: str = "mean squared error",
    logarithmic: str = "xy",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Lines of errors by name, with simulated points on them and named vertical lines.

    Parameters
    ----------
    along : array-like of shape (k,)
        The places of the errors, such as numbers of rows.
    errors : Mapping[str, Any]
        One sequence for each name; values that are infinite or not positive leave a gap.
    simulated : tuple[Any, Any, Any] or None
        Places, means and standard errors of a simulation, drawn as points with bars.
    marks : Mapping[str, float] or None
        Vertical lines by name.
    along_name, error_name : str
        Labels.
    logarithmic : str
        Which axes are, "x", "y", "xy" or "".
    title : str
        Text above the axes.
    ax : Axes or None
        Axes to draw on, those of a new figure when None.

    Examples
    --------
    >>> ax = risk_curve([10, 100], {"test": [1.0, 0.5], "train": [0.1, 0.3]})
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['test', 'train']
    """
    along = vector(along, "along")
    order = np.argsort(along)
    ax = axes_for(ax)
    ax.set_xscale("log" if "x" in logarithmic else "linear")
    ax.set_yscale("log" if "y" in logarithmic else "linear")
    for colour, (name, values) in zip(COLOURS, errors.items(), strict=False):
        values = np.asarray(values, dtype=float)
        if values.shape != along.shape:
            raise InputError(f"errors[{name!r}] has shape {values.shape}; expected {along.shape}.")
        shown = np.where(np.isfinite(values) & (values > 0), values, np.nan)[order]
        if np.isfinite(shown).any():
            ax.plot(along[order], shown, color=colour, linewidth=1.6, label=name)
    if simulated is not None:
        ax.errorbar(*simulated[:2], yerr=simulated[2], fmt="o", color=INK, markersize=4, linewidth=1, label="simulated")
    for name, place in (marks or {}).items():
        ax.axvline(place, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        ax.annotate(
            name,
            (place, 1.0),
            xycoords=("data", "axes fraction"),
            color=MUTED,
            fontsize=8,
            rotation=90,
            ha="right",
            va="top",
            xytext=(-2, -2),
            textcoords="offset points",
        )
    name_axes(ax, along_name, error_name.capitalize(), title)
    legend(ax, loc="best")
    return ax


def risk_parts(parts: Mapping[str, float], *, ax: Axes | None = None) -> Axes:
    """The parts of an error as bars.

    >>> ax = risk_parts({"bias": 0.1, "variance": 0.2})
    >>> len(ax.patches)
    2
    """
    ax = axes_for(ax)
    ax.bar(list(parts), list(parts.values()), color=COLOURS[: len(parts)], width=0.6)
    name_axes(ax, "", "Mean squared error", "")
    return ax


def risk_draws(risks: Any, expected: float, *, ax: Axes | None = None) -> Axes:
    """The errors of many draws, and the expected one as a line.

    >>> ax = risk_draws([1.0, 2.0, 2.0], 1.6)
    >>> ax.get_xlabel()
    'Risk'
    """
    ax = axes_for(ax)
    ax.hist(vector(risks, "risks"), bins=30, color=COLOURS[0], alpha=0.6, label="draws")
    ax.axvline(expected, color=INK, linewidth=1.6, label="expected")
    name_axes(ax, "Risk", "Draws", "")
    legend(ax, loc="best")
    return ax
