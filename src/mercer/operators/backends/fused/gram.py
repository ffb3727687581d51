"""`FusedGram`: the Gram matrix of two samples as an operator whose products run in one fused loop on the GPU."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.symbols import Program, Statistic
from mercer.kernels.pair import row_values, vectors
from mercer.operators.backends.fused.formulas import evaluate, merged, reduced
from mercer.operators.backends.fused.launch import dense, multiply
from mercer.operators.backends.fused.operands import Operands, operands, warped
from mercer.operators.backends.fused.tiles import INTERPRETED_PAD, PAD, interpreted


class FusedGram:
    """K(x, z) of a program: products, transposed products and dense rows, without the matrix.

    The data are packed at the first product and kept. `same` says that both samples are the same rows; `notes` tells
    which distances took a slower, more accurate path.
    """

    def __init__(self, program: Program, x: Points, z: Points, *, same: bool = False) -> None:
        self.program, self.x, self.z, self.same = program, x, z, same
        self.shape = len(x), len(z)

    @cached_property
    def _operands(self) -> Operands:
        return operands(merged(reduced(self.program)), self.x, self.z, INTERPRETED_PAD if interpreted() else PAD)

    @property
    def notes(self) -> tuple[str, ...]:
        return self._operands.notes

    def product(self, V: Tensor) -> Tensor:
        """K V for V of shape (m,) or (m, t)."""
        return self._multiply(self._operands, V, self.shape[0])

    def transposed_product(self, V: Tensor) -> Tensor:
        """K^T V for V of shape (n,) or (n, t)."""
        return self._multiply(self._operands.transposed, V, self.shape[1])

    def rows(self, same: Tensor | None = None) -> Tensor:
        """The dense matrix, meant for a block of rows; `same` names for each row its place among the columns."""
        n, m = self.shape
        out = dense(self._operands)[:n, :m]
        if same is None and self.same:
            same = torch.arange(n, device=out.device)
        if same is not None and self._noise is not None:
            out[torch.arange(n, device=out.device), same] += self._noise.float()
        return out

    def _multiply(self, data: Operands, V: Tensor, n: int) -> Tensor:
        columns = V.reshape(len(V), -1).detach().float()
        out = multiply(data, columns)[:n]
        if self.same and self._noise is not None:
            out += self._noise.unsqueeze(1) * columns
        return out.float().reshape(n, *V.shape[1:])

    @cached_property
    def _noise(self) -> Tensor | None:
        """What the entry of a row with itself has besides: k with the "same" input at one, less k with it at zero."""
        if all(s.kind != "same" for s in self.program.inputs):
            return None
        program = reduced(self.program, same=True)
        values = (evaluate(program, [_at_itself(s, self.x, on) for s in program.inputs]) for on in (1.0, 0.0))
        return next(values) - next(values)


def _at_itself(statistic: Statistic, points: Points, same: float) -> Tensor:
    """A statistic of each point paired with itself."""
    points = warped(statistic, points)
    rows = vectors(points).double()
    match statistic.kind:
        case "same":
            return rows.new_full((len(rows),), same)
        case "inner":
            return rows.square().sum(1)
        case "left" | "right":
            assert statistic.function is not None
            return row_values(statistic.function, points).double()
    return rows.new_zeros(len(rows))
