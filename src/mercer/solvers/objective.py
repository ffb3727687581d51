"""The objective of a fit: weighted losses plus alpha times the squared norm, over any span of functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from mercer.core.arrays import check_finite
from mercer.core.errors import InputError
from mercer.losses import Loss, PiecewiseLinear
from mercer.solvers.decompose import eigh
from mercer.solvers.dials import BISECTIONS, BLOCKS, NEXT, SAME
from mercer.solvers.system import SMALLEST_ALPHA

Map = Callable[[Tensor], Tensor]
"""A linear map of values (n, t)."""


class Span(Protocol):
    """Functions f = sum_j c_j b_j, known by their values at n rows; coefficients are (m, t), values (n, t)."""

    @property
    def n(self) -> int: ...

    @property
    def m(self) -> int: ...

    @property
    def device(self) -> torch.device: ...

    @property
    def mean_diag(self) -> float:
        """The mean of k(x, x) over the rows, a scale."""

    def values(self, c: Tensor) -> Tensor:
        """The values f at the rows."""

    def inner(self, c: Tensor, other: Tensor, other_values: Tensor) -> float:
        """The inner product of two functions, of which the second is given by its values too."""

    def coarse(self) -> Span | None:
        """A span nearby in which steps cost little, with coefficients of the same meaning; None where there is none."""

    def descended(self, objective: Objective, start: Any, tell: Any = None) -> Known | None:
        """A function near the minimum, for less than Newton steps cost; None where these are as good from the start.

        `tell` is a callback as that of `minimise`.
        """

    def predictions(self, c: Tensor) -> Tensor:
        """The values f at the rows, as a model with these coefficients predicts them."""

    def excess(self, objective: Objective, c: Tensor, f: Tensor) -> Tensor:
        """How far the objective with predictions f, intercept included, is above the least, for each column."""

    def newton(self, terms: Terms, c: Tensor, tol: float, at: Tensor | None = None) -> Any:
        """The Newton step from the coefficients c, where the values with intercept are those of the terms; a `Step`.

        Losses are replaced by parabolas that touch them there, or at the values `at`.
        """

    def dual_variables(self, c: Tensor) -> Tensor | None:
        """The dual variables (n, t) of coefficients, None where the coefficients do not tell."""

    def from_dual(self, dual: Tensor, c: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Coefficients and values for dual variables near those of c, which has these values."""

    def dual_square(self, dual: Tensor, values: Tensor) -> float:
        """The squared norm of the function sum_i dual_i k(x_i, .)."""

    @property
    def note(self) -> str:
        """How steps are found, in words."""


@dataclass(frozen=True, eq=False)
class Step:
    """A direction: changes of the coefficients, of the values (with the intercept's) and of the intercept.

    `exact` tells that its system was solved to rounding.
    """

    c: Tensor
    f: Tensor
    b: Tensor
    exact: bool = False


