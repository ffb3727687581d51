"""The eigenvalues of a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.core.errors import InputError
from mercer.plots.canvas import BLUE, axes_for, legend, name_axes, vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def spectrum(eigenvalues: Any, *, total: float | None = None, title: str = "", ax: Axes | None = None) -> Axes:
    """Eigenvalues in falling order on a logarithmic scale; `total`, the sum of all, says how much they cover.

    >>> ax = spectrum([0.5, 0.3, 0.1], total=1.0)
    >>> ax.get_legend().get_texts()[0].get_text()
    '3 eigenvalues, 90.0% of the trace'
    """
    values = np.sort(vector(eigenvalues, "eigenvalues"))[::-1]
    if (values < 0).any():
        raise InputError("eigenvalues must not be negative.")
    label = f"{len(values)} eigenvalue{'s' * (len(values) != 1)}"
    if total:
        label += f", {values.sum() / total:.1%} of the trace"
    ax = axes_for(ax)
    shown = values > 0
    if shown.any():
        ax.set_yscale("log")
    ax.plot(
        np.arange(1, len(values) + 1)[shown],
        values[shown],
        color=BLUE,
        linewidth=1,
        marker="o",
        markersize=4,
        label=label,
    )
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
    name_axes(ax, "s", r"Eigenvalue $\lambda_s$", title)
    legend(ax, loc="best")
    return ax
