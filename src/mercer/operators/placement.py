"""Where products run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from mercer.core.arrays import Points
from mercer.kernels.base import Kernel
from mercer.operators.gram import GramOperator, gram


@dataclass(frozen=True)
class Placement:
    """Where and in which precision products run, and the memory they may take."""

    device: torch.device
    dtype: torch.dtype
    memory_budget: Any = None

    def gram(
        self, kernel: Kernel, X: Points, Z: Points | None = None, dtype: torch.dtype | None = None
    ) -> GramOperator:
        return gram(kernel, X, Z, memory_budget=self.memory_budget, device=self.device, dtype=dtype or self.dtype)
