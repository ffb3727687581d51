"""Kernels tuned before a fit, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from mercer.data.sample import Sample
from mercer.kernels import Kernel, as_kernel, resolve
from mercer.selection import Tuned, tune_kernel

KERNELS = ("laplace_l1", "matern52")
"""What kernel="auto" is compared with where it is tuned; without tuning it is the Laplace kernel."""

WORDS = {"none": "as given", "scale": "one factor", "ard": "each column"}


def tuned_kernel(
    settings: Any,
    kernel: Kernel,
    sample: Sample,
    targets: Tensor,
    alpha: str | float | Tensor,
    loss_of: Callable[[Kernel], float] | None = None,
) -> Tuned:
    """The account of tuning a kernel as the settings ask for, on rows that have weight."""
    return tune_kernel(
        kernel,
        sample.rows,
        targets,
        sample.weights,
        alpha,
        tune=settings.tune if isinstance(settings.tune, str) else True,
        rivals=_rivals(settings, sample),
        loss_of=loss_of,
        seed=settings.seed,
        intercept=settings.fit_intercept,
        progress=_print_progress if settings.verbose else None,
    )


def _rivals(settings: Any, sample: Sample) -> list[Kernel]:
    """The kernels that may take the place of an open one, with length scales from the rows."""
    if not settings.any_kernel:
        return []
    return [resolve(as_kernel(name), sample.rows, sample.weights, seed=settings.seed) for name in KERNELS]


def tuning_text(tuning: Tuned) -> str:
    """What was tuned, on which rows, and what it gained."""
    words = f"{WORDS[tuning.tune]}: relative error {tuning.start_error:.4g} -> {tuning.error:.4g}, {tuning.message}"
    errors = list(tuning.compared)
    if tuning.judged:
        errors += zip(WORDS.values(), tuning.judged, strict=True)
    told = ", ".join(f"{name} {error:.4g}" for name, error in errors)
    return f"{words}; at rows left out: {told}" if told else words


def _print_progress(iteration: int, error: float) -> None:
    print(f"tuning step {iteration}: relative error {error:.6g}", flush=True)
