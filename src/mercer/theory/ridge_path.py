"""Everything that one eigendecomposition says of ridge regression along a path of alphas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.core.errors import InputError
from mercer.plots.canvas import vector
from mercer.theory.algebra import eigh
from mercer.theory.arguments import columns_of, square

STEPS = np.arange(-100, 21) / 10
"""Powers of ten, times the largest eigenvalue, that alphas are tried at."""


@dataclass(frozen=True, eq=False)
class Eigen:
    """Eigenvalues and eigenvectors of S K S with S = diag(sqrt weights); an intercept is an infinite eigenvalue.

    Attributes
    ----------
    values : array
        Ascending, not negative.
    vectors : array
        In columns.
    weights : array
        Of the rows.
    """

    values: np.ndarray
    vectors: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, gram: Any, weights: Any = None, *, intercept: bool = False) -> Eigen:
        """Decompose a Gram matrix; with an intercept the centred one, HKH, and the constant."""
        K = square(gram)
        w = np.ones(len(K)) if weights is None else vector(weights, "weights", len(K))
        if (w <= 0).any():
            raise InputError("weights must be positive: leave out the rows without weight.")
        A = np.sqrt(w)[:, None] * K * np.sqrt(w)
        if not intercept:
            values, vectors = eigh(A)
            return cls(values.clip(min=0.0), vectors, w)
        if len(K) < 2:
            raise InputError(
                "All rows are equal: an intercept explains them alone. At least two different rows are needed."
            )
        u = np.sqrt(w / w.sum())
        A -= np.outer(u, u @ A)
        A -= np.outer(A @ u, u)
        beyond = 4 * max(np.trace(A), np.linalg.norm(A)) or 1.0  # where rows do not differ A is zero, or rounding
        values, vectors = eigh(A + beyond * np.outer(u, u))
        return cls(np.append(values[:-1].clip(min=0.0), np.inf), vectors, w)

    @property
    def largest(self) -> float:
        """The largest finite eigenvalue."""
        found = self.values[np.isfinite(self.values)]
        return float(found.max(initial=0.0)) or 1.0

    @property
    def alphas(self) -> np.ndarray:
        """A path from 1e-10 to 100 times the largest eigenvalue."""
        return self.largest * 10.0**STEPS


@dataclass(frozen=True, eq=False)
class RidgePath:
    r"""Errors and degrees of freedom for each alpha of a path, with :math:`\delta = \alpha`,

    .. math:: \hat\kappa = \frac{1}{\operatorname{tr}(K + \delta)^{-1}}, \quad
        \mathrm{df}_1 = \operatorname{tr} K (K + \delta)^{-1}, \quad
        \mathrm{df}_2 = \mathrm{df}_1 - \frac{\operatorname{tr} K (K + \delta)^{-2}}{\hat\kappa
        \operatorname{tr} (K + \delta)^{-2}}.

    Attributes
    ----------
    alphas : array
        Ascending.
    loo, gcv : array
        Mean squared errors by leave-one-out and by generalised cross-validation.
    kappa, df1, df2 : array
        Estimates from the rows of the effective regularisation, sum L_i and sum L_i^2.
    squares : array
        The squared leave-one-out error of each row at the best alpha.
    smallest_kappa : float
        Kappa at alpha = 0.

    Examples
    --------
    >>> path = RidgePath.of(Eigen.of(np.eye(40)), np.arange(40.0))
    >>> round(float(path.df1[0] / 40), 6)
    1.0
    """

    alphas: np.ndarray
    loo: np.ndarray
    gcv: np.ndarray
    kappa: np.ndarray
    df1: np.ndarray
    df2: np.ndarray
    squares: np.ndarray
    smallest_kappa: float

    @classmethod
    def of(cls, eigen: Eigen, targets: Any, alphas: Any = None) -> RidgePath:
        """The path of one target (n,), or of several (n, t) that share alpha and whose errors are summed."""
        path = eigen.alphas if alphas is None else np.unique(vector(alphas, "alphas"))
        if not (path > 0).all():
            raise InputError("alphas must be positive; use a very small alpha in place of zero.")
        n, lam = len(eigen.values), eigen.values[:, None]
        inverse = 1.0 / (lam + path)
        Y = columns_of(targets, n)
        rotated = eigen.vectors.T @ (np.sqrt(eigen.weights)[:, None] * Y)
        diagonal = eigen.vectors**2 @ inverse
        left = [eigen.vectors @ (column[:, None] * inverse) for column in rotated.T]
        squares = sum((x / diagonal) ** 2 for x in left) / eigen.weights[:, None]
        trace, square_trace = inverse.sum(0), (inverse**2).sum(0)
        share = 1.0 - path * inverse
        df1 = share.sum(0)
        loo = np.average(squares, axis=0, weights=eigen.weights)
        gcv = n * sum((x**2).sum(0) for x in left) / trace**2 * (n / eigen.weights.sum())
        df2 = df1 - (share * inverse).sum(0) * trace / square_trace
        floor = np.maximum(eigen.values, n * np.finfo(float).eps * eigen.largest)
        total = float((1 / floor).sum()) if eigen.largest > 0 else 0.0
        smallest = 1 / total if total > 0 else 0.0
        return cls(path, loo, gcv, 1 / trace, df1, df2, squares[:, loo.argmin()], smallest)

    @property
    def best(self) -> int:
        """The place of the alpha of least leave-one-out error."""
        return int(self.loo.argmin())

    @property
    def ridge(self) -> float:
        """The best kappa beside that of alpha = 0."""
        return float(self.kappa[self.best] / self.smallest_kappa)

    @property
    def gap(self) -> float:
        """log GCV / LOO at the best alpha: far from zero where rows are not a sample of independent draws."""
        return float(np.log(self.gcv[self.best] / self.loo[self.best]))

    @property
    def noise_of_loo(self) -> float:
        """Standard error of log LOO: that of the Dirichlet bootstrap of its squared errors."""
        return noise_of_mean(self.squares)


def noise_of_mean(squares: np.ndarray) -> float:
    """The standard error of the logarithm of a mean, that of its Dirichlet bootstrap."""
    return float(squares.std() / squares.mean() / np.sqrt(len(squares) + 1))
