"""Control functionals: expectations under a distribution with a known score, with less variance than a mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from mercer.core.errors import InputError
from mercer.core.memory import require, resolve_budget
from mercer.core.values import as_values
from mercer.kernels.pair import DensePair
from mercer.solvers.factor import factorise
from mercer.stats.arguments import check
from mercer.stats.ksd import stein_sample


@dataclass(frozen=True, eq=False, repr=False)
class ControlFunctional:
    """An expectation by `control_functional`.

    Attributes
    ----------
    mean : float or array
        The estimate; an array where f has several columns.
    plain_mean : float or array
        The mean of f over the sample.
    weights : array
        Of the rows, with the sum one: the estimate is their weighted mean of f.
    """

    mean: Any
    plain_mean: Any
    weights: np.ndarray

    def __repr__(self) -> str:
        return f"ControlFunctional(mean={self.mean!r}, plain_mean={self.plain_mean!r}, {len(self.weights):,} weights)"


def control_functional(
    f: Any,
    X: Any,
    score: Any = None,
    *,
    log_prob: Any = None,
    kernel: Any = None,
    alpha: float = 1e-6,
    memory_budget: Any = None,
) -> ControlFunctional:
    r"""The expectation of f under p from its values at some points, without assuming how these were drawn,

    .. math:: \hat\mu = \frac{1^\top (K_p + \alpha I)^{-1} f}{1^\top (K_p + \alpha I)^{-1} 1},

    the constant of the interpolant c + g of f whose g, a function in the space of the Stein kernel, has mean zero under
    p and the smallest norm. For smooth f in few dimensions its error falls faster than n^(-1/2).

    Parameters
    ----------
    f : callable or array of shape (n,) or (n, t)
        Values at the rows, or a function that gives them.
    X : array or table of shape (n, d)
        The rows, which must differ.
    score, log_prob, kernel : callable or array of shape (n, d), callable, and Kernel or str
        As for `ksd`.
    alpha : float
        Ridge, relative to the mean of k_p(x, x).
    memory_budget : int, str or None
        Bytes, or text such as "2GiB"; by default half of what is free.

    References
    ----------
    Oates, Girolami and Chopin, *Control functionals for Monte Carlo integration*, 2017.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(200, 1))
    >>> found = control_functional(lambda x: x[:, 0] ** 2, X, lambda x: -x)
    >>> abs(found.mean - 1.0) < abs(found.plain_mean - 1.0)
    True
    """
    check(alpha=alpha)
    points, stein = stein_sample(X, score, log_prob, kernel)
    n = len(points)
    values = as_values(f(X) if callable(f) else f, "f", 1, 2).numpy()
    if len(values) != n:
        raise InputError(f"f has shape {values.shape} but X has {n} rows.")
    require(3 * 8 * n * n, resolve_budget(memory_budget), f"a control functional of {n:,} rows")
    K = stein.on(DensePair(points)).double()
    ridge = alpha * float(K.diagonal().mean())
    factor = factorise(
        lambda: K + ridge * torch.eye(n, dtype=torch.float64),
        what="The Stein kernel matrix",
        advice="use a larger alpha, or drop repeated rows",
    )
    solved = factor.solve(torch.ones(n, 1, dtype=torch.float64))[:, 0].numpy()
    weights = solved / solved.sum()
    mean, plain = weights @ values, values.mean(0)
    return ControlFunctional(
        float(mean) if values.ndim == 1 else mean, float(plain) if values.ndim == 1 else plain, weights
    )
