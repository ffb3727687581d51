"""Eigenvalues by degree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.plots.canvas import axes_for, legend, name_axes, vector
from mercer.plots.classification import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def degree_spectrum(spectra: Mapping[str, Any], *, title: str = "", ax: Axes | None = None) -> Axes:
    """Eigenvalues on the sphere against the degree, on a logarithmic scale, for kernels by name.

    >>> ax = degree_spectrum({"linear": [0.0, 0.25, 0.0]})
    >>> ax.get_xlabel()
    'Degree k'
    """
    ax = axes_for(ax)
    ax.set_yscale("log")
    for colour, (name, values) in zip(COLOURS, spectra.items(), strict=False):
        values = vector(values, name)
        some = values > 0
        ax.plot(np.flatnonzero(some), values[some], color=colour, linewidth=1, marker="o", markersize=4, label=name)
    name_axes(ax, "Degree k", r"Eigenvalue $\lambda_k$", title)
    legend(ax, loc="best")
    return ax


def degree_part(angle: Any, values: Any, errors: Any, degree: int, *, ax: Axes | None = None) -> Axes:
    """The part of one degree of a function along a great circle, within two standard errors.

    >>> ax = degree_part([0.0, 3.14], [1.0, -1.0], [0.1, 0.1], 1)
    >>> ax.get_xlabel()
    'Angle between the first two axes'
    """
    ax = axes_for(ax)
    x, y, e = vector(angle, "angle"), vector(values, "values"), vector(errors, "errors")
    ax.fill_between(x, y - 2 * e, y + 2 * e, color=COLOURS[0], alpha=0.2, linewidth=0, label="two standard errors")
    ax.plot(x, y, color=COLOURS[0], linewidth=1.6, label=f"degree {degree}")
    ax.set_xticks([0.0, np.pi / 2, np.pi, 3 * np.pi / 2, 2 * np.pi], ["0", "π/2", "π", "3π/2", "2π"])
    name_axes(ax, "Angle between the first two axes", "Part of the function", "")
    legend(ax, loc="best")
    return ax
