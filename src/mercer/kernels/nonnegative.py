"""Columns of numbers that may not be negative."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from mercer.core.errors import InputError


@dataclass(frozen=True)
class NonNegative:
    """The function that reads one column for a kernel and rejects negative entries."""

    index: int
    kernel: str

    def __call__(self, rows: Tensor) -> Tensor:
        column = rows[:, self.index]
        negative = (column < 0).nonzero()
        if len(negative):
            row = int(negative[0])
            raise InputError(
                f"{self.kernel} is defined for inputs >= 0, but row {row}, column {self.index} is "
                f"{column[row].item():g}."
            )
        return column
