"""The picture that goes with a fitted regression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mercer.core.errors import InputError
from mercer.plots.alpha import alpha_path
from mercer.plots.canvas import INK, shown_figure
from mercer.plots.dials import LABEL
from mercer.plots.regression import predicted_against_actual, residuals

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def regression_summary(
    actual: Any,
    predicted: Any,
    *,
    baseline: Any = None,
    label: str = "model",
    baseline_label: str = "baseline",
    target: str = "target",
    unit: str = "",
    alphas: Any = None,
    errors: Any = None,
    chosen: float | None = None,
    criterion: str = "leave-one-out",
    error_name: str = "mean squared error",
    rows: str = "test rows",
    title: str = "",
    figure: Figure | None = None,
) -> Figure:
    """Two panels: predicted against actual values, and how alpha was chosen, or the residuals where it was given.

    The words are those of `predicted_against_actual` and `alpha_path`; `rows` says which rows are drawn. The panels are
    those of `figure`, or of a new one of pyplot.

    >>> figure = regression_summary([1.0, 2.0, 3.0], [1.1, 1.9, 3.2], alphas=[0.1, 1.0], errors=[2.0, 1.0])
    >>> len(figure.axes)
    2
    """
    if (alphas is None) != (errors is None):
        raise InputError("alphas and errors are given together or not at all.")
    figure = shown_figure(10.0, 5.2) if figure is None else figure
    left, right = figure.subplots(1, 2)
    predicted_against_actual(
        actual, predicted, baseline=baseline, label=label, baseline_label=baseline_label,
        target=target, unit=unit, title=f"Predictions for {len(actual)} {rows}", ax=left,
    )  # fmt: skip
    if alphas is None:
        residuals(actual, predicted, target=target, unit=unit, title="What is left over", ax=right)
    else:
        alpha_path(
            alphas, errors, chosen, criterion=criterion, error_name=error_name, title="How alpha was chosen", ax=right
        )
    if title:
        figure.suptitle(title, x=0.01, ha="left", color=INK, fontsize=LABEL + 3)
    return figure
