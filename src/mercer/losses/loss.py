"""What every loss has: value, derivatives, and checks of custom losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from mercer.core.errors import InputError, InputTypeError
from mercer.losses.dials import ALIKE, ROWS_ALONE


@dataclass(frozen=True)
class Loss:
    """A function l(y, f) of a target and a prediction, applied to every element of two tensors of one shape.

    The loss of a row depends on that row alone: fits add losses up, and leave rows out to choose alpha.

    One method, `value`, makes a custom loss; derivatives come from torch where they are not written down. A loss
    that is not convex says so with ``convex = False`` and is then minimised to a local solution.

    Attributes
    ----------
    convex : bool
        Whether l(y, .) is convex for every y.
    smooth : bool
        Whether it has a derivative everywhere, so that Newton's method applies; one with kinks must be a
        `PiecewiseLinear`.
    strict : bool
        Whether it is strictly convex for every y, so that one intercept is best.
    quadratic : bool
        Whether it is, in f: then one exact Newton step is enough.
    for_numbers, for_classes : bool
        Whether estimators of these take it by its name.
    joint : bool
        Whether one target has several predictions: f is then (n, t), y is (n,), and `hessian` gives (n, t, t).

    Examples
    --------
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
    strict = False
    quadratic = False
    joint = False
    for_numbers = True
    for_classes = False

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

    def look(self, y: Tensor, f: Tensor) -> tuple[Tensor, Tensor]:
        """Value and derivative."""
        return self.value(y, f), self.gradient(y, f)

    def parabola(self, y: Tensor, f: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Value and both derivatives."""
        return *self.look(y, f), self.hessian(y, f)

    def curvature(self, y: Tensor, f: Tensor) -> Callable[[Tensor], Tensor]:
        """The map of changes V of the predictions to the second derivative times V."""
        hessian = self.hessian(y, f)
        return (lambda V: torch.einsum("nij,nj->ni", hessian, V)) if self.joint else (lambda V: hessian * V)

    def corners(self, y: Tensor, f: Tensor, d: Tensor) -> Tensor | None:
        """The s, in any order, where the slope of the losses at f + s d has corners; None where it bends anywhere."""
        return None

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

    def in_units(self, unit: float) -> Loss:
        """The loss whose parameters in units of y are multiplied by `unit`."""
        return self

    def check_targets(self, y: Tensor) -> None:
        """Raise `InputError` for targets that have no meaning here."""

    def check(self, y: Tensor, f: Tensor) -> None:
        """Raise an error where solvers cannot minimise this, as far as targets y and predictions f show."""
        if not self.smooth:
            raise InputError(
                f"The loss {self.name!r} has smooth = False, and Newton's method needs a derivative: derive a loss "
                "with kinks from mercer.losses.PiecewiseLinear and give its kinks and slopes."
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
        self._check_rows(y, f)

    def _check_rows(self, y: Tensor, f: Tensor) -> None:
        """Raise an error where the loss of some rows is another one without the others, or in another order."""
        generator = torch.Generator().manual_seed(0)
        drawn = torch.randn(f.shape, generator=generator, dtype=f.dtype).to(f.device)
        some = torch.linspace(len(y) - 1, 0, max(1, min(len(y) // 2, ROWS_ALONE))).long()
        for at in (f + drawn, f + drawn * y.abs().max()):
            alone, together = self._without_others(y[some], at[some]), self.value(y, at)[some]
            other = ~torch.isclose(alone, together, ALIKE, ALIKE, equal_nan=True).reshape(len(some), -1).all(1).cpu()
            if bool(other.any()):
                row = int(some[other].min())
                raise InputError(
                    f"The loss {self.name!r} of row {row} depends on other rows: value(y, f) must give each target's "
                    "loss from that target and its prediction alone, as fits add these up and leave rows out. "
                    "Losses of pairs or of rankings cannot be used; compute numbers such as a mean of all y before "
                    "the fit, and give them to the loss as its parameters."
                )

    def _without_others(self, y: Tensor, f: Tensor) -> Tensor:
        """The loss of these rows; NaN where it wants as many as there were before."""
        try:
            value = self.value(y, f)
        except (RuntimeError, ValueError, IndexError):
            return torch.full_like(y, torch.nan)
        return value if value.shape == y.shape else torch.full_like(y, torch.nan)


class Margin(Loss):
    """A loss of labels y = -1 or 1 that depends on the margin y f."""

    for_numbers = False
    for_classes = True

    def check_targets(self, y: Tensor) -> None:
        if not bool((y.abs() == 1).all()):
            raise InputError(f"The loss {self.name!r} needs targets -1 and 1, got {float(y[y.abs() != 1][0]):g}.")


def require(loss: Loss, name: str, holds: Callable[[Any], bool], what: str) -> None:
    """Raise an error where a parameter is no finite number for which this holds."""
    value = getattr(loss, name)
    words = f"{type(loss).__name__}({name}={value!r}): must be {what}."
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputTypeError(words)
    if not math.isfinite(value) or not holds(value):
        raise InputError(words)
