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
