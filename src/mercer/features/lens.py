"""A linear change of the columns of X, after which some directions matter more than others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.kernels.pair import vectors
from mercer.solvers.decompose import eigh


@dataclass(frozen=True, eq=False)
class Lens:
    r"""The map :math:`x \mapsto M^{1/2} (x - c) / s`: columns in units of their spread, then weighted.

    Attributes
    ----------
    centre, spread : Tensor
        Of the columns, (d,).
    root : Tensor
        The square root of M, (d, d), or of its diagonal, (d,).
    """

    centre: Tensor
    spread: Tensor
    root: Tensor

    @classmethod
    def of(cls, rows: Tensor, weights: Tensor) -> Lens:
        """The lens that only scales columns to a standard deviation of one; constant ones keep their unit.

        >>> lens = Lens.of(torch.tensor([[1.0, 5.0], [3.0, 5.0]]).double(), torch.ones(2).double())
        >>> lens.rows(torch.tensor([[3.0, 5.0]]).double())
        tensor([[1., 0.]], dtype=torch.float64)
        """
        share = (weights / weights.sum()).unsqueeze(1)
        unit = rows.abs().amax(0)
        unit = torch.where(unit > 0, unit, 1.0)  # squares of what is beyond 1e154 are no numbers
        small = rows / unit
        centre = (share * small).sum(0)
        variance = (share * (small - centre).square()).sum(0)
        varies = variance > (8.0 * torch.finfo(torch.float64).eps) ** 2
        spread = torch.where(varies, variance.sqrt() * unit, unit)
        return cls(centre * unit, spread, torch.ones_like(spread))

    @property
    def matrix(self) -> Tensor:
        """M, or its diagonal, in units of the spread of the columns."""
        return self.root.square() if self.root.ndim == 1 else self.root @ self.root

    @property
    def diagonal(self) -> Tensor:
        return self.matrix if self.root.ndim == 1 else self.matrix.diagonal()

    def rows(self, x: Tensor) -> Tensor:
        """What rows look like through the lens, in float64."""
        d = len(self.centre)
        if x.ndim != 2 or x.shape[1] != d:
            raise InputError(f"Points or landmarks have shape {tuple(x.shape)}; expected (m, {d}), the columns of X.")
        scaled = (x.to(self.root) - self.centre) / self.spread
        return scaled * self.root if self.root.ndim == 1 else scaled @ self.root

    def points(self, points: Points) -> Points:
        return Points(self.rows(vectors(points)))

    def with_matrix(self, matrix: Tensor) -> Lens:
        """The same with another M; the unit of M is its largest diagonal entry."""
        diagonal = matrix if matrix.ndim == 1 else matrix.diagonal()
        matrix = matrix / diagonal.max()
        return replace(self, root=matrix.sqrt() if matrix.ndim == 1 else _square_root(matrix))


def _square_root(matrix: Tensor) -> Tensor:
    values, vectors_ = eigh(matrix, "The average of gradient products")
    return (vectors_ * values.clamp(min=0.0).sqrt()) @ vectors_.mT
