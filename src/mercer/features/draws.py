"""Random features that would not fit into memory are refused before they are drawn."""

from __future__ import annotations

import numbers

import torch

from mercer.core.arrays import Points
from mercer.core.errors import InputTypeError
from mercer.core.memory import require, resolve_budget
from mercer.kernels.pair import vectors


def checked_size(n_components: object) -> int:
    """A number of features, which a model file may lack.

    >>> checked_size(3)
    3
    """
    if not isinstance(n_components, numbers.Integral):
        raise InputTypeError(f"n_components={n_components!r}: must be an integer >= 1.")
    return int(n_components)


def check_draw(count: int, rows: Points) -> None:
    """Raise an error where so many random features, each with a number for every column of the rows, do not fit."""
    size, budget = vectors(rows).shape[1] * torch.float64.itemsize, resolve_budget()
    advice = f"At most {budget // size:,} would fit."
    require(count * size, budget, f"n_components={count}: a draw of so many random features", advice)
