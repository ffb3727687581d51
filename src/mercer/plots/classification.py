"""Pictures of classifiers: the regions of the classes, and how reliable probabilities are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.core.errors import InputError
from mercer.plots.canvas import BLUE, INK, MUTED, ORANGE, axes_for, legend, name_axes, numbers, vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")


def decision_regions(
    X: Any,
    labels: Any,
    first: Any,
    second: Any,
    decisions: Any,
    classes: Any,
    *,
    names: Any = ("first feature", "second feature"),
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Rows of two features over the regions of their classes, with the border between them.

    Parameters
    ----------
    X, labels : array-like of shape (n, 2) and array-like of shape (n,)
        The rows to show and their classes.
    first, second : array-like of shape (a,) and array-like of shape (b,)
        Places along the two features.
    decisions : array-like of shape (b, a, t)
        One value, positive for the second class, or one for each class.
    classes : sequence
        The classes in the order of the decisions.
    names : tuple of str
        Names of the features.
    title : str
        Text above the axes.
    ax : Axes or None
        Axes to draw on, those of a new figure when None.

    Examples
    --------
    >>> import numpy as np
    >>> side = np.linspace(-1, 1, 5)
    >>> ax = decision_regions([[0.5, 0.0]], ["b"], side, side, np.tile(side, (5, 1))[..., None], ["a", "b"])
    >>> ax.get_xlabel()
    'first feature'
    """
    X, decisions = numbers(X, "X"), numbers(decisions, "decisions")
    labels, classes = np.asarray(labels), np.asarray(classes)
    first, second = vector(first, "first"), vector(second, "second")
    if decisions.ndim != 3 or decisions.shape[:2] != (len(second), len(first)):
        raise InputError(f"decisions have shape {decisions.shape}; expected ({len(second)}, {len(first)}, t).")
    ax = axes_for(ax, 5.2, 4.2)
    ax.grid(False)
    chosen = (decisions[..., 0] > 0).astype(int) if decisions.shape[2] == 1 else decisions.argmax(2)
    colours = [COLOURS[k % len(COLOURS)] for k in range(len(classes))]
    levels = np.arange(len(classes) + 1) - 0.5
    ax.contourf(first, second, chosen, levels=levels, colors=colours, alpha=0.18)
    if decisions.shape[2] == 1 and decisions.min() < 0 < decisions.max():
        ax.contour(first, second, decisions[..., 0], levels=[0.0], colors=[INK], linewidths=1.2)
    size = float(np.clip(3000 / max(1, len(X)), 4, 26))
    for k, label in enumerate(classes):
        some = labels == label
        ax.scatter(X[some, 0], X[some, 1], s=size, color=colours[k], linewidths=0, label=str(label))
    name_axes(ax, str(names[0]), str(names[1]), title)
    legend(ax, loc="best")
    return ax


def reliability(
    labels: Any, probabilities: Any, classes: Any, *, bins: int = 10, title: str = "", ax: Axes | None = None
) -> Axes:
    """How often a class occurs among rows to which it was given a probability; the diagonal is honest.

    Probabilities (n, classes) are sorted into `bins` groups of equal size: for two classes those of the second, else of
    all classes together.

    >>> ax = reliability(["a", "b", "b", "a"], [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.7, 0.3]], ["a", "b"], bins=2)
    >>> ax.get_ylabel()
    'Observed share'
    """
    p, classes = numbers(probabilities, "probabilities"), np.asarray(classes)
    happened = np.asarray(labels)[:, None] == classes[None, :]
    if p.shape != happened.shape:
        raise InputError(f"probabilities have shape {p.shape}; expected {happened.shape}.")
    if len(classes) == 2:
        p, happened = p[:, 1:], happened[:, 1:]
    order = np.argsort(p.ravel(), kind="stable")
    groups = [group for group in np.array_split(order, bins) if len(group)]
    mean = [float(p.ravel()[group].mean()) for group in groups]
    share = [float(happened.ravel()[group].mean()) for group in groups]
    ax = axes_for(ax, 4.6, 4.4)
    ax.plot([0, 1], [0, 1], color=MUTED, linewidth=1, label="honest")
    ax.plot(mean, share, color=BLUE, marker="o", markersize=4, linewidth=1.6, label="model")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ax.set_aspect("equal", adjustable="box")
    name_axes(ax, "Predicted probability", "Observed share", title)
    legend(ax, loc="upper left")
    return ax
