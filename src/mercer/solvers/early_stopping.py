"""Early stopping: rows held out of training tell when to stop."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.solvers.dials import MOST_HELD_OUT, WORTHWHILE
from mercer.solvers.scaling import powers_of_two

NO_GAIN = "no step lowered the validation error: the function is zero"


def held_out_rows(n: int, share: float, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Training and validation rows, both sorted; at most 5000 rows are held out.

    >>> train, held_out = held_out_rows(10, 0.2, torch.Generator().manual_seed(0))
    >>> len(train), len(held_out)
    (8, 2)
    """
    if not 0 <= share < 1:
        raise InputError(f"validation={share}: give the share of rows to hold out, a number >= 0 and < 1.")
    count = min(round(share * n), MOST_HELD_OUT)
    if share > 0 and (count == 0 or count == n):
        raise InputError(f"validation={share} of {n} rows leaves nothing to hold out or to train on.")
    order = torch.randperm(n, generator=generator)
    return order[count:].sort().values, order[:count].sort().values


def held_out_words(count: int) -> str:
    """What a report says of rows held out.

    >>> held_out_words(1000)
    '1,000 rows held out, residual over the others'
    """
    return f"{count:,} row{'s' * (count != 1)} held out, residual over the others"


class BestSoFar:
    """The iterate with the smallest validation error; `progress` is the last step that lowered it by a thousandth.

    >>> best = BestSoFar(torch.zeros(1))
    >>> [best.offer(step, error, torch.tensor([float(step)])) for step, error in enumerate([3.0, 1.0, 2.0])]
    [True, True, False]
    >>> best.step, best.error, best.value
    (1, 1.0, tensor([1.]))
    """

    def __init__(self, value: Tensor) -> None:
        self.step, self.error = 0, float("inf")
        self.progress, self.mark = 0, float("inf")
        self.value = value.clone()

    def offer(self, step: int, error: float, value: Tensor) -> bool:
        """Take note of an iterate; whether it is the best so far."""
        if not error < self.error:
            return False
        self.step, self.error, self.value = step, error, value.clone()
        if error < (1 - WORTHWHILE) * self.mark:
            self.progress, self.mark = step, error
        return True


def relative_error(residual: Tensor, targets: Tensor) -> float:
    """Root of the mean square of some residuals over that of all targets; infinite where they are not numbers.

    >>> relative_error(torch.tensor([1.0]), torch.tensor([2.0, -2.0]))
    0.5
    """
    scale = powers_of_two(targets.reshape(-1, 1))
    error, size = (float((part / scale).square().mean().sqrt()) for part in (residual, targets))
    error = error / size if size > 0 else error
    return math.inf if math.isnan(error) else error


def largest_relative(residual: Tensor, targets: Tensor) -> float:
    """The largest over columns of the norm of a residual over that of its targets; infinite where it is not a number.

    >>> largest_relative(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[2.0, 4.0], [0.0, 0.0]]))
    0.5
    """
    scale = powers_of_two(targets)
    error, size = (residual / scale).norm(dim=0), (targets / scale).norm(dim=0)
    ratio = error / torch.where(size > 0, size, 1.0)
    return float(ratio.nan_to_num(torch.inf, torch.inf).max()) if len(ratio) else 0.0
