"""Sequential minimal optimisation: a quick first answer to the dual problem of a loss with one kink."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from mercer.solvers.dials import SMALLEST


@np.errstate(over="ignore")  # infinite gains of huge targets still name a pair
def smo(
    K: Tensor, kink: Tensor, low: Tensor, high: Tensor, *, balanced: bool, tol: float, max_iter: int
) -> tuple[Tensor, int]:
    r"""Dual variables c near the minimum of

    .. math:: \tfrac12 c^T K c - \kappa^T c, \qquad low \le c \le high \quad (\text{and } \textstyle\sum_i c_i = 0),

    by exact steps along two coordinates, of which the first has the largest slope and the second promises the largest
    decrease; where sums are free, every other step is along one coordinate. It stops when no slope, or difference of
    two, is above `tol`, or after `max_iter` steps; also gives back their number. The matrix is stored, so that a step
    costs a few passes over n numbers.

    Reference: Fan, Chen and Lin, *Working set selection using second order information for training support vector
    machines*, 2005.

    >>> import torch
    >>> one = torch.ones(2).double()
    >>> smo(torch.eye(2).double(), one, 0 * one, 0.7 * one, balanced=False, tol=1e-6, max_iter=100)[0]
    tensor([0.7000, 0.7000], dtype=torch.float64)
    """
    search = _Search(K.numpy(), kink.numpy(), low.numpy(), high.numpy(), tol)
    count = 0
    while count < max_iter:
        moves = search.pair() if balanced or count % 2 else search.single()
        if not moves and (balanced or not search.single()):
            break
        search.take(moves)
        count += 1
    return kink.new_tensor(search.c), count


class _Search:
    """The variables c, how fast the objective falls along each, and which may rise or fall (0, else minus infinity)."""

    def __init__(self, matrix: np.ndarray, kink: np.ndarray, low: np.ndarray, high: np.ndarray, tol: float) -> None:
        self.matrix, self.low, self.high, self.tol = matrix, low, high, tol
        self.diag = matrix.diagonal().astype(np.float64)
        self.c = np.zeros(len(self.diag))
        self.downhill = kink.copy()
        self.can_rise = np.where(self.c < high, 0.0, -np.inf)
        self.can_fall = np.where(self.c > low, 0.0, -np.inf)
        self.gain, self.other = np.empty_like(self.c), np.empty_like(self.c)

    def take(self, moves: list[tuple[int, float]]) -> None:
        """Move some coordinates."""
        for i, t in moves:
            self.c[i] = min(max(self.c[i] + t, self.low[i]), self.high[i])
            self.can_rise[i] = 0.0 if self.c[i] < self.high[i] else -np.inf
            self.can_fall[i] = 0.0 if self.c[i] > self.low[i] else -np.inf
            np.multiply(self.matrix[i], t, out=self.gain)
            self.downhill -= self.gain

    def pair(self) -> list[tuple[int, float]]:
        """One coordinate up and another down by the same amount."""
        gain, bend, downhill = self.gain, self.other, self.downhill
        np.add(downhill, self.can_rise, out=gain)
        i = int(gain.argmax())
        np.subtract(self.can_fall, downhill, out=gain)
        gain += downhill[i]
        if not gain.max() > self.tol:
            return []
        np.multiply(self.matrix[i], -2.0, out=bend)
        bend += self.diag
        bend += self.diag[i]
        np.maximum(bend, SMALLEST, out=bend)
        np.maximum(gain, 0.0, out=gain)
        gain *= gain
        gain /= bend
        j = int(gain.argmax())
        t = min((downhill[i] - downhill[j]) / bend[j], self.high[i] - self.c[i], self.c[j] - self.low[j])
        return [(i, t), (j, -t)]

    def single(self) -> list[tuple[int, float]]:
        """One coordinate: that of the largest slope it may follow, relative to its curvature."""
        gain, other = self.gain, self.other
        np.add(self.downhill, self.can_rise, out=gain)
        np.subtract(self.can_fall, self.downhill, out=other)
        np.maximum(gain, other, out=gain)
        if not gain.max() > self.tol:
            return []
        gain *= np.abs(gain)
        gain /= np.maximum(self.diag, SMALLEST)
        i = int(gain.argmax())
        t = self.downhill[i] / max(self.diag[i], SMALLEST)
        return [(i, min(max(t, self.low[i] - self.c[i]), self.high[i] - self.c[i]))]
