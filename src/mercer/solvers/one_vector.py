"""Lanczos' method with one vector at a time: the fewest products, for matrices in memory, quick at one column.

A block of columns takes four times as many products. It is for operators whose products cost the same with many.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.linalg import eigh_tridiagonal
from scipy.linalg.blas import ddot, dgemv, dnrm2

from mercer.solvers.dials import CHECKED_STEPS, CHECKED_TOLERANCE, COPIED
from mercer.solvers.products import Products

Product = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Ritz:
    """Values in falling order, unit vectors, residuals, the least value of the space, and the products that it took."""

    values: np.ndarray
    vectors: np.ndarray
    residuals: np.ndarray
    least: float
    steps: int

    def followed_by(self, more: Ritz, count: int) -> Ritz:
        """The best of both."""
        values = np.append(self.values, more.values)
        order = np.argsort(-values, kind="stable")[:count]
        vectors = np.column_stack([self.vectors, more.vectors])[:, order]
        residuals = np.append(self.residuals, more.residuals)[order]
        return Ritz(values[order], vectors, residuals, min(self.least, more.least), self.steps + more.steps)


def best_vectors(
    A: Products, count: int, tol: float, rounding: float, most: int, generator: torch.Generator
) -> Ritz | None:
    r"""The `count` largest eigenpairs with residuals of at most `tol` of the largest, or of `rounding`; else None.

    The space of one start has one vector for each eigenvalue. So another start, orthogonal to what was found, looks for
    what is left, until all of that is smaller.

    References: Golub and Van Loan, *Matrix Computations*, 2013, sections 10.1 and 10.3.
    """

    def product(v: np.ndarray) -> np.ndarray:
        found: np.ndarray = A.matmul(torch.from_numpy(v)).numpy()
        return found

    def start() -> np.ndarray:
        return torch.randn(A.n, dtype=torch.float64, generator=generator).numpy()

    def exact(found: Ritz, largest: float) -> bool:
        return bool(found.residuals.max() <= max(tol * largest, rounding))

    best = _space(product, start(), count, most, lambda found: exact(found, found.values[0]))
    if best is None:
        return None
    while True:
        first, last, found = best.values[0], best.values[-1], np.asfortranarray(best.vectors)
        others = _space(
            lambda v: _without(found, product(v)),  # noqa: B023
            _without(found, start()),
            1,
            most,
            lambda rest: exact(rest, first) or _below(rest, last),  # noqa: B023
        )
        if others is None:
            return None
        new = others.values[0] > last + COPIED * first
        best = best.followed_by(others, count)
        if not new:
            return best


def _below(rest: Ritz, last: float) -> bool:
    """Whether the largest value of the rest is known well enough to say that it is smaller than `last`."""
    value, residual = rest.values[0], rest.residuals[0]
    sure = rest.steps >= CHECKED_STEPS and residual <= CHECKED_TOLERANCE * value
    return bool(sure and value + residual < last)


def _space(product: Product, w: np.ndarray, count: int, most: int, done: Callable[[Ritz], bool]) -> Ritz | None:
    """The best vectors of the space of w, A w, A^2 w, ..., as soon as they are good enough; None where none are."""
    Q = np.empty((len(w), most), order="F")
    diagonal: list[float] = []
    beside: list[float] = []
    w = w / dnrm2(w)
    for m in range(1, most + 1):
        Q[:, m - 1] = w
        w = product(w)
        diagonal.append(ddot(w, Q[:, m - 1]))
        w = _without(Q[:, :m], w)
        size = dnrm2(w)
        if not math.isfinite(size):
            return None
        if m >= count:
            values, vectors = eigh_tridiagonal(np.array(diagonal), np.array(beside))
            top = slice(-1, -count - 1, -1)
            found = Ritz(values[top], vectors[:, top], size * np.abs(vectors[-1, top]), float(values[0]), m)
            if done(found):
                return Ritz(found.values, Q[:, :m] @ found.vectors, found.residuals, found.least, m)
        if size == 0:
            return None
        beside.append(size)
        w /= size
    return None


def _without(Q: np.ndarray, w: np.ndarray) -> np.ndarray:
    """w without its part in the span of orthonormal columns; twice, since once leaves rounding errors of its size."""
    for _ in range(2):
        w = dgemv(-1.0, Q, dgemv(1.0, Q, w, trans=1), beta=1.0, y=w)
    return w
