"""The `alpha` argument: a number, one per target, or the criterion that chooses it."""

from __future__ import annotations

import numbers

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError, InputTypeError
from mercer.data.given import Alpha, Numbers
from mercer.solvers.system import ALPHA_WORDS, SMALLEST_ALPHA, is_alpha

AUTO = "auto"
CRITERIA = {AUTO: "loo", "loo": "loo", "gcv": "gcv"}
"""The criteria by the words of users; "auto" is leave-one-out, for other losses than the squared its approximation."""
POSITIVE_ALPHA = f'a finite number of at least {SMALLEST_ALPHA:.2g}, one per target, "auto", "loo" or "gcv"'
ALPHA = f"0, {POSITIVE_ALPHA}"


def checked_alpha(alpha: Alpha, n_targets: int) -> str | float | Tensor:
    """The name of a criterion, one float >= 0, or a float64 tensor with one value per target."""
    words = f"alpha={alpha!r}: must be {ALPHA}"
    if isinstance(alpha, str):
        if alpha not in CRITERIA:
            raise InputError(f"{words}.")
        return CRITERIA[alpha]
    if isinstance(alpha, bool) or alpha is None:
        raise InputTypeError(f"{words}.")
    if isinstance(alpha, numbers.Real):
        return float(_checked_values(np.array([alpha], dtype=np.float64), words)[0])
    try:
        values = np.asarray(alpha, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(f"{words}.") from None
    if values.ndim == 0:
        return float(_checked_values(values.reshape(1), words)[0])
    if values.shape != (n_targets,):
        raise InputError(f"{words}; it has shape {values.shape} but y has {n_targets} target(s).")
    return torch.from_numpy(_checked_values(values, words).copy())


def checked_alphas(alphas: Numbers | None) -> Tensor | None:
    """The path of alphas that a criterion searches, sorted; None for the default path."""
    if alphas is None:
        return None
    try:
        values = np.unique(np.asarray(alphas, dtype=np.float64))
    except (TypeError, ValueError):
        raise InputTypeError(f"alphas={alphas!r}: give an array of numbers >= 0.") from None
    if values.size == 0 or not is_alpha(values).all():
        raise InputError(f"alphas={alphas!r}: give at least one number; each {ALPHA_WORDS}.")
    return torch.from_numpy(values)


def _checked_values(values: np.ndarray, words: str) -> np.ndarray:
    if not is_alpha(values).all():
        raise InputError(f"{words}.")
    return values
