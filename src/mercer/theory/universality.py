"""Whether data behave like Gaussian features of the same covariance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.core.seeding import as_seed
from mercer.kernels import Kernel
from mercer.plots.canvas import vector
from mercer.plots.risk import risk_curve
from mercer.theory.algebra import eigh, solve
from mercer.theory.arguments import POSITIVE, check, columns_of, rows_counts
from mercer.theory.equivalents import krr_risk


@dataclass(frozen=True, eq=False)
class Universality:
    """Test errors of ridge regression on data, on Gaussian features, and as `krr_risk` expects them.

    Attributes
    ----------
    n : array
        Numbers of training rows.
    data, gaussian : array
        Mean squared errors, of shape (n, repeats).
    expected : array
        For Gaussian features.
    """

    n: np.ndarray
    data: np.ndarray
    gaussian: np.ndarray
    expected: np.ndarray

    @property
    def difference(self) -> np.ndarray:
        """The mean error on data beside that on Gaussian features, minus one."""
        return self.data.mean(1) / self.gaussian.mean(1) - 1

    def plot(self, ax: Any = None) -> Any:
        """Draw the errors against the number of rows; returns matplotlib axes."""
        lines = {"expected": self.expected, "data": self.data.mean(1), "Gaussian features": self.gaussian.mean(1)}
        return risk_curve(self.n, lines, ax=ax)


def universality(
    kernel: Kernel,
    X: Any,
    y: Any,
    n: Any,
    alpha: float = 1.0,
    *,
    repeats: int = 20,
    random_state: Any = None,
) -> Universality:
    r"""Compare ridge regression on data with ridge regression on Gaussian features of the same covariance.

    The rows X stand for the population: from :math:`K / N = U \Lambda U^T` come the eigenvalues and the coefficients
    :math:`v = U^T y / \sqrt N` of the target. Fits to n rows drawn from it are tested on all of it; their Gaussian
    twins have features :math:`\sqrt{\lambda_i} g_i` and the target :math:`\sum_i v_i g_i`. That these agree is why
    `krr_risk` holds for data that are far from Gaussian; where they do not, it cannot be trusted.

    Parameters
    ----------
    kernel : Kernel, str or callable
        A kernel without parameters to find.
    X, y : array-like of shape (n, d), or list of objects and array-like of shape (n,) or (n, t)
        The population, a few thousand rows, and its labels.
    n : array-like of int
        Numbers of training rows, well below those of the population.
    alpha : float
        The ridge of ``K + alpha I``.
    repeats : int
        Draws for each.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None
        Seed of the draws.

    References
    ----------
    Goldt, Loureiro, Reeves, Krzakala, Mezard and Zdeborova, *The Gaussian equivalence of generative models
    for learning with shallow neural networks*, 2022; Hu and Lu, *Universality laws for high-dimensional learning with
    random features*, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Laplace
    >>> X = np.random.default_rng(0).standard_normal((300, 5))
    >>> found = universality(Laplace(3.0), X, X[:, 0], n=[40], alpha=1.0)
    >>> bool(abs(found.difference[0]) < 0.2)
    True
    """
    POSITIVE.check("alpha", alpha, False)
    check(kernel=kernel, repeats=repeats, random_state=random_state)
    K = np.asarray(kernel(X))
    N = len(K)
    y, rows = columns_of(vector(y, "y", N), N)[:, 0], rows_counts(n, most=max(1, N - 1))
    values, U = eigh(K / N)
    values, v = values.clip(min=0.0), U.T @ y / np.sqrt(N)
    rng = np.random.default_rng(as_seed(random_state))
    data = np.array([[_on_data(K, y, m, alpha, rng) for _ in range(repeats)] for m in rows])
    gaussian = np.array([[_on_gaussian(values, v, m, alpha, rng) for _ in range(repeats)] for m in rows])
    return Universality(rows, data, gaussian, krr_risk(values, v, rows, alpha).test)


def _on_data(K: np.ndarray, y: np.ndarray, n: int, alpha: float, rng: np.random.Generator) -> float:
    some = rng.integers(len(y), size=n)
    dual = solve(K[np.ix_(some, some)] + alpha * np.eye(n), y[some])
    return float(np.mean((K[:, some] @ dual - y) ** 2))


def _on_gaussian(values: np.ndarray, v: np.ndarray, n: int, alpha: float, rng: np.random.Generator) -> float:
    g = rng.standard_normal((n, len(v)))
    dual = solve((g * values) @ g.T + alpha * np.eye(n), g @ v)
    return float(((values * (g.T @ dual) - v) ** 2).sum())
