"""The report of a fitted map."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mercer.core.report import Report, make_report
from mercer.estimators.transformers.fit import MapFit
from mercer.kernels.shown import kernel_text

Lines = list[tuple[str, object]]


def map_report(
    title: str, fit: MapFit[Any], n_features: int | None, lines: Lines, concerns: Iterable[str] = ()
) -> Report:
    """What was chosen and why."""
    size = f"{fit.seen.n_rows:,} rows"
    if n_features is not None:
        size += f", {n_features} feature{'s' * (n_features != 1)}"
    kernel: Lines = [] if fit.limit is not None else [("kernel", kernel_text(fit.kernel))]
    return make_report(title, [("fitted to", size), *kernel, *lines], list(concerns))


def feature_lines(fit: MapFit[Any]) -> Lines:
    """How many features there are, and what they are."""
    return [("features", f"{fit.features.n_features:,}" + (f" ({fit.note})" if fit.note else ""))]
