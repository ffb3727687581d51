"""Where products run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from mercer.core.arrays import Points
from mercer.kernels.base import Kernel
from mercer.operators.gram import GramOperator, lazy_matrix


@dataclass(frozen=True)
class Placement:
    """Where and in which precision products run, and the memory they may take."""

    device: torch.device
    dtype: torch.dtype
    memory_budget: Any = None

    def gram(
        self, kernel: Kernel, X: Points, Z: Points | None = None, dtype: torch.dtype | None = None
    ) -> GramOperator:
        """The Gram matrix of rows that are ready, here."""
        z = X if Z is None else Z
        return lazy_matrix(kernel, X, z, dtype or self.dtype, self.device, self.memory_budget, X)
