"""Variances of noise as users give them."""

from __future__ import annotations

import numbers

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError, InputTypeError
from mercer.data.given import Noise

LEARN = "learn"
EXPECTED = 'give "learn", a variance >= 0 or one for each row.'


def checked_noise(noise: Noise) -> tuple[float | None, Tensor | None]:
    """The variance that all rows share, None where it is learned, and the variances of each row, where given.

    >>> checked_noise("learn"), checked_noise(0.1)
    ((None, None), (0.1, None))
    """
    if isinstance(noise, str):
        if noise != LEARN:
            raise InputError(f"noise={noise!r}: {EXPECTED}")
        return None, None
    if noise is None or isinstance(noise, bool | np.bool_):
        raise InputTypeError(f"noise={noise!r}: {EXPECTED}")
    if isinstance(noise, numbers.Real):
        return one_variance(noise), None
    return 0.0, _variances(noise)


def one_variance(noise: Noise) -> float:
    """A variance for all rows."""
    array = _variances(noise)
    if array.ndim:
        raise InputError(f"noise has shape {tuple(array.shape)} but one variance for all rows is needed.")
    return float(array)


def row_variances(noise: Noise, n: int) -> Tensor:
    """A variance for each of n rows."""
    array = _variances(noise)
    if array.shape != (n,):
        raise InputError(f"noise has shape {tuple(array.shape)} but there are {n} rows: give one variance for each.")
    return array


def _variances(noise: Noise) -> Tensor:
    try:
        array = torch.from_numpy(np.asarray(noise, dtype=np.float64).copy())
    except (TypeError, ValueError):
        raise InputTypeError(f"noise={noise!r}: {EXPECTED}") from None
    bad = ~(torch.isfinite(array) & (array >= 0))
    if bool(bad.any()):
        raise InputError(f"noise={float(array[bad][0]) if array.ndim else noise!r}: variances are finite numbers >= 0.")
    return array
