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


@dataclass(frozen=True, eq=False)
class InBasis:
    """The lazy matrix K E in float64; its rows are computed some at a time."""

    kernel: Any
    basis: Tensor
    dtype = torch.float64

    @property
    def shape(self) -> tuple[int, int]:
        return self.kernel.shape[0], self.basis.shape[1]

    @property
    def device(self) -> torch.device:
        return torch.device(self.kernel.device)

    def row_diag(self) -> Tensor:
        """k(x, x) at the rows, in float64."""
        peaks: Tensor = self.kernel.row_diag()
        return peaks

    @property
    def memory_budget(self) -> Any:
        return getattr(self.kernel, "memory_budget", None)

    def rows(self, part: slice) -> Tensor:
        """Some of the rows."""
        basis, (n, m) = self.basis.to(self.device), self.kernel.shape
        start, stop, _ = part.indices(n)
        step = rows_at_once(m, basis.device)
        values = basis.new_empty(max(0, stop - start), basis.shape[1])
        for first in range(start, stop, step):
            some = slice(first, min(first + step, stop))
            K = torch.as_tensor(self.kernel.rows(some)).to(basis)
            torch.mm(K, basis, out=values[first - start : some.stop - start])
        return values
