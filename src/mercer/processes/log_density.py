"""The log density of normal values, from what a factor tells."""

from __future__ import annotations

import math
from typing import TypeVar

from torch import Tensor

T = TypeVar("T", float, Tensor)


def log_density(fit: T, log_det: T, n: int, t: int) -> T:
    r"""That of t columns of n values, :math:`-\tfrac12 r^T A^{-1} r - \tfrac t2 (\log\det A + n \log 2\pi)`.

    `fit` is :math:`r^T A^{-1} r`, summed over the columns.

    >>> round(log_density(0.0, 0.0, 1, 1), 4)
    -0.9189
    """
    return -0.5 * fit - 0.5 * t * (log_det + n * math.log(2.0 * math.pi))
