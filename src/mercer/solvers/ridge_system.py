"""The linear system of weighted kernel ridge regression, over the rows that have weight."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from mercer.data.sample import Sample, spread
from mercer.kernels import Kernel
from mercer.operators import Stored, Weighted
from mercer.operators.centred import Centred
from mercer.operators.placement import Placement
from mercer.solvers.centring import centred


@dataclass(frozen=True, eq=False)
class RidgeSystem:
    r"""The symmetric form of :math:`(K + \alpha W^{-1}) c = y`,

    .. math:: (S K S + \alpha I)\, a = S y, \qquad c = S a, \qquad S = \operatorname{diag}(\sqrt{w}),

    over the rows of positive weight; the coefficients of the others are zero. With an `intercept` b without penalty,
    :math:`\sum_i w_i (y_i - f(x_i) - b)^2 + \alpha \|f\|^2` is least where

    .. math:: (P S K S P + \alpha I)\, a = P S y, \qquad c = S a, \qquad P = I - u u^T, \qquad
              u = \frac{\sqrt{w}}{\|\sqrt{w}\|}, \qquad b = \bar y - \frac{u^T S K S a}{\|\sqrt{w}\|},

    so that the coefficients sum to zero. Solvers see the matrix with u lifted from the eigenvalue zero to the mean
    eigenvalue, unless it is `singular`: for descents, which go where they are pulled.
    """

    plain: Any
    roots: Tensor
    data: Sample
    places: Tensor | None
    n_rows: int
    intercept: bool = False
    singular: bool = False

    @classmethod
    def of(
        cls,
        data: Sample,
        kernel: Kernel,
        place: Placement,
        dtype: torch.dtype | None = None,
        *,
        intercept: bool = False,
        singular: bool = False,
    ) -> RidgeSystem:
        """The system of `data`, with products of a `dtype` of its own where one is given."""
        (positive, places), n_rows = data.positive(), len(data)
        operator: Any = place.operator(kernel, positive.rows, dtype=dtype)
        if positive.weights is None:
            roots = torch.ones(operator.shape[0], dtype=torch.float64, device=operator.device)
        else:
            roots = positive.weights.sqrt().to(operator.device)
            operator = Weighted(operator, roots)
        return cls(operator, roots, positive, places, n_rows, intercept, singular)

    def stored(self) -> RidgeSystem:
        """The same with the matrix evaluated once."""
        return replace(self, plain=Stored(torch.as_tensor(self.plain.dense()), self.plain.given))

    @cached_property
    def operator(self) -> Any:
        """What solvers see."""
        if not self.intercept:
            return self.plain
        level = 0.0 if self.singular else float(torch.as_tensor(self.plain.diag()).double().mean())
        return Centred(self.plain, self.roots, level)

    @cached_property
    def scale(self) -> Tensor:
        """The diagonal of S as a column."""
        return self.roots.unsqueeze(1)

    @cached_property
    def _mean_and_rest(self) -> tuple[Tensor, Tensor]:
        return centred(self.data.targets.to(self.roots.device), self.data.weights, wanted=self.intercept)

    @property
    def targets(self) -> Tensor:
        """y, with an intercept less its mean."""
        return self._mean_and_rest[1]

    @cached_property
    def rhs(self) -> Tensor:
        """S y, with an intercept P S y."""
        return self.scale * self.targets

    def projected(self, a: Tensor) -> Tensor:
        """P a, or without an intercept a."""
        if not self.intercept:
            return a
        u = self.operator.lift.u.unsqueeze(1)
        result: Tensor = a - u * (u.T @ a)
        return result

    def coefficients(self, a: Tensor) -> Tensor:
        """c = S a for all rows."""
        return self.spread(self.scale * self.projected(a))

    def constant(self, a: Tensor) -> Tensor:
        """The intercept b (t,); zeros where none is asked for."""
        mean = self._mean_and_rest[0]
        if not self.intercept:
            return mean
        result: Tensor = mean - self.operator.means.to(a) @ self.projected(a)
        return result

    def label_sides(self, cross: Tensor) -> Tensor:
        r"""Right-hand sides (n, m) whose solutions give the weights of labels, from k(x, x_i) (m, n).

        With an intercept :math:`P (S k_x - S K s / s^T s)`.
        """
        sides = self.scale * self.select(cross.T)
        if not self.intercept:
            return sides
        return self.projected(sides - self.operator.means.to(sides).unsqueeze(1))

    def label_weights(self, a: Tensor) -> Tensor:
        """The weights of labels, (n, m), of the solutions for `label_sides`; with an intercept they sum to one."""
        if not self.intercept:
            return self.coefficients(a)
        share = self.roots.square().to(a)
        return self.spread(self.scale * self.projected(a) + (share / share.sum()).unsqueeze(1))

    def select(self, values: Tensor) -> Tensor:
        """The rows of positive weight."""
        return values if self.places is None else values[self.places.to(values.device)]

    def spread(self, values: Tensor) -> Tensor:
        """Values of the rows of positive weight, with zeros for the others."""
        return spread(values, self.places, self.n_rows)
