"""The linear system of weighted kernel ridge regression, over the rows that have weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.data.sample import Sample, spread
from mercer.operators import Weighted


@dataclass(frozen=True, eq=False)
class RidgeSystem:
    r"""The symmetric form of :math:`(K + \alpha W^{-1}) c = y`,

    .. math:: (S K S + \alpha I)\, b = S y, \qquad c = S b, \qquad S = \operatorname{diag}(\sqrt{w}),

    over the rows of positive weight; the coefficients of the others are zero.
    """

    operator: Any
    scale: Tensor
    data: Sample
    places: Tensor | None
    n_rows: int

    @classmethod
    def of(cls, data: Sample, gram: Callable[[Points], Any]) -> RidgeSystem:
        """The system of `data`, with `gram` building the operator of its rows."""
        positive, places = data.positive()
        operator = gram(positive.rows)
        if positive.weights is None:
            scale = torch.ones(1, 1, dtype=torch.float64, device=operator.device)
        else:
            root = positive.weights.sqrt().to(operator.device)
            operator, scale = Weighted(operator, root), root.unsqueeze(1)
        return cls(operator, scale, positive, places, len(data.rows))

    @property
    def rhs(self) -> Tensor:
        """S y."""
        return self.scale * self.data.targets.to(self.scale.device)

    def coefficients(self, b: Tensor) -> Tensor:
        """c = S b for all rows."""
        return self.spread(self.scale * b)

    def select(self, values: Tensor) -> Tensor:
        """The rows of positive weight."""
        return values if self.places is None else values[self.places.to(values.device)]

    def spread(self, values: Tensor) -> Tensor:
        """Values of the rows of positive weight, with zeros for the others."""
        return spread(values, self.places, self.n_rows)
