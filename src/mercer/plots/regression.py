"""Predictions against the truth, and what is left over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.plots.canvas import (
    BLUE,
    MUTED,
    ORANGE,
    axes_for,
    brief,
    legend,
    name_axes,
    numbers,
    readable_ticks,
    vector,
    with_unit,
)
from mercer.plots.dials import MANY_POINTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def predicted_against_actual(
    actual: Any,
    predicted: Any,
    *,
    baseline: Any = None,
    label: str = "model",
    baseline_label: str = "baseline",
    target: str = "target",
    unit: str = "",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    r"""Predicted against actual values, with the line of perfect prediction and a band of one RMSE around it.

    .. math:: \mathrm{RMSE}^2 = \frac1n \sum_i (y_i - \hat y_i)^2, \qquad
        R^2 = 1 - \frac{\sum_i (y_i - \hat y_i)^2}{\sum_i (y_i - \bar y)^2}.

    Parameters
    ----------
    actual, predicted : array-like of shape (n,)
        The targets, and what was predicted for them.
    baseline : array-like of shape (n,), float or None
        Predictions of another model, or one number such as the mean, drawn behind.
    label, baseline_label : str
        Names of the models in the legend.
    target, unit : str
        What is predicted, for the labels.
    title : str
        Text above the axes.
    ax : Axes or None
        Axes to draw on, those of a new figure when None.

    Examples
    --------
    >>> ax = predicted_against_actual([1.0, 2.0, 3.0], [1.1, 1.9, 3.2], target="height", unit="m")
    >>> ax.get_ylabel()
    'Predicted height (m)'
    """
    actual = vector(actual, "actual")
    predicted = vector(predicted, "predicted", len(actual))
    other = None if baseline is None else _filled(baseline, len(actual))
    ax = axes_for(ax, 4.3, 5.5)
    low, high = _limits([actual, predicted] if other is None else [actual, predicted, other])
    error = _rmse(actual, predicted)
    ends = np.array([low, high])
    ax.plot(ends, ends, color=MUTED, linewidth=1)
    _points(ax, actual, predicted, BLUE, _scored(label, actual, predicted))
    if other is not None:
        scored = _scored(baseline_label, actual, other)
        if np.ptp(other) == 0:
            ax.axhline(other[0], color=ORANGE, linewidth=1.2, linestyle=(0, (4, 3)), label=scored)
        else:
            _points(ax, actual, other, ORANGE, scored, hollow=True)
    ax.fill_between(ends, ends - error, ends + error, color=BLUE, alpha=0.08, linewidth=0, label=f"± RMSE of {label}")
    ax.set(xlim=(low, high), ylim=(low, high))
    ax.set_box_aspect(1)
    for axis in (ax.xaxis, ax.yaxis):
        readable_ticks(axis, low, high)
    name_axes(ax, with_unit(f"Actual {target}", unit), with_unit(f"Predicted {target}", unit), title)
    legend(ax, loc="upper left", bbox_to_anchor=(0.0, -0.13))  # below the axes: points fill them
    return ax


def residuals(
    actual: Any,
    predicted: Any,
    *,
    target: str = "target",
    unit: str = "",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Residuals, actual minus predicted, against the prediction: a pattern here is something the model missed.

    >>> ax = residuals([1.0, 2.0, 3.0], [1.1, 1.9, 3.2])
    >>> ax.get_ylabel()
    'Actual minus predicted'
    """
    actual = vector(actual, "actual")
    predicted = vector(predicted, "predicted", len(actual))
    ax = axes_for(ax)
    left = actual - predicted
    error = _rmse(actual, predicted)
    ax.axhspan(-error, error, color=BLUE, alpha=0.08, linewidth=0, label=f"± RMSE = {brief(error)}")
    ax.axhline(0, color=MUTED, linewidth=1)
    _points(ax, predicted, left, BLUE, None)
    reach = 1.15 * float(np.abs(left).max()) or 1.0
    ax.set_ylim(-reach, reach)
    readable_ticks(ax.xaxis, float(predicted.min()), float(predicted.max()))
    name_axes(ax, with_unit(f"Predicted {target}", unit), with_unit("Actual minus predicted", unit), title)
    legend(ax, loc="best")
    return ax


def _filled(baseline: Any, length: int) -> np.ndarray:
    values = numbers(baseline, "baseline")
    return np.full(length, float(values)) if values.ndim == 0 else vector(values, "baseline", length)


def _points(ax: Axes, x: np.ndarray, y: np.ndarray, colour: str, label: str | None, *, hollow: bool = False) -> None:
    if len(x) > MANY_POINTS:
        if not hollow:  # a second cloud of hexagons would hide the first
            ax.hexbin(x, y, gridsize=80, bins="log", mincnt=1, cmap="Blues", linewidths=0)
        marker = "none" if hollow else "o"
        ax.plot([], [], color=colour, marker=marker, linestyle="none", label=label)
        return
    size = float(np.clip(3000 / len(x), 4, 26))
    if hollow:
        ax.scatter(x, y, s=size, facecolors="none", edgecolors=colour, linewidths=0.8, alpha=0.7, label=label)
    else:
        ax.scatter(
            x, y, s=size, facecolors=colour, edgecolors="white", linewidths=0.3, alpha=0.9, zorder=3, label=label
        )


def _limits(values: list[np.ndarray]) -> tuple[float, float]:
    low, high = min(float(v.min()) for v in values), max(float(v.max()) for v in values)
    margin = 0.05 * (high - low) or 0.5
    return low - margin, high + margin


def _rmse(actual: np.ndarray, predicted: np.ndarray) -> float:
    return float(np.sqrt(np.mean((actual - predicted) ** 2)))


def _scored(label: str, actual: np.ndarray, predicted: np.ndarray) -> str:
    error = _rmse(actual, predicted)
    spread = float(np.mean((actual - actual.mean()) ** 2))
    r2 = f"R² {round(1 - error**2 / spread, 2) + 0.0:.2f}, " if spread > 0 else ""
    return f"{label}: {r2}RMSE {brief(error)}"
