"""Sequential minimal optimisation: a quick first answer to the dual problem of a loss with one kink."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from mercer.solvers.dials import SMALLEST


class Pairs:
    r"""Dual variables c near the minimum of

    .. math:: \tfrac12 c^T K c - \kappa^T c, \qquad low \le c \le high \quad (\text{and } \textstyle\sum_i c_i = 0),

    by exact steps along two coordinates, of which the first has the largest slope and the second promises the largest
    decrease; where sums are free, every other step is along one coordinate. The matrix is stored, so that a step costs
    a few passes over n numbers, in the precision of the matrix.

    Reference: Fan, Chen and Lin, *Working set selection using second order information for training support vector
    machines*, 2005.

    >>> import torch
    >>> one = torch.ones(2).double()
    >>> pairs = Pairs(torch.eye(2).double(), one, 0 * one, 0.7 * one, balanced=False)
    >>> pairs.go_on(tol=1e-6, most=100)
    >>> pairs.c
    tensor([0.7000, 0.7000], dtype=torch.float64)
    """

    def __init__(self, K: Tensor, kink: Tensor, low: Tensor, high: Tensor, *, balanced: bool) -> None:
        self._search, self._like, self.balanced = (
            _Search(K.numpy(), kink.numpy(), low.numpy(), high.numpy()),
            kink,
            balanced,
        )
        self.steps = 0

    @np.errstate(over="ignore")  # infinite gains of huge targets still name a pair
    def go_on(self, tol: float, most: int) -> None:
        """Steps until no slope, or difference of two, is above `tol`, or there are `most` of them in all."""
        search = self._search
        while self.steps < most:
            ways = [search.pair] if self.balanced else [search.pair, search.single]
            moves = ways[self.steps % len(ways) - 1](tol) or ways[self.steps % len(ways)](tol)
            if not moves:
                break
            search.take(moves)
            self.steps += 1

    @property
    def c(self) -> Tensor:
        return self._like.new_tensor(self._search.c)


class _Search:
    """The variables c, and how fast the objective falls along each: minus infinity where it may not rise, infinity
    where it may not fall.

    In the precision of the matrix, but for the c.
    """

    def __init__(self, matrix: np.ndarray, kink: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        self.matrix, self.low, self.high = matrix, low, high
        self.diag = matrix.diagonal().copy()
        self.bends = np.maximum(self.diag, SMALLEST)
        self.least = max(SMALLEST, 4 * float(np.finfo(matrix.dtype).eps * self.diag.max()))
        self.middle = self.diag[0] + self.least if (self.diag == self.diag[0]).all() else None
        self.c = np.zeros(len(self.diag))
        self.rising = np.where(high > 0, kink, -np.inf).astype(matrix.dtype)
        self.falling = np.where(low < 0, kink, np.inf).astype(matrix.dtype)
        self.gain, self.other = np.empty_like(self.diag), np.empty_like(self.diag)

    def take(self, moves: list[tuple[int, float]]) -> None:
        """Move a coordinate, or two by the same amount, one up and one down."""
        for i, t in moves:
            downhill = self.rising[i] if self.rising[i] > -np.inf else self.falling[i]
            self.c[i] = c = min(max(self.c[i] + t, self.low[i]), self.high[i])
            self.rising[i] = downhill if c < self.high[i] else -np.inf
            self.falling[i] = downhill if c > self.low[i] else np.inf
        (i, t), rows = moves[0], self.matrix
        row = rows[i] if len(moves) == 1 else np.subtract(rows[i], rows[moves[1][0]], out=self.gain)
        np.multiply(row, self.diag.dtype.type(t), out=self.gain)
        self.rising -= self.gain
        self.falling -= self.gain

    def pair(self, tol: float) -> list[tuple[int, float]]:
        """One coordinate up and another down by the same amount."""
        gain, bend = self.gain, self.other
        i = int(self.rising.argmax())
        steepest = self.rising[i]
        np.subtract(steepest, self.falling, out=gain)
        np.multiply(gain, np.abs(gain, out=bend), out=gain)  # with its sign: np.maximum takes three times as long
        middle = (self.diag + self.diag[i]) / 2 + self.least if self.middle is None else self.middle
        np.subtract(middle, self.matrix[i], out=bend)
        np.divide(gain, bend, out=gain)
        j = int(gain.argmax())
        slope = float(steepest - self.falling[j])
        if not slope > tol and not steepest - self.falling.min() > tol:
            return []
        t = min(slope / (2 * max(float(bend[j]), self.least)), self.high[i] - self.c[i], self.c[j] - self.low[j])
        return [(i, t), (j, -t)]

    def single(self, tol: float) -> list[tuple[int, float]]:
        """One coordinate: that of the largest slope it may follow, relative to its curvature."""
        gain = np.maximum(self.rising, np.negative(self.falling, out=self.other), out=self.gain)
        if not gain.max() > tol:
            return []
        gain *= np.abs(gain)
        gain /= self.bends
        i = int(gain.argmax())
        downhill = self.rising[i] if self.rising[i] >= self.other[i] else self.falling[i]
        t = downhill / self.bends[i]
        return [(i, min(max(t, self.low[i] - self.c[i]), self.high[i] - self.c[i]))]
