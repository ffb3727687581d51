"""Several quantiles: their levels, and predictions in ascending order, so that they never cross."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from mercer.core.errors import InputError, InputTypeError
from mercer.data.given import Numbers
from mercer.estimators.dials import CROSSED


def checked_quantiles(quantiles: Numbers) -> tuple[float, ...]:
    """One level or several as a tuple.

    >>> checked_quantiles(0.5), checked_quantiles([0.1, 0.9])
    ((0.5,), (0.1, 0.9))
    """
    try:
        levels = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"quantiles={quantiles!r}: give numbers between 0 and 1.") from error
    if levels.ndim != 1 or not len(levels) or not ((levels > 0) & (levels < 1)).all():
        raise InputError(f"quantiles={quantiles!r}: give numbers between 0 and 1.")
    if (np.diff(levels) <= 0).any():
        raise InputError(f"quantiles={quantiles!r}: give them in ascending order, each once.")
    return tuple(levels.tolist())


def is_list(quantiles: Numbers) -> bool:
    """Whether predictions have a column for each level."""
    return np.ndim(quantiles) > 0


def crossings(values: Tensor, scale: float) -> int:
    """The number of rows at which values (n, t) do not ascend."""
    return int((values.diff(dim=1) < -CROSSED * max(1.0, scale)).any(1).sum())
