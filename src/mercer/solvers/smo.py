"""Sequential minimal optimisation: a quick first answer to the dual problem of a loss with one kink."""

from __future__ import annotations

import numpy as np
from torch import Tensor

SMALLEST = 1e-12
"""Curvatures below this are taken as this."""


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
    matrix, diag = K.numpy(), K.diagonal().numpy().astype(np.float64)
    bottom, top = low.numpy(), high.numpy()
    c = np.zeros(len(diag))
    downhill = kink.numpy().copy()  # kink - K c: how fast the objective falls along each coordinate
    can_rise = np.where(c < top, 0.0, -np.inf)
    can_fall = np.where(c > bottom, 0.0, -np.inf)
    room = np.empty_like(c), np.empty_like(c)
    count = 0
    while count < max_iter:
        state = (matrix, diag, downhill, c, bottom, top, can_rise, can_fall, room, tol)
        moves = _pair(*state) if balanced or count % 2 else _single(*state)
        if not moves and (balanced or not _single(*state)):
            break
        for i, t in moves:
            c[i] = min(max(c[i] + t, bottom[i]), top[i])
            can_rise[i] = 0.0 if c[i] < top[i] else -np.inf
            can_fall[i] = 0.0 if c[i] > bottom[i] else -np.inf
            np.multiply(matrix[i], t, out=room[0])
            downhill -= room[0]
        count += 1
    return kink.new_tensor(c), count


def _pair(
    matrix: np.ndarray,
    diag: np.ndarray,
    downhill: np.ndarray,
    c: np.ndarray,
    bottom: np.ndarray,
    top: np.ndarray,
    can_rise: np.ndarray,
    can_fall: np.ndarray,
    room: tuple[np.ndarray, np.ndarray],
    tol: float,
) -> list[tuple[int, float]]:
    """One coordinate up and another down by the same amount."""
    gain, bend = room
    np.add(downhill, can_rise, out=gain)
    i = int(gain.argmax())
    np.subtract(can_fall, downhill, out=gain)
    gain += downhill[i]
    if not gain.max() > tol:
        return []
    np.multiply(matrix[i], -2.0, out=bend)
    bend += diag
    bend += diag[i]
    np.maximum(bend, SMALLEST, out=bend)
    np.maximum(gain, 0.0, out=gain)
    gain *= gain
    gain /= bend
    j = int(gain.argmax())
    t = min((downhill[i] - downhill[j]) / bend[j], top[i] - c[i], c[j] - bottom[j])
    return [(i, t), (j, -t)]


def _single(
    matrix: np.ndarray,
    diag: np.ndarray,
    downhill: np.ndarray,
    c: np.ndarray,
    bottom: np.ndarray,
    top: np.ndarray,
    can_rise: np.ndarray,
    can_fall: np.ndarray,
    room: tuple[np.ndarray, np.ndarray],
    tol: float,
) -> list[tuple[int, float]]:
    """One coordinate: that of the largest slope it may follow, relative to its curvature."""
    gain, other = room
    np.add(downhill, can_rise, out=gain)
    np.subtract(can_fall, downhill, out=other)
    np.maximum(gain, other, out=gain)
    if not gain.max() > tol:
        return []
    gain *= np.abs(gain)
    gain /= np.maximum(diag, SMALLEST)
    i = int(gain.argmax())
    t = downhill[i] / max(diag[i], SMALLEST)
    return [(i, min(max(t, bottom[i] - c[i]), top[i] - c[i]))]
