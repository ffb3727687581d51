"""Arrays of numbers that are no rows: targets, weights, coefficients, directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import check_finite
from mercer.core.errors import InputError, InputTypeError


def as_values(values: Any, name: str, *ndims: int) -> Tensor:
    """Finite real numbers of any shape, or with one of these numbers of dimensions, in float64; detached.

    >>> as_values([1, 2], "y", 1)
    tensor([1., 2.], dtype=torch.float64)
    >>> as_values("x", "y")
    Traceback (most recent call last):
    mercer.core.errors.InputTypeError: y='x': must be an array of numbers.
    """
    try:
        found = values if isinstance(values, Tensor) else np.asarray(values)
        if isinstance(found, np.ndarray):
            found = torch.from_numpy(_in_float64(found))
    except (TypeError, ValueError, OverflowError):
        found = None
    if found is None or found.is_complex() or found.layout is not torch.strided:
        raise InputTypeError(f"{name}={_short(values)}: must be an array of numbers.")
    found = found.detach().to(torch.float64)
    if ndims and found.ndim not in ndims:
        shapes = " or ".join(SHAPES[ndim] for ndim in ndims)
        raise InputError(f"{name} has shape {tuple(found.shape)}; expected {shapes}.")
    check_finite(found, name)
    return found


SHAPES = {0: "one number", 1: "(n,)", 2: "(n, t)"}


def _short(values: Any) -> str:
    text = repr(values)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _in_float64(array: np.ndarray) -> np.ndarray:
    """A copy in float64, also of objects that are numbers."""
    if array.dtype.kind not in "fiubO":
        raise TypeError
    return np.array(array, dtype=np.float64)
