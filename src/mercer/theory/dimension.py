"""How many rows a problem needs: effective dimensions, degrees that n rows reach, and a bound for every kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mercer.core.errors import InputError
from mercer.core.rules import number
from mercer.plots.canvas import numbers
from mercer.theory.algebra import eigh
from mercer.theory.arguments import check, square, table

DIMENSIONS = number(lambda value: value > 1, "a finite number > 1")


def effective_dimension(X: Any) -> float:
    r"""The number of directions that the rows fill, from the eigenvalues s of their covariance,

    .. math:: d_{\mathrm{eff}} = \frac{(\sum_i s_i)^2}{\sum_i s_i^2} = \frac{\operatorname{tr}(C)^2}{\|C\|_F^2},

    the number of columns for white data, 1 for points on a line. Columns in different units should be scaled first.

    References: Gao, Trautmann, Yu, Santhanam, Ryu, Shenoy and Ganguli, *A theory of multineuronal dimensionality,
    dynamics and measurement*, 2017.

    >>> effective_dimension([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    2.0
    """
    X = table(X, fewest=2)
    X = X - X.mean(0)
    X = X / (np.abs(X).max() or 1.0)
    C = X.T @ X if X.shape[1] <= len(X) else X @ X.T  # the same eigenvalues that are not zero
    if not C.any():
        raise InputError("All rows of X are equal: they have no dimension.")
    return float(np.trace(C) ** 2 / (C**2).sum())


def degree_reached(n: float, d: float) -> int:
    r"""The degree of polynomial that n rows in d effective dimensions can fit, floor(log n / log d).

    A kernel ridge regression on n rows learns the parts of the target up to this degree and none above. With
    60,000 images of effective dimension 30, that is 3.

    References: Ghorbani, Mei, Misiakiewicz and Montanari, *Linearized two-layers neural networks in high dimension*,
    2021.

    >>> degree_reached(60_000, 30), degree_reached(1000, 10)
    (3, 3)
    """
    check(n=n)
    DIMENSIONS.check("d", d, False)
    return math.floor(math.log(n) / math.log(d) * (1 + 4 * np.finfo(float).eps))


def dimension_lower_bound(
    functions_or_gram: Sequence[Callable[[Any], Any]] | Any, error: float, *, population: Any = None
) -> int:
    r"""The least number of rows from which *any* kernel learns M functions of norm one to an average squared error,

    .. math:: n \ge \frac{M (1 - \varepsilon)}{\|G\|_{\mathrm{op}}}, \qquad G_{ij} = E\, f_i(x) f_j(x).

    Parameters
    ----------
    functions_or_gram : callable
        The matrix G, or the functions, of an array of rows.
    error : float
        The average over the functions of the squared error, between 0 and 1.
    population : array-like of shape (N, d) or None
        Rows that stand for the distribution, where functions are given.

    References
    ----------
    Hsu, *Dimension lower bounds for linear approaches to function approximation*, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> dimension_lower_bound(np.eye(1000), error=0.1)  # a thousand orthogonal functions, parities say
    900
    """
    check(error=error)
    G = _gram(functions_or_gram, population)
    return max(0, math.ceil(len(G) * (1 - error) / float(eigh(G)[0][-1]) - 1e-9))


def _gram(given: Any, population: Any) -> np.ndarray:
    if isinstance(given, Sequence) and given and callable(given[0]):
        if population is None:
            raise InputError("dimension_lower_bound of functions needs population=, rows of the distribution.")
        values = np.stack([numbers(f(population), "values of a function") for f in given])
        norms = np.sqrt((values**2).mean(1, keepdims=True))
        if (norms == 0).any():
            raise InputError(f"Function {int((norms == 0).argmax())} is zero on the population.")
        values = values / norms
        return np.asarray(values @ values.T / values.shape[1])
    G = square(given, "functions_or_gram")
    if not np.allclose(np.diag(G), 1.0):
        raise InputError("The diagonal of the Gram matrix must be 1: divide each function by its norm.")
    return G
