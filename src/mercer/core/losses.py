"""Losses: how much a prediction f costs when the target is y, with what solvers need to know of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from mercer.core.errors import InputError, InputTypeError


@dataclass(frozen=True)
class Loss:
    """A function l(y, f) of a target and a prediction, applied to every element of two tensors of one shape.

    One method, `value`, makes a loss of one's own; derivatives come from torch where they are not written down. A loss
    that is not convex says so with ``convex = False`` and is then minimised to a local solution.

    Attributes
    ----------
    convex : whether l(y, .) is convex for every y.
    smooth : whether it has a derivative everywhere, so that Newton's method applies; one with kinks must be a
        `PiecewiseLinear`.
    quadratic : whether it is, in f: then one exact Newton step is enough.
    joint : whether one target has several predictions: f is then (n, t), y is (n,), and `hessian` gives (n, t, t).

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Cauchy(Loss):
    ...     convex = False
    ...     def value(self, y, f):
    ...         return torch.log1p((y - f) ** 2)
    >>> Cauchy().gradient(torch.zeros(1), torch.ones(1)), Cauchy().hessian(torch.zeros(1), torch.zeros(1))
    (tensor([1.]), tensor([2.]))
    """

    convex = True
    smooth = True
    quadratic = False
    joint = False

    @property
    def name(self) -> str:
        """The name in words of the API."""
        return type(self).__name__.lower()

    def value(self, y: Tensor, f: Tensor) -> Tensor:
        """l(y, f), one number for each target."""
        raise NotImplementedError(f"{type(self).__name__} needs a method value(y, f).")

    def gradient(self, y: Tensor, f: Tensor) -> Tensor:
        """The derivative in f."""
        with torch.enable_grad():
            return self._slope(y, f.detach().requires_grad_(True)).detach()

    def hessian(self, y: Tensor, f: Tensor) -> Tensor:
        """The second derivative in f."""
        with torch.enable_grad():
            at = f.detach().requires_grad_(True)
            first = self._slope(y, at, create_graph=True)
            if not first.requires_grad:
                return torch.zeros_like(f)
            return torch.autograd.grad(first.sum(), at)[0].detach()

    def _slope(self, y: Tensor, at: Tensor, create_graph: bool = False) -> Tensor:
        try:
            value = self.value(y, at)
        except RuntimeError as error:
            if "numpy()" not in str(error):
                raise
            raise self._not_torch() from error
        if not isinstance(value, Tensor) or not value.requires_grad:
            raise self._not_torch()
        return torch.autograd.grad(value.sum(), at, create_graph=create_graph)[0]

    def _not_torch(self) -> InputTypeError:
        return InputTypeError(
            f"The loss {self.name!r}: value(y, f) must return a tensor computed with torch from f, not with numpy, so "
            "that it has a derivative."
        )

    def conjugate(self, y: Tensor, v: Tensor) -> Tensor:
        """The largest v f - l(y, f) over all f; infinite where it has no bound."""
        raise InputError(f"The loss {self.name!r} has no conjugate.")

    def check_targets(self, y: Tensor) -> None:
        """Raise `InputError` for targets that have no meaning here."""

    def check(self, y: Tensor, f: Tensor) -> None:
        """Raise an error where solvers cannot minimise this, as far as targets y and predictions f show."""
        if not self.smooth:
            raise InputError(
                f"The loss {self.name!r} has smooth = False, and Newton's method needs a derivative: derive a loss "
                "with kinks from mercer.core.losses.PiecewiseLinear and give its kinks and slopes."
            )
        self._check_numbers(y, f)

    def _check_numbers(self, y: Tensor, f: Tensor) -> None:
        value = self.value(y, f)
        if not isinstance(value, Tensor):
            raise self._not_torch()
        if value.shape != y.shape:
            raise InputError(
                f"The loss {self.name!r}: value(y, f) has shape {tuple(value.shape)} for targets of shape "
                f"{tuple(y.shape)}: it must return one number for each target."
            )
        for what, numbers in (("value", value), ("derivative", self.gradient(y, f))):
            if not bool(numbers.isfinite().all()):
                at = int((~numbers.isfinite()).reshape(len(y), -1).any(1).nonzero()[0])
                raise InputError(
                    f"The loss {self.name!r} has a {what} that is not finite, for the target {y[at].tolist()} and the "
                    f"prediction {f[at].tolist()}: it must be a finite number everywhere."
                )


@dataclass(frozen=True)
class Squared(Loss):
    """(y - f)^2, without a half: alpha is that of ridge regression.

    >>> Squared().value(torch.tensor(1.0), torch.tensor(3.0))
    tensor(4.)
    """

    quadratic = True

    def value(self, y: Tensor, f: Tensor) -> Tensor:
        return (y - f).square()

    def gradient(self, y: Tensor, f: Tensor) -> Tensor:
        return 2 * (f - y)

    def hessian(self, y: Tensor, f: Tensor) -> Tensor:
        return torch.full_like(f, 2.0)

    def conjugate(self, y: Tensor, v: Tensor) -> Tensor:
        return v * y + v.square() / 4


@dataclass(frozen=True)
class Huber(Loss):
    """(y - f)^2 up to |y - f| = delta and a straight line beyond: far targets pull no harder than near ones.

    >>> Huber(delta=1.0).value(torch.zeros(2), torch.tensor([0.5, 3.0]))
    tensor([0.2500, 5.0000])
    """

    delta: float = 1.345

    def __post_init__(self) -> None:
        _require(self, "delta", lambda delta: delta > 0, "a finite number > 0")

    def value(self, y: Tensor, f: Tensor) -> Tensor:
        size = (y - f).abs()
        return torch.where(size <= self.delta, size.square(), self.delta * (2 * size - self.delta))

    def gradient(self, y: Tensor, f: Tensor) -> Tensor:
        return 2 * (f - y).clamp(-self.delta, self.delta)

    def hessian(self, y: Tensor, f: Tensor) -> Tensor:
        return 2 * ((y - f).abs() <= self.delta).to(f)

    def conjugate(self, y: Tensor, v: Tensor) -> Tensor:
        return torch.where(v.abs() <= 2 * self.delta, v * y + v.square() / 4, torch.inf)


class _Margin(Loss):
    """A loss of labels y = -1 or 1 that depends on the margin y f."""

    def check_targets(self, y: Tensor) -> None:
        if not bool((y.abs() == 1).all()):
            raise InputError(f"The loss {self.name!r} needs targets -1 and 1, got {float(y[y.abs() != 1][0]):g}.")


@dataclass(frozen=True)
class Logistic(_Margin):
    """log(1 + exp(-y f)) for labels y = -1 or 1: the logarithm of P(y) = 1 / (1 + exp(-y f)) with its sign changed.

    >>> Logistic().value(torch.tensor(1.0), torch.tensor(0.0))
    tensor(0.6931)
    """

    def value(self, y: Tensor, f: Tensor) -> Tensor:
        return -logsigmoid(y * f)

    def gradient(self, y: Tensor, f: Tensor) -> Tensor:
        return -y * torch.sigmoid(-y * f)

    def hessian(self, y: Tensor, f: Tensor) -> Tensor:
        return torch.sigmoid(f) * torch.sigmoid(-f)

    def conjugate(self, y: Tensor, v: Tensor) -> Tensor:
        p = -y * v
        return torch.where((p < 0) | (p > 1), torch.inf, torch.special.xlogy(p, p) + torch.special.xlogy(1 - p, 1 - p))


@dataclass(frozen=True)
class SquaredHinge(_Margin):
    """max(0, 1 - y f)^2 for labels y = -1 or 1.

    >>> SquaredHinge().value(torch.ones(2), torch.tensor([-1.0, 2.0]))
    tensor([4., 0.])
    """

    @property
    def name(self) -> str:
        return "squared_hinge"

    def value(self, y: Tensor, f: Tensor) -> Tensor:
        return (1 - y * f).clamp(min=0.0).square()

    def gradient(self, y: Tensor, f: Tensor) -> Tensor:
        return -2 * y * (1 - y * f).clamp(min=0.0)

    def hessian(self, y: Tensor, f: Tensor) -> Tensor:
        return 2 * (y * f < 1).to(f)

    def conjugate(self, y: Tensor, v: Tensor) -> Tensor:
        u = -y * v
        return torch.where(u < 0, torch.inf, u.square() / 4 - u)


@dataclass(frozen=True)
class Multinomial(Loss):
    r"""The logistic loss of several classes, for y = 0, 1, ... and one prediction per class,

    .. math:: l(y, f) = \log \textstyle\sum_k e^{f_k} - f_y, \qquad P(k) = e^{f_k} / \sum_l e^{f_l}.

    >>> Multinomial().value(torch.tensor([0]), torch.zeros(1, 3))
    tensor([1.0986])
    """

    joint = True

    def value(self, y: Tensor, f: Tensor) -> Tensor:
        return torch.logsumexp(f, 1) - f.gather(1, y.long().unsqueeze(1)).squeeze(1)

    def gradient(self, y: Tensor, f: Tensor) -> Tensor:
        return torch.softmax(f, 1) - _one_hot(y, f)

    def hessian(self, y: Tensor, f: Tensor) -> Tensor:
        p = torch.softmax(f, 1)
        return torch.diag_embed(p) - p.unsqueeze(2) * p.unsqueeze(1)

    def conjugate(self, y: Tensor, v: Tensor) -> Tensor:
        p = v + _one_hot(y, v)
        outside = (p < 0).any(1) | ((p.sum(1) - 1).abs() > 1e-9)
        return torch.where(outside, torch.inf, torch.special.xlogy(p, p.clamp(min=0.0)).sum(1))

    def check_targets(self, y: Tensor) -> None:
        if bool((y < 0).any()) or bool((y != y.floor()).any()):
            raise InputError("The loss 'multinomial' needs targets 0, 1, 2, ...")


class PiecewiseLinear(Loss):
    """A convex loss made of straight pieces, zero at its least: `kinks` says where they meet, `slopes` what they are.

    Their number k is the same for every target. Solvers work with the two, so these are all that a loss of one's own
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

    def conjugate(self, y: Tensor, v: Tensor) -> Tensor:
        kinks, slopes = self.kinks(y), self.slopes(y)
        low, high = slopes[:-1], slopes[1:]
        inside = v.clamp(low, high) - torch.zeros_like(v).clamp(low, high)
        outside = (v < slopes[0] - 1e-12) | (v > slopes[-1] + 1e-12)
        return torch.where(outside, torch.inf, (kinks * inside).sum(0))


