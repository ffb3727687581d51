"""Bias and variance of kernel ridge regression for rows that are known, without asymptotics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.plots.risk import risk_parts
from mercer.theory.algebra import solve
from mercer.theory.arguments import FUNCTION, POSITIVE, check, table, values_of


@dataclass(frozen=True)
class ExactRisk:
    """The error of a fit to given rows, averaged over the noise of their labels and over the population.

    Attributes
    ----------
    bias : float
        What remains without noise.
    variance : float
        What the noise adds.
    noise : float
        Its variance.
    """

    bias: float
    variance: float
    noise: float

    @property
    def risk(self) -> float:
        """The error against the target without noise."""
        return self.bias + self.variance

    @property
    def test(self) -> float:
        """The mean squared error on noisy labels."""
        return self.risk + self.noise

    def plot(self, ax: Any = None) -> Any:
        """Draw the parts of the error as bars; returns matplotlib axes."""
        return risk_parts({"bias": self.bias, "variance": self.variance, "noise": self.noise}, ax=ax)


def exact_risk(
    kernel: Any,
    X: Any,
    target: Callable[[Any], Any],
    population: Any,
    alpha: float = 1.0,
    noise: float = 0.0,
) -> ExactRisk:
    r"""Bias and variance of ridge regression on the rows X, for a target that is known:

    .. math:: V = \sigma^2 \operatorname{tr}(A M A), \qquad
        B = f_X^T A M A f_X - 2 u^T A f_X + E f^2, \qquad A = (K + \alpha I)^{-1},

    with :math:`M_{ij} = E\, k(x_i, x) k(x, x_j)` and :math:`u_i = E\, k(x_i, x) f(x)`, means over the population.

    Parameters
    ----------
    kernel : Kernel, str or callable
        A kernel, or a function of two arrays of rows that gives their matrix.
    X : array-like of shape (n, d), or list of objects
        The training rows.
    target : callable
        The true function of an array of rows.
    population : array-like of shape (N, d)
        Rows that stand for the distribution: a dense grid, or many draws from it.
    alpha : float
        The ridge of ``K + alpha I``, positive.
    noise : float
        Variance of the noise of the labels.

    References
    ----------
    Bach, *Learning Theory from First Principles*, 2024, section 3.6.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> grid = np.linspace(-1, 1, 5)[:, None]
    >>> found = exact_risk(Linear(), [[1.0]], lambda x: 2 * x[:, 0], grid, alpha=1.0, noise=1.0)
    >>> round(found.bias, 6), round(found.variance, 6)
    (0.5, 0.125)
    """
    POSITIVE.check("alpha", alpha, False)
    FUNCTION.check("kernel", kernel, False)
    check(noise=noise)
    X, population = table(X), table(population, "population")
    f, f_everywhere = values_of(target, X, "target"), values_of(target, population, "target")
    smoother = solve(
        np.asarray(kernel(X, X)) + alpha * np.eye(len(X)), np.asarray(kernel(X, population))
    ).T  # predictions are smoother @ labels
    bias = np.mean((smoother @ f - f_everywhere) ** 2)  # the three terms, without their cancellation
    variance = noise * (smoother**2).sum(1).mean()
    return ExactRisk(float(bias), float(variance), float(noise))
