"""Landmarks as an orthonormal basis: the same functions, in coordinates in which sums over rows lose no digits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.blocks import rows_at_once
from mercer.functions.basis import Basis
from mercer.operators.placement import Placement
from mercer.solvers.dials import WELL_CONDITIONED
from mercer.solvers.row_blocks import Block


def well_conditioned(basis: Tensor) -> bool:
    """Whether the columns of E, with E^T K_mm E = I, are alike: their squared norms are 1 / the eigenvalues of K_mm."""
    norms = basis.norm(dim=0)
    return len(norms) == len(basis) and bool(norms.max() <= WELL_CONDITIONED**0.5 * norms.min())


@dataclass(frozen=True, eq=False)
class Orthonormal:
    r"""Functions of a basis that are orthonormal in the RKHS,

    .. math:: e_j = \sum_i E_{ij} b_i, \qquad E^T K_{mm} E = I.

    Sums over rows of b b^T carry an error of n times the rounding error, and E magnifies it by the condition of K_mm:
    predictions of a smooth kernel would depend on the order of the rows in their third digit. In sums of e e^T the
    error stays what it is.
    """

    of: Basis
    coordinates: Tensor

    @property
    def note(self) -> str:
        return self.of.note

    @property
    def size(self) -> int:
        return self.coordinates.shape[1]

    def at(self, rows: Points, place: Placement) -> InBasis:
        return InBasis(self.of.at(rows, place), self.coordinates)

    def penalty(self, place: Placement) -> None:
        return None

    def digest(self) -> str:
        return self.of.digest()


@dataclass(frozen=True, eq=False)
class OrthonormalBlocks:
    """Blocks of rows with the values of orthonormal functions."""

    blocks: Any
    basis: Tensor

    def __iter__(self) -> Iterator[Block]:
        return (block._replace(kernel=InBasis(block.kernel, self.basis)) for block in self.blocks)


class InBasis:
    """The lazy matrix K E in float64; its rows are computed some at a time."""

    dtype = torch.float64

    def __init__(self, kernel: Any, basis: Tensor) -> None:
        self.kernel, self.device = kernel, torch.device(kernel.device)
        self.basis = basis.to(self.device)
        self.shape = (kernel.shape[0], basis.shape[1])
        self.memory_budget = getattr(kernel, "memory_budget", None)

    def row_diag(self) -> Tensor:
        """k(x, x) at the rows, in float64."""
        peaks: Tensor = self.kernel.row_diag()
        return peaks

    def rows(self, part: slice) -> Tensor:
        """Some of the rows, from kernel rows of which there are more columns."""
        n, m = self.kernel.shape
        start, stop, _ = part.indices(n)
        step = rows_at_once(m, self.device)
        values = self.basis.new_empty(max(0, stop - start), self.basis.shape[1])
        for first in range(start, stop, step):
            some = slice(first, min(first + step, stop))
            K = torch.as_tensor(self.kernel.rows(some)).to(self.basis)
            torch.mm(K, self.basis, out=values[first - start : some.stop - start])
        return values