@dataclass(frozen=True, eq=False)
class Known:
    """A function of a span that is known from before: coefficients, intercept, values at the rows, dual variables.

    With the intercept in the values, (n, t); dual variables are None where a loss has none.
    """

    value: Tensor
    intercept: Tensor
    fitted: Tensor
    dual: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Objective:
    r"""The function to minimise,

    .. math:: J(f, b) = \sum_i w_i\, l(y_i, f(x_i) + b) + \alpha \|f\|^2.

    `targets` are (n, t) for t separate predictions, or (n,) for a joint loss of `outputs` predictions; `weights` are
    (n,) or None. The intercept b has no penalty. `units` are the weights of single rows, (n,), or None for one:
    rows of more are repeated ones.
    """

    loss: Loss
    targets: Tensor
    alpha: float
    weights: Tensor | None = None
    intercept: bool = False
    outputs: int = 1
    units: Tensor | None = None

    def __post_init__(self) -> None:
        if not SMALLEST_ALPHA <= self.alpha < float("inf"):
            raise InputError(f"alpha={self.alpha}: must be a finite number that is at least {SMALLEST_ALPHA:.2g}.")

    def check(self) -> None:
        """Raise an error where targets have no meaning or the loss cannot be minimised, as far as f = 0 shows."""
        check_finite(self.targets, "The targets")
        self.loss.check_targets(self.targets)
        self.loss.check(self.targets, self.targets.new_zeros(len(self.targets), self.outputs))

    @cached_property
    def w(self) -> Tensor | float:
        """The weights as a column."""
        return 1.0 if self.weights is None else self.weights.unsqueeze(1)

    @property
    def leaving(self) -> Tensor | float:
        """The weight that is gone where a row is left out, as a column: one copy of it, of less than one all of it."""
        if self.weights is None:
            return 1.0
        units = torch.ones_like(self.weights) if self.units is None else self.units
        return torch.minimum(self.weights, units).unsqueeze(1)

    @property
    def copies(self) -> Tensor | float:
        """How often each row is there, as a column."""
        return self.w / self.leaving

    def look(self, f: Tensor) -> tuple[Tensor, Tensor]:
        """The weighted loss of each row, (n, 1) or (n, t), and its derivative in each value, (n, t)."""
        value, slope = self.loss.look(self.targets, f)
        return (value.unsqueeze(1) if self.loss.joint else value) * self.w, slope * self.w

    def parabola(self, f: Tensor) -> tuple[float, Tensor, Tensor]:
        """The sum of the losses, the derivative in each value (n, t) and the second ones, (n, t, t) or (n, 1, t)."""
        value, slope, bend = self.loss.parabola(self.targets, f)
        total = float((value.reshape(len(f), -1) * self.w).sum())
        return total, slope * self.w, bend.reshape(len(f), -1, f.shape[1]) * torch.as_tensor(self.w).reshape(-1, 1, 1)

    def losses(self, f: Tensor) -> Tensor:
        """The weighted loss of each row, (n, 1) or (n, t)."""
        value = self.loss.value(self.targets, f)
        return (value.unsqueeze(1) if self.loss.joint else value) * self.w

    def loss_sum(self, f: Tensor) -> float:
        return float(self.losses(f).sum())

    def gradient(self, f: Tensor) -> Tensor:
        """The derivative of the weighted losses in each value, (n, t)."""
        return self.loss.gradient(self.targets, f) * self.w

    def at(self, f: Tensor) -> Terms:
        """The losses at values f, (n, t)."""
        return Terms(self, f)

    def best_intercept(self, f: Tensor) -> Tensor:
        """For each column the middle of the b that minimise the loss of f + b; 0 if that is not convex."""
        if not self.intercept or self.loss.joint or not self.loss.convex:
            return f.new_zeros(f.shape[1])
        if isinstance(self.loss, PiecewiseLinear):
            return self._best_kink(self.loss, f)
        reach = 1.0 + float(self.targets.abs().max()) + float(f.abs().max())
        low, high = f.new_full((f.shape[1],), -reach), f.new_full((f.shape[1],), reach)
        b, before = torch.zeros_like(low), high
        for _ in range(BISECTIONS):
            slope, bend = self.gradient(f + b).sum(0), (self.loss.hessian(self.targets, f + b) * self.w).sum(0)
            low, high = torch.where(slope > 0, low, b), torch.where(slope > 0, b, high)
            step = -slope / bend
            good = (b + step >= low) & (b + step <= high) & (step.abs() <= before.abs() / 2)
            before = torch.where(good, step, (low + high) / 2 - b)
            b = b + before
            if bool((before.abs() <= SAME * reach).all()):
                break
        return b + (self._flat_until(f + b, reach) - self._flat_until(f + b, -reach)) / 2

    def _flat_until(self, f: Tensor, reach: float) -> Tensor:
        """How far from f towards f + reach, in each column, the loss stays what it is; 0 where it never changes."""
        zero = f.new_zeros(f.shape[1])
        near, far = zero, zero + abs(reach)
        if not bool(self._is_flat(f + NEXT * reach).any()) or bool(self._is_flat(f + reach).any()):
            return zero
        for _ in range(BISECTIONS):
            middle = (near + far) / 2
            flat = self._is_flat(f + math.copysign(1.0, reach) * middle)
            near, far = torch.where(flat, middle, near), torch.where(flat, far, middle)
        return near

    def _is_flat(self, f: Tensor) -> Tensor:
        """For each column whether the slopes of the losses cancel, up to rounding."""
        slopes = self.gradient(f)
        return slopes.sum(0).abs() <= SAME * slopes.abs().sum(0)

    def _best_kink(self, loss: PiecewiseLinear, f: Tensor) -> Tensor:
        """The middle of the intercepts of least loss: the slope of the sum rises through zero at one kink or two."""
        slopes = loss.slopes(self.targets) * self.w
        kinks, order = (loss.kinks(self.targets) - f).flatten(0, 1).sort(dim=0)
        slope = slopes[0].sum(0) + slopes.diff(dim=0).flatten(0, 1).gather(0, order).cumsum(0)
        rounding = SAME * slopes.abs().sum((0, 1))
        first, last = ((slope > limit).to(torch.uint8).argmax(0, keepdim=True) for limit in (-rounding, rounding))
        return (kinks.gather(0, first) + kinks.gather(0, torch.maximum(first, last))).squeeze(0) / 2


