"""Where products run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch

from mercer.core.arrays import Points
from mercer.core.memory import parse_budget
from mercer.kernels.base import Kernel
from mercer.kernels.pair import DensePair
from mercer.operators.dials import FORMULA_BYTES, FORMULA_NUMBERS, LEAST_SHARE
from mercer.operators.gram import GramOperator, lazy_matrix
from mercer.operators.stored import StoredGram


@dataclass(frozen=True)
class Placement:
    """Where and in which precision products run, and the memory they may take."""

    device: torch.device
    dtype: torch.dtype
    memory_budget: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "memory_budget", parse_budget(self.memory_budget))

    def beside(self, held: float) -> Placement:
        """The same where so many bytes of a budget that was given are taken; what is free counts them by itself."""
        given = self.memory_budget
        return self if given is None else replace(self, memory_budget=max(given - int(held), given // LEAST_SHARE, 1))

    def gram(
        self, kernel: Kernel, X: Points, Z: Points | None = None, dtype: torch.dtype | None = None
    ) -> GramOperator:
        """The Gram matrix of rows that are ready, here."""
        z = X if Z is None else Z
        return lazy_matrix(kernel, X, z, dtype or self.dtype, self.device, self.memory_budget, X)

    def operator(
        self, kernel: Kernel, X: Points, Z: Points | None = None, dtype: torch.dtype | None = None
    ) -> StoredGram | GramOperator:
        """The Gram matrix of one sample or two, in memory where it is small."""
        place = self if dtype is None else replace(self, dtype=dtype)
        if place.few(kernel, X, Z):
            return StoredGram(kernel, X, _formula(kernel, X, Z))
        return place.gram(kernel, X, Z)

    def matrix(self, kernel: Kernel, X: Points, Z: Points | None = None) -> torch.Tensor:
        """The Gram matrix itself, in float64 and in memory of its own."""
        if self.few(kernel, X, Z):
            return _formula(kernel, X, Z)
        return torch.as_tensor(self.gram(kernel, X, Z).dense()).to(torch.float64)

    def few(self, kernel: Kernel, X: Points, Z: Points | None = None) -> bool:
        """Whether X, Z and K(X, Z) have so few numbers that the formula as it stands is quicker than an operator."""
        one_sample, Z = Z is None, X if Z is None else Z
        if kernel.domain == "matrix" or not (X.is_tensor and Z.is_tensor):
            return False
        x, z = X.values, Z.values
        here = self.dtype == torch.float64 and all(d.type == "cpu" for d in (self.device, x.device, z.device))
        alike = one_sample or (x is not z and x.shape[1] == z.shape[1] and X.names in (None, Z.names))
        if not (here and alike and max(len(x) * len(z), x.numel(), z.numel()) <= FORMULA_NUMBERS):
            return False
        return self.memory_budget is None or self.memory_budget >= FORMULA_BYTES


def _formula(kernel: Kernel, X: Points, Z: Points | None) -> torch.Tensor:
    return kernel.on(DensePair(X.double(), None if Z is None else Z.double()))
