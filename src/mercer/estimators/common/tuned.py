"""Kernels tuned before a fit, and what is said of it."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from mercer.data.sample import Sample
from mercer.kernels import Kernel
from mercer.selection import Tuned, tune_kernel

WORDS = {"none": "as given", "scale": "one factor", "ard": "each column"}


def tuned_kernel(settings: Any, kernel: Kernel, sample: Sample, targets: Tensor, alpha: str | float | Tensor) -> Tuned:
    """The account of tuning a kernel as the settings ask for, on rows that have weight."""
    return tune_kernel(
        kernel,
        sample.rows,
        targets,
        sample.weights,
        alpha,
        tune=settings.tune if isinstance(settings.tune, str) else True,
        seed=settings.seed,
        intercept=settings.fit_intercept,
        progress=_print_progress if settings.verbose else None,
    )


def tuning_text(tuning: Tuned) -> str:
    """What was tuned, on which rows, and what it gained."""
    words = f"{WORDS[tuning.tune]}: relative error {tuning.start_error:.4g} -> {tuning.error:.4g}, {tuning.message}"
    if not tuning.judged:
        return words
    errors = ", ".join(f"{WORDS[name]} {error:.4g}" for name, error in zip(WORDS, tuning.judged, strict=True))
    return f"{words}; at rows left out: {errors}"


def _print_progress(iteration: int, error: float) -> None:
    print(f"tuning step {iteration}: relative error {error:.6g}", flush=True)
