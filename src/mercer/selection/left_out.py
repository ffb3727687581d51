"""Predictions for rows by fits that have not seen them, and how wide intervals must be for their errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.selection.dials import LEFT_OUT_ROUNDING
from mercer.selection.weights import positive_weights


@dataclass(frozen=True, eq=False)
class LeftOutErrors:
    r"""How far the target of each row lies outside of what fits to other rows predict for it.

    For predictions of the mean that is :math:`|y_i - f_{-i}(x_i)|`, for a lower and an upper quantile
    :math:`\max(q^l_{-i}(x_i) - y_i,\, y_i - q^u_{-i}(x_i))`, which is negative inside. Intervals that reach further
    than the predictions by the :math:`\lceil (n + 1) p \rceil`-th smallest of them hold the share p of rows like these.

    Attributes
    ----------
    sizes : Tensor
        (n, t), for each target.
    weights : Tensor or None
        (n,) or None; integers stand for repeated rows.

    References
    ----------
    Barber, Candes, Ramdas and Tibshirani, *Predictive inference with the jackknife+*, 2021; Romano,
    Patterson and Candes, *Conformalized quantile regression*, 2019.

    Examples
    --------
    >>> LeftOutErrors(torch.arange(20.0).reshape(-1, 1)).reach(0.9)
    tensor([18.], dtype=torch.float64)
    """

    sizes: Tensor
    weights: Tensor | None = None

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def total(self) -> float:
        """The number of rows, or their weight."""
        return float(len(self)) if self.weights is None else float(self.weights.sum())

    def reach(self, level: float) -> Tensor:
        """How far intervals of that level reach beyond the prediction: the sizes without their first axis."""
        needed = checked_level(level) * (self.total + 1.0)
        if needed > self.total + LEFT_OUT_ROUNDING:
            least = math.ceil(level / (1.0 - level) - LEFT_OUT_ROUNDING)
            raise InputError(
                f"level={level!r}: intervals at this level need at least {least:,} rows; there are {len(self):,}."
            )
        ascending, order = self.sizes.to(torch.float64).sort(dim=0)
        reached = positive_weights(self.weights, ascending)[order].cumsum(0)
        place = (reached < needed - LEFT_OUT_ROUNDING).sum(0, keepdim=True).clamp(max=len(self) - 1)
        return ascending.gather(0, place).squeeze(0)


@dataclass(frozen=True, eq=False)
class LeftOutPredictions:
    """What fits to other rows predict for rows, and what was observed there.

    Attributes
    ----------
    values : Tensor
        (n, t), a column for each target, or for each quantile of one.
    targets : Tensor
        (n, t), or (n, 1) of quantiles.
    weights : Tensor or None
        (n,) or None.
    how : str
        How rows were left out, in words.
    """

    values: Tensor
    targets: Tensor
    weights: Tensor | None
    how: str

    @classmethod
    def of(cls, values: Tensor, targets: Tensor, weights: Tensor | None, how: str) -> LeftOutPredictions:
        """Of the rows that have weight, on the CPU, in float64."""
        values, targets = values.detach().cpu().to(torch.float64), targets.cpu().to(torch.float64)
        if weights is not None:
            counted = weights > 0
            values, targets, weights = values[counted], targets[counted], weights[counted]
        return cls(values, targets, weights, how)

    def errors(self, lower: int | slice = slice(None), upper: int | slice = slice(None)) -> LeftOutErrors:
        """How far targets are outside of these columns of the predictions."""
        y = self.targets
        low, high = (self.values[:, part].reshape(len(y), -1) for part in (lower, upper))
        return LeftOutErrors(torch.maximum(low - y, y - high), self.weights)


def checked_level(level: float) -> float:
    """A number between 0 and 1."""
    number = not isinstance(level, bool) and isinstance(level, int | float | np.integer | np.floating)
    if not number or not 0 < level < 1:
        raise InputError(f"level={level!r}: must be one number between 0 and 1.")
    return float(level)


def widened(lower: Tensor, upper: Tensor, reach: Tensor) -> tuple[Tensor, Tensor]:
    """Both ends moved apart by the reach; where a negative one would make them cross, both are the middle.

    >>> widened(torch.tensor([0.0]), torch.tensor([1.0]), torch.tensor([-2.0]))
    (tensor([0.5000]), tensor([0.5000]))
    """
    middle = 0.5 * (lower + upper)
    return torch.minimum(lower - reach, middle), torch.maximum(upper + reach, middle)
