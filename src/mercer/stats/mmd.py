"""Estimators of the maximum mean discrepancy."""

from __future__ import annotations

import math
from typing import Any

from mercer.core.errors import InputError
from mercer.core.seeding import as_seed
from mercer.kernels import Kernel, resolve
from mercer.stats.arguments import check, check_given, check_name
from mercer.stats.estimates import ESTIMATES, quadratic, shuffled
from mercer.stats.families import domain_of, given_kernels
from mercer.stats.samples import Pooled, sample_weights
from mercer.stats.streamed import Streamed, as_source, is_source, streamed_estimate, with_width

ESTIMATORS = ("v", "u", "linear", "block", "incomplete", "cross", "features")


def mmd(
    X: Any,
    Y: Any,
    kernel: Any = "gaussian",
    *,
    estimator: str = "v",
    squared: bool = False,
    weights_x: Any = None,
    weights_y: Any = None,
    block_size: int | None = None,
    budget: int | None = None,
    random_state: Any = None,
    memory_budget: Any = None,
    client: Any = None,
) -> float:
    r"""The maximum mean discrepancy of two samples, the distance of their mean embeddings,

    .. math:: \mathrm{MMD}^2 = \mathbb E\, k(X, X') + \mathbb E\, k(Y, Y') - 2\, \mathbb E\, k(X, Y).

    Parameters
    ----------
    X, Y : array, table, RowSource or list
        Samples with the same columns (one dimension is one column), or lists of objects for kernels that take them.
    kernel : Kernel, str or callable
        A kernel or the name of one; a width "median" is that of the pooled rows. With "precomputed", X and Y are the
        rows of the pooled Gram matrix, of shapes (m, m + n) and (n, m + n).
    estimator : str
        "v" (the distance of the weighted samples, biased), "u" (unbiased), or for many rows, all unbiased: "linear"
        (one pass over pairs of rows), "block" (the mean of "u" over blocks of `block_size` rows, by default the root of
        their number), "incomplete" (over `budget` random pairs), "cross" (one half of each sample against the other),
        "features" (by random Fourier features).
    squared : bool
        Give MMD^2. Unbiased estimates of it can be negative; their root is then zero.
    client : dask.distributed.Client, str or None
        For sources of rows (`mercer.rows`) and Dask collections, which take all but "v" and "u": a Dask client, its
        address or an engine. "features" and "cross" are made where the rows are; the others read both sources side by
        side, and pair rows that are read together, so that these must be in random order.
    weights_x, weights_y : array of shape (m,) and (n,), or None
        Of the rows, possibly negative, divided by their sum; for "v" and "u".
    block_size, budget : int or None
        Rows in a block of "block", and random pairs of "incomplete".
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None
        The seed; None is 0.
    memory_budget : int, str or None
        Bytes, or text such as "2GiB"; by default half of what is free.

    References
    ----------
    Gretton et al., *A kernel two-sample test*, 2012; Zaremba et al., *B-test*, 2013; Shekhar et al., *A
    permutation-free kernel two-sample test*, 2022; Schrab et al., *Efficient aggregated kernel tests using incomplete
    U-statistics*, 2022.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> mmd([[0.0], [2.0]], [[4.0], [6.0]], Linear())
    4.0
    >>> mmd([[0.0], [2.0]], [[4.0], [6.0]], Linear(), estimator="u", squared=True)
    14.0
    """
    check_name("estimator", estimator, tuple(ESTIMATORS))
    check(squared=squared)
    check_given(block_size=block_size, budget=budget)
    weighted = weights_x is not None or weights_y is not None
    if weighted and estimator not in ("v", "u"):
        raise InputError(f'Weights are for the estimators "v" and "u", not for {estimator!r}.')
    kernels = given_kernels(kernel)
    if kernels is None or len(kernels) != 1:
        raise InputError(f"kernel={kernel!r}: mmd takes one kernel.")
    if is_source(X) or is_source(Y) or estimator == "features":
        given = Streamed(as_source(X), as_source(Y), client, as_seed(random_state))
        width = with_width(kernels[0], given.drawn(), given.seed)
        value = streamed_estimate(estimator, width, given, block_size, budget).value
        return value if squared else math.sqrt(max(value, 0.0))
    pooled = Pooled.of(X, Y, domain_of(kernels, X))
    chosen = _resolved(kernels[0], pooled, as_seed(random_state))
    if estimator in ("v", "u"):
        a = sample_weights(weights_x, pooled.m, "weights_x")
        b = sample_weights(weights_y, pooled.n, "weights_y")
        value = quadratic(chosen, pooled, a, b, estimator == "u", memory_budget)
    else:
        mixed = shuffled(pooled, as_seed(random_state))
        value = _estimate(estimator, chosen, mixed, block_size, budget, as_seed(random_state), memory_budget)
    return value if squared else math.sqrt(max(value, 0.0))


def _resolved(kernel: Kernel, pooled: Pooled, seed: int) -> Kernel:
    if kernel.domain == "matrix":
        return kernel
    return resolve(kernel.bind(pooled.points.names), pooled.points, seed=seed) if pooled.points.is_tensor else kernel


def _estimate(
    estimator: str, kernel: Kernel, pooled: Pooled, block_size: int | None, budget: int | None, seed: int, memory: Any
) -> float:
    if kernel.domain == "matrix":
        raise InputError(f'estimator={estimator!r} needs rows, not a ready Gram matrix; use "v" or "u".')
    return ESTIMATES[estimator](kernel, pooled, block_size, budget, seed, memory).value
