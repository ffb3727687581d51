"""The picture of probabilities over two features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.core.errors import InputError
from mercer.plots.canvas import INK, axes_for, legend, name_axes, numbers, vector
from mercer.plots.classification import COLOURS
from mercer.plots.dials import LEVELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def probability_map(
    X: Any,
    labels: Any,
    first: Any,
    second: Any,
    probabilities: Any,
    classes: Any,
    *,
    names: Any = ("first feature", "second feature"),
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Rows of two features over the probabilities of their classes.

    A place has the colour of its class where that is certain and fades to white where all classes are equally likely.
    For two classes, lines show the places where the second has a probability of 10, 25, 50, 75 and 90%; for more, the
    borders between the most likely ones.

    Parameters
    ----------
    X, labels : array-like of shape (n, 2) and array-like of shape (n,)
        The rows to show and their classes.
    first, second : array-like of shape (a,) and array-like of shape (b,)
        Places along the two features, at equal distances.
    probabilities : array-like of shape (b, a, c)
        Probabilities of the c classes at each pair of places.
    classes : sequence
        The classes in the order of the probabilities.
    names : tuple of str
        Names of the features.
    title : str
        Text above the axes.
    ax : Axes or None
        Axes to draw on, those of a new figure when None.

    Examples
    --------
    >>> side = np.linspace(0, 1, 5)
    >>> p = np.tile(np.stack([1 - side, side], axis=1), (5, 1, 1))
    >>> ax = probability_map([[0.7, 0.5]], ["b"], side, side, p, ["a", "b"])
    >>> ax.get_ylabel()
    'second feature'
    """
    from matplotlib.colors import to_rgb

    X, p = numbers(X, "X"), numbers(probabilities, "probabilities")
    labels, classes = np.asarray(labels), np.asarray(classes)
    first, second = vector(first, "first"), vector(second, "second")
    if p.shape != (len(second), len(first), len(classes)):
        expected = (len(second), len(first), len(classes))
        raise InputError(f"probabilities have shape {p.shape}; expected {expected}.")
    ax = axes_for(ax, 5.2, 4.2)
    ax.grid(False)
    colours = [COLOURS[k % len(COLOURS)] for k in range(len(classes))]
    chosen, chance = p.argmax(2), 1.0 / len(classes)
    strength = 0.55 * ((p.max(2) - chance) / (1.0 - chance)).clip(0, 1)[..., None]
    picture = 1.0 - strength * (1.0 - np.array([to_rgb(colour) for colour in colours])[chosen])
    reach = (first[0], first[-1], second[0], second[-1])
    ax.imshow(picture, origin="lower", extent=reach, aspect="auto", interpolation="bilinear", zorder=0)
    if len(classes) == 2:
        inside = [level for level in LEVELS if p[..., 1].min() < level < p[..., 1].max()]
        if inside:
            widths = [1.4 if level == 0.5 else 0.6 for level in inside]
            lines = ax.contour(first, second, p[..., 1], levels=inside, colors=[INK], linewidths=widths)
            ax.clabel(lines, fmt=lambda level: f"{level:.0%}", fontsize=7)
    else:
        for k in np.unique(chosen):
            if (chosen == k).all():
                continue
            ahead = p[..., k] - np.delete(p, k, axis=2).max(2)
            ax.contour(first, second, ahead, levels=[0.0], colors=[INK], linewidths=0.8)
    size = float(np.clip(3000 / max(1, len(X)), 4, 26))
    for k, label in enumerate(classes):
        some = labels == label
        ax.scatter(
            X[some, 0], X[some, 1], s=size, color=colours[k], edgecolors="white", linewidths=0.4, label=str(label)
        )
    name_axes(ax, str(names[0]), str(names[1]), title)
    legend(ax, loc="best")
    return ax