@dataclass(frozen=True)
class Hinge(PiecewiseLinear, _Margin):
    """max(0, 1 - y f) for labels y = -1 or 1: the support vector machine with C = 1 / (2 alpha).

    >>> Hinge().value(torch.ones(2), torch.tensor([-1.0, 2.0]))
    tensor([2., 0.])
    """

    def kinks(self, y: Tensor) -> Tensor:
        return y.unsqueeze(0)

    def slopes(self, y: Tensor) -> Tensor:
        return torch.stack([-(y > 0).to(y), (y < 0).to(y)])


@dataclass(frozen=True)
class Quantile(PiecewiseLinear):
    """level * (y - f) where f is below y and (1 - level) * (f - y) above: least at the quantile of that level.

    >>> Quantile(level=0.9).value(torch.zeros(2), torch.tensor([-1.0, 1.0]))
    tensor([0.9000, 0.1000])
    """

    level: float = 0.5

    def __post_init__(self) -> None:
        _require(self, "level", lambda level: 0 < level < 1, "a number between 0 and 1")

    def kinks(self, y: Tensor) -> Tensor:
        return y.unsqueeze(0)

    def slopes(self, y: Tensor) -> Tensor:
        return torch.stack([torch.full_like(y, -self.level), torch.full_like(y, 1 - self.level)])


