"""Losses made of straight pieces."""

from __future__ import annotations

import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.losses.loss import Loss, Margin, require
from mercer.losses.registry import register


class PiecewiseLinear(Loss):
    """A convex loss made of straight pieces, zero at its least: `kinks` says where they meet, `slopes` what they are.

    Their number k is the same for every target. Solvers work with the two, so these are all that a custom loss
    needs.
    """

    smooth = False

    def kinks(self, y: Tensor) -> Tensor:
        """The k ascending predictions, ``(k, *y.shape)``, at which the slope changes."""
        raise NotImplementedError

    def slopes(self, y: Tensor) -> Tensor:
        """The k + 1 ascending slopes, ``(k + 1, *y.shape)``; the first is <= 0 and the last >= 0."""
        raise NotImplementedError

    def check(self, y: Tensor, f: Tensor) -> None:
        kinks, slopes = self.kinks(y), self.slopes(y)
        if kinks.shape[1:] != y.shape or slopes.shape != (len(kinks) + 1, *y.shape):
            raise InputError(
                f"The loss {self.name!r} has kinks of shape {tuple(kinks.shape)} and slopes of shape "
                f"{tuple(slopes.shape)} for targets of shape {tuple(y.shape)}: they must be (k, *y.shape) and "
                "(k + 1, *y.shape)."
            )
        if not bool((kinks.diff(dim=0) >= 0).all() and (slopes.diff(dim=0) >= 0).all()):
            raise InputError(f"The loss {self.name!r} is not convex: its kinks and its slopes must ascend.")
        if not bool((slopes[0] <= 0).all() and (slopes[-1] >= 0).all()):
            raise InputError(
                f"The loss {self.name!r} has no least value: its first slope must be <= 0 and its last >= 0."
            )
        self._check_numbers(y, f)

    def value(self, y: Tensor, f: Tensor) -> Tensor:
        kinks, slopes = self.kinks(y), self.slopes(y)
        right, left = slopes.clamp(min=0.0).diff(dim=0), (-slopes).clamp(min=0.0).diff(dim=0)
        return (right * (f - kinks).clamp(min=0.0) - left * (kinks - f).clamp(min=0.0)).sum(0)

    def gradient(self, y: Tensor, f: Tensor) -> Tensor:
        """A subgradient: at a kink the slope to its right."""
        slopes = self.slopes(y)
        return slopes[0] + (slopes.diff(dim=0) * (f >= self.kinks(y))).sum(0)

    def hessian(self, y: Tensor, f: Tensor) -> Tensor:
        return torch.zeros_like(f)


@register("hinge")
class Hinge(PiecewiseLinear, Margin):
    """max(0, 1 - y f) for labels y = -1 or 1: the support vector machine with C = 1 / (2 alpha).

    >>> Hinge().value(torch.ones(2), torch.tensor([-1.0, 2.0]))
    tensor([2., 0.])
    """

    def kinks(self, y: Tensor) -> Tensor:
        return y.unsqueeze(0)

    def slopes(self, y: Tensor) -> Tensor:
        return torch.stack([-(y > 0).to(y), (y < 0).to(y)])


@register("quantile")
class Quantile(PiecewiseLinear):
    """level * (y - f) where f is below y and (1 - level) * (f - y) above: least at the quantile of that level.

    >>> Quantile(level=0.9).value(torch.zeros(2), torch.tensor([-1.0, 1.0]))
    tensor([0.9000, 0.1000])
    """

    level: float = 0.5

    def __post_init__(self) -> None:
        require(self, "level", lambda level: 0 < level < 1, "a number between 0 and 1")

    def kinks(self, y: Tensor) -> Tensor:
        return y.unsqueeze(0)

    def slopes(self, y: Tensor) -> Tensor:
        return torch.stack([torch.full_like(y, -self.level), torch.full_like(y, 1 - self.level)])


@register("epsilon_insensitive")
class EpsilonInsensitive(PiecewiseLinear):
    """max(0, |y - f| - epsilon): support vector regression with C = 1 / (2 alpha).

    >>> EpsilonInsensitive(epsilon=0.5).value(torch.zeros(2), torch.tensor([0.4, -2.0]))
    tensor([0.0000, 1.5000])
    """

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        require(self, "epsilon", lambda epsilon: epsilon >= 0, "a finite number >= 0")

    def in_units(self, unit: float) -> EpsilonInsensitive:
        return EpsilonInsensitive(self.epsilon * unit)

    @property
    def name(self) -> str:
        return "epsilon_insensitive"

    def kinks(self, y: Tensor) -> Tensor:
        return torch.stack([y - self.epsilon, y + self.epsilon])

    def slopes(self, y: Tensor) -> Tensor:
        return torch.stack([torch.full_like(y, s) for s in (-1.0, 0.0, 1.0)])
