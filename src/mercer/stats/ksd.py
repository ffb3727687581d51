"""The kernel Stein discrepancy."""

from __future__ import annotations

import math
from typing import Any

import torch

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.kernels import InverseMultiquadric, Kernel, resolve
from mercer.stats.arguments import check, check_name
from mercer.stats.families import given_kernels
from mercer.stats.pair_sums import pair_sums
from mercer.stats.samples import sample_points, sample_weights
from mercer.stats.scores import scored_points
from mercer.stats.stein_kernel import SteinKernel


def ksd(
    X: Any,
    score: Any = None,
    *,
    log_prob: Any = None,
    kernel: Any = None,
    estimator: str = "v",
    squared: bool = False,
    sample_weight: Any = None,
    memory_budget: Any = None,
) -> float:
    r"""The kernel Stein discrepancy of a sample from a distribution p that is known up to its constant,

    .. math:: \mathrm{KSD}^2 = \sum_{i, j} w_i w_j\, k_p(x_i, x_j)
        = \sup_{\|f\| \le 1} \Big(\sum_i w_i\, (s_p \cdot f + \nabla \cdot f)(x_i)\Big)^2.

    Parameters
    ----------
    X : array or table of shape (n, d)
        The sample; one dimension is one column.
    score : callable or array of shape (n, d)
        The gradients of log p at the rows.
    log_prob : callable
        Or log p, as a function of a torch tensor of rows.
    kernel : Kernel, str, callable or None
        The base kernel, by default an inverse multiquadric with the median width and the power 1/2, which detects when
        a sample does not converge to p; or a kernel of its own on points, such as `DiscreteSteinKernel`.
    estimator : str
        "v", or "u" for the unbiased one, which can be negative.
    squared : bool
        Give KSD^2.
    sample_weight : array-like of shape (n,), or None
        Of the rows, possibly negative, divided by their sum.
    memory_budget : int, str or None
        Bytes, or text such as "2GiB"; by default half of what is free.

    References
    ----------
    Liu, Lee and Jordan, 2016; Chwialkowski, Strathmann and Gretton, *A kernel test of goodness of fit*,
    2016; Gorham and Mackey, 2017.

    Examples
    --------
    >>> from mercer.kernels import InverseMultiquadric
    >>> round(ksd([[0.0], [1.0]], lambda x: -x, kernel=InverseMultiquadric(1.0), squared=True), 4)
    0.4848
    """
    check_name("estimator", estimator, ("v", "u"))
    check(squared=squared)
    points, stein = stein_sample(X, score, log_prob, kernel)
    weights = sample_weights(sample_weight, len(points), "sample_weight")
    sums = pair_sums([stein], points, weights.unsqueeze(1), memory_budget=memory_budget, dtype=torch.float64)
    value, squares = float(sums.forms[0, 0]), float(weights.square().sum())
    if estimator == "v":
        value += float(sums.diagonal[0] @ weights.square())
    elif squares >= 1.0:
        raise InputError('estimator="u" needs at least two rows of positive weight; "v" takes one.')
    else:
        value /= 1.0 - squares
    return value if squared else math.sqrt(max(value, 0.0))


def stein_sample(X: Any, score: Any, log_prob: Any, kernel: Any) -> tuple[Points, Kernel]:
    """The rows with their scores, and the Stein kernel on them."""
    points = sample_points(X, "X")
    base = base_kernel(kernel, points)
    if getattr(base, "is_stein", False):
        if score is not None or log_prob is not None:
            raise InputError(f"{base!r} knows its distribution; leave out score and log_prob.")
        return points, base
    return scored_points(points, score, log_prob), SteinKernel(base)


def base_kernel(kernel: Any, points: Points) -> Kernel:
    """The base kernel with its width found."""
    kernels = given_kernels("imq" if kernel is None else kernel)
    assert kernels is not None
    if len(kernels) != 1:
        raise InputError(f"One base kernel is needed, got {len(kernels)}.")
    base = InverseMultiquadric("median") if kernel == "median" else kernels[0]
    return resolve(base.bind(points.names), points)