@dataclass(frozen=True)
class EpsilonInsensitive(PiecewiseLinear):
    """max(0, |y - f| - epsilon): support vector regression with C = 1 / (2 alpha).

    >>> EpsilonInsensitive(epsilon=0.5).value(torch.zeros(2), torch.tensor([0.4, -2.0]))
    tensor([0.0000, 1.5000])
    """

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        _require(self, "epsilon", lambda epsilon: epsilon >= 0, "a finite number >= 0")

    @property
    def name(self) -> str:
        return "epsilon_insensitive"

    def kinks(self, y: Tensor) -> Tensor:
        return torch.stack([y - self.epsilon, y + self.epsilon])

    def slopes(self, y: Tensor) -> Tensor:
        return torch.stack([torch.full_like(y, s) for s in (-1.0, 0.0, 1.0)])


LOSSES: dict[str, type[Loss]] = {
    "squared": Squared,
    "huber": Huber,
    "logistic": Logistic,
    "multinomial": Multinomial,
    "hinge": Hinge,
    "squared_hinge": SquaredHinge,
    "quantile": Quantile,
    "epsilon_insensitive": EpsilonInsensitive,
}
"""The losses by name."""


def get_loss(loss: Any, **parameters: Any) -> Loss:
    """The loss of that name with these parameters; a `Loss` is given back as it is.

    >>> get_loss("quantile", level=0.1)
    Quantile(level=0.1)
    """
    if isinstance(loss, Loss):
        return loss
    if not isinstance(loss, str):
        raise InputTypeError(f"loss={loss!r}: give a name or a mercer.core.losses.Loss.")
    if loss not in LOSSES:
        raise InputError(f"loss={loss!r} is unknown; the losses are {', '.join(map(repr, LOSSES))}.")
    return LOSSES[loss](**parameters)


def _one_hot(y: Tensor, like: Tensor) -> Tensor:
    return torch.zeros_like(like).scatter_(1, y.long().unsqueeze(1), 1.0)


def _require(loss: Loss, name: str, holds: Callable[[Any], bool], what: str) -> None:
    value = getattr(loss, name)
    words = f"{type(loss).__name__}({name}={value!r}): must be {what}."
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputTypeError(words)
    if not math.isfinite(value) or not holds(value):
        raise InputError(words)