@dataclass(frozen=True, eq=False)
class Terms:
    """The weighted losses at values f, (n, t): their sum and derivatives, computed once, when first asked for."""

    objective: Objective
    f: Tensor

    @cached_property
    def _seen(self) -> tuple[Tensor, Tensor]:
        return self.objective.look(self.f)

    @cached_property
    def total(self) -> float:
        """The sum of the losses."""
        return float(self._seen[0].sum())

    @cached_property
    def gradient(self) -> Tensor:
        """The derivative in each value, (n, t)."""
        return self._seen[1]

    @cached_property
    def curvature(self) -> Map:
        """The second derivative as a map of changes of the values."""
        curvature = self.objective.loss.curvature(self.objective.targets, self.f)
        return lambda V: curvature(V) * self.objective.w

    @cached_property
    def root(self) -> Root:
        """A root of the second derivative, with what is below zero left out."""
        objective = self.objective
        hessian = objective.loss.hessian(objective.targets, self.f)
        if objective.loss.joint:
            return BlockRoot(hessian * torch.as_tensor(objective.w).reshape(-1, 1, 1))
        return DiagonalRoot((hessian * objective.w).clamp(min=0.0).sqrt())

    def touching(self, at: Tensor | None) -> Terms:
        """The same with the derivatives of parabolas that touch the losses here, or at `at`."""
        return self if at is None else Touching(self.objective, self.f, self.objective.at(at))


@dataclass(frozen=True, eq=False)
class Touching(Terms):
    """Derivatives at f of parabolas that touch the losses `there`."""

    there: Terms

    @cached_property
    def gradient(self) -> Tensor:
        return self.there.gradient + self.curvature(self.f - self.there.f)

    @property
    def curvature(self) -> Map:
        return self.there.curvature

    @property
    def root(self) -> Root:
        return self.there.root


class Root(Protocol):
    """S with S S^T = H, row by row; `scale` are the roots of the diagonal of H."""

    @property
    def scale(self) -> Tensor: ...

    def apply(self, V: Tensor) -> Tensor:
        """S v for v of shape (n, t)."""

    def transposed(self, V: Tensor) -> Tensor:
        """S^T v."""

    def turned(self, V: Tensor) -> tuple[Tensor, Tensor, Map]:
        """The eigenvalues of H (n, t), v along its eigenvectors, and the map back."""


@dataclass(frozen=True, eq=False)
class DiagonalRoot:
    """The root of separate second derivatives, (n, t)."""

    s: Tensor

    @property
    def scale(self) -> Tensor:
        return self.s

    def apply(self, V: Tensor) -> Tensor:
        return self.s * V

    transposed = apply

    def turned(self, V: Tensor) -> tuple[Tensor, Tensor, Map]:
        return self.s.square().expand_as(V), V, lambda W: W


@dataclass(frozen=True, eq=False)
class BlockRoot:
    """Roots (n, t, t) of the second derivatives of a joint loss; `scale` (n, t) are those of their diagonals."""

    blocks: Tensor

    @cached_property
    def S(self) -> Tensor:
        roots = []
        for part in self.blocks.split(BLOCKS):
            values, vectors = eigh(part, "The second derivatives of the losses")
            roots.append((vectors * values.clamp(min=0.0).sqrt().unsqueeze(1)) @ vectors.mT)
        return torch.cat(roots)

    @property
    def scale(self) -> Tensor:
        return self.blocks.diagonal(dim1=1, dim2=2).clamp(min=0.0).sqrt()

    def apply(self, V: Tensor) -> Tensor:
        return torch.einsum("nij,nj->ni", self.S, V)

    transposed = apply

    def turned(self, V: Tensor) -> tuple[Tensor, Tensor, Map]:
        values, vectors = eigh(self.S, "The second derivatives of the losses")
        along = torch.einsum("nij,ni->nj", vectors, V)
        return values.square(), along, lambda W: torch.einsum("nij,nj->ni", vectors, W)
