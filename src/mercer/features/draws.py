"""Random features that would not fit into memory are refused before they are drawn."""

from __future__ import annotations

import torch

from mercer.core.arrays import Points
from mercer.core.memory import require, resolve_budget
from mercer.kernels.pair import vectors


def check_draw(count: int, rows: Points) -> None:
    """Raise an error where so many random features, each with a number for every column of the rows, do not fit."""
    size, budget = vectors(rows).shape[1] * torch.float64.itemsize, resolve_budget()
    advice = f"At most {budget // size:,} would fit."
    require(count * size, budget, f"n_components={count}: a draw of so many random features", advice)
