"""Where products run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from mercer.core.arrays import Points
from mercer.core.memory import parse_budget
from mercer.kernels.base import Kernel
from mercer.operators.gram import GramOperator, lazy_matrix

LEAST_SHARE = 32
"""One of so many parts of a budget is for products, whatever else is held."""


@dataclass(frozen=True)
class Placement:
    """Where and in which precision products run, and the memory they may take."""

    device: torch.device
    dtype: torch.dtype
    memory_budget: Any = None

    def beside(self, held: float) -> Placement:
        """The same where so many bytes of a budget that was given are taken; what is free counts them by itself."""
        given = parse_budget(self.memory_budget)
        return self if given is None else replace(self, memory_budget=max(given - int(held), given // LEAST_SHARE, 1))

    def gram(
        self, kernel: Kernel, X: Points, Z: Points | None = None, dtype: torch.dtype | None = None
    ) -> GramOperator:
        """The Gram matrix of rows that are ready, here."""
        z = X if Z is None else Z
        return lazy_matrix(kernel, X, z, dtype or self.dtype, self.device, self.memory_budget, X)
