"""`FusedGram`: the Gram matrix of two samples as an operator whose products run in one fused loop on the GPU."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.formula.evaluate import evaluate
from mercer.formula.simplify import merged, reduced
from mercer.formula.symbols import Program, Statistic
from mercer.kernels.pair import row_values, vectors
from mercer.operators.backends.fused.dials import MOST_COLUMNS
from mercer.operators.backends.fused.launch import dense, diagonal, multiply, padded
from mercer.operators.backends.fused.operands import Operands
from mercer.operators.backends.fused.probe import warped
from mercer.operators.backends.fused.samples import Samples, samples_of


class FusedGram:
    """K(x, z) of a program: products and dense blocks, without the matrix.

    The data are packed at the first product and kept, also for the transpose `T`. `same` says that both samples are
    the same rows, whose diagonal is then exact, `symmetric` that the matrix is, so that a tile can be used twice;
    `notes` tells what took a slower, more accurate path.
    """

    def __init__(
        self,
        program: Program,
        x: Points,
        z: Points,
        *,
        same: bool = False,
        symmetric: bool = False,
        samples: Samples | None = None,
    ) -> None:
        self.program, self.x, self.z, self.same, self.symmetric = program, x, z, same, symmetric
        self.shape, self.device = (len(x), len(z)), vectors(x).device
        self.samples = samples or samples_of(merged(reduced(program)), x, z)
        self.notes = tuple(dict.fromkeys(self.samples.notes))

    @cached_property
    def T(self) -> FusedGram:
        """The transposed Gram matrix, from the same packed data."""
        transposed = FusedGram(self.program, self.z, self.x, same=self.same, samples=self.samples)
        transposed.__dict__["operands"] = self.operands.transposed
        return transposed

    @cached_property
    def operands(self) -> Operands:
        """The packed data."""
        return self.samples.operands

    def product(self, V: Tensor, at_once: int = MOST_COLUMNS) -> Tensor:
        """K V for V of shape (m,) or (m, t), so many columns at once."""
        return self._multiplied(self.operands, None, V, at_once)

    def rows_product(self, index: Tensor, V: Tensor, at_once: int = MOST_COLUMNS) -> Tensor:
        """The rows of K at `index` times V."""
        if len(index) == 0:
            return V.new_empty(0, *V.shape[1:])
        return self._multiplied(self.operands.with_rows(padded(index, self.samples.pad)), index, V, at_once)

    def _multiplied(self, data: Operands, index: Tensor | None, V: Tensor, at_once: int) -> Tensor:
        n = self.shape[0] if index is None else len(index)
        columns = V.detach().reshape(len(V), -1)
        t = columns.shape[1]
        if t <= at_once:
            return self._some_columns(data, index, columns)[:n].float().reshape(n, *V.shape[1:])
        out = torch.empty(n, t, dtype=torch.float32, device=self.device)
        for some, result in zip(columns.split(at_once, 1), out.split(at_once, 1), strict=True):
            result.copy_(self._some_columns(data, index, some)[:n])
        return out

    def _some_columns(self, data: Operands, index: Tensor | None, V: Tensor) -> Tensor:
        """K V in float64, with the padded rows."""
        total = multiply(data, V.float(), mirror=self.symmetric and index is None)
        if self.same:
            missing = self._missing_on_diagonal.unsqueeze(1) * V
            total[: len(missing) if index is None else len(index)] += missing if index is None else missing[index]
        return total

    def block(self, rows: Tensor, columns: Tensor) -> Tensor:
        """The dense matrix of some rows and columns."""
        out = dense(self.operands, rows, columns)
        if self.same:
            i, j = (rows.unsqueeze(1) == columns).nonzero(as_tuple=True)
            out[i, j] = self.diagonal[rows[i]].float()
        return out

    @cached_property
    def diagonal(self) -> Tensor:
        """k(x_i, x_i) of one sample, in float64."""
        program = reduced(self.program, same=True)
        values = evaluate(program, [_at_itself(s, self.x) for s in program.inputs])
        return values.to(self.device).expand(self.shape[0])

    @cached_property
    def _missing_on_diagonal(self) -> Tensor:
        """What the loops leave out there: noise, and what rounding makes of a distance of zero."""
        return self.diagonal - diagonal(self.operands)[: self.shape[0]]


def _at_itself(statistic: Statistic, points: Points) -> Tensor:
    """A statistic of each point paired with itself."""
    points = warped(statistic, points)
    rows = vectors(points).double()
    match statistic.kind:
        case "same":
            return rows.new_ones(len(rows))
        case "inner":
            return rows.square().sum(1)
        case "squared_sum":
            return 4.0 * rows.square().sum(1)
        case "left" | "right":
            assert statistic.function is not None
            return row_values(statistic.function, points).double()
    return rows.new_zeros(len(rows))
