"""`two_sample_test`: do two samples come from one distribution?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.stats import gamma, norm
from torch import Tensor

from mercer.core.errors import InputError
from mercer.core.rules import is_flag, of_kind
from mercer.core.seeding import as_seed
from mercer.functions import RKHSFunction
from mercer.kernels import Kernel
from mercer.stats.arguments import check, check_name
from mercer.stats.columns import ColumnDifference, column_differences, found_columns
from mercer.stats.combining import check_combine, combined, normal_scores, per_kernel_p_values
from mercer.stats.dials import EXACT_ROWS, ROUNDING, SHARPNESS, SLOWER
from mercer.stats.differences_plot import plot_columns, plot_line
from mercer.stats.estimates import ESTIMATES, Estimate, shuffled
from mercer.stats.exchanges import ExchangedSums, exchanged_sums
from mercer.stats.families import domain_of, family, given_kernels
from mercer.stats.pair_sums import PairSums, pair_sums
from mercer.stats.resampling import (
    autocorrelation_time,
    exchanged_blocks,
    group_blocks,
    is_ordered,
    labels,
    order_blocks,
    signs,
)
from mercer.stats.results import TestResult, counted, findings, listed
from mercer.stats.samples import Pooled, column_labels, in_words
from mercer.stats.streamed import Streamed, as_source, feature_estimate, is_source, streamed_estimate, with_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COMBINED = {"fused": "fused", "min_p": "smallest p-value", "agg": "aggregated"}
NULLS = ("permutation", "wild", "gamma")


def two_sample_test(
    X: Any,
    Y: Any,
    kernel: Any = None,
    *,
    combine: str = "fused",
    estimator: str = "u",
    null: str = "permutation",
    groups: Any = None,
    order: Any = None,
    n_resamples: int = 2000,
    block_size: int | None = None,
    budget: int | None = None,
    random_state: Any = None,
    memory_budget: Any = None,
    client: Any = None,
) -> TwoSampleResult:
    r"""Test whether two samples come from one distribution, by their maximum mean discrepancy,

    .. math:: \mathrm{MMD}^2_U = \frac{\sum_{i \ne j} k(x_i, x_j)}{m (m - 1)}
        + \frac{\sum_{i \ne j} k(y_i, y_j)}{n (n - 1)} - \frac{2 \sum_{i, j} k(x_i, y_j)}{m n}.

    Rows that are exchangeable give an exact p-value at every sample size: labels are permuted, for all kernels at once,
    and all permutations are one product with the pooled Gram matrix, which is never stored. Samples of equally many
    rows, more than 250 each, exchange the rows of random pairs: as exact and as powerful, in less than half the time.

    Parameters
    ----------
    X, Y : array, table, RowSource or list
        Samples with the same columns (one dimension is one column), or lists of strings or other objects for kernels
        that take them.
    kernel : Kernel, str, callable, list of them or None
        None for ten Gaussian kernels and ten Laplace kernels (of the L1 distance), whose widths cover the pooled
        distances with each column in units of its deviation; "median" for one Gaussian; a kernel, a name or a list of
        them. With "precomputed", X and Y are the rows of the pooled Gram matrix, of shapes (m, m + n), (n, m + n).
    combine : str
        How several kernels become one test: "fused" (a soft maximum of normal scores), "min_p" (the smallest p-value,
        corrected by the same permutations) or "agg" (MMDAgg: half of the resamples for each of two layers).
    estimator : str
        "u", or for many rows, with a normal null distribution and no resampling, "cross", "linear", "block" or
        "incomplete", or "features" (random features, with a gamma null distribution); these take one kernel, the only
        ones for sources of rows. See `mmd` for `block_size` and `budget`.
    null : str
        "permutation"; "wild" for time series of equal length side by side; "gamma" for one kernel, from n = 200.
    groups : array of m + n, pair of arrays, or None
        The group of each row of X and of Y. Groups, such as patients, are exchanged as a whole.
    order : bool, int or None
        True where rows follow each other in time: blocks of them are exchanged, as long as their correlation asks for;
        an integer is the length of a block.
    n_resamples : int
        Random permutations. Where there are no more ways to choose the first sample, all are taken.
    client : dask.distributed.Client, str or None
        For sources of rows (`mercer.rows`) and Dask collections: a Dask client, its address or an engine; see `mmd` for
        how they are read.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None
        The seed; None is 0.
    memory_budget : int, str or None
        Bytes, or text such as "2GiB"; by default half of what is free.

    References
    ----------
    Gretton et al., *A kernel two-sample test*, 2012; Biggs, Schrab and Gretton, *MMD-FUSE*, 2023; Schrab et
    al., *MMD aggregated two-sample test*, 2023; Shekhar et al., *A permutation-free kernel two-sample test*, 2022.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(100, 2)), rng.normal(size=(120, 2)) * [1.0, 2.0]
    >>> result = two_sample_test(X, Y, n_resamples=500)
    >>> result.pvalue < 0.01, result.columns()[0].name
    (True, '1')
    """
    kernels = given_kernels(kernel)
    check_combine(combine)
    check_count(n_resamples)
    check_name("null", null, tuple(NULLS))
    of_kind(lambda value: isinstance(value, str), "a name, such as 'u'").check("estimator", estimator, False)
    _check_dependence(estimator, null, groups, order)
    if is_source(X) or is_source(Y) or estimator == "features":
        if estimator == "u":
            raise InputError(
                "Sources of rows and Dask collections are read in parts: give estimator='features', 'cross', 'linear', "
                "'block' or 'incomplete', with one kernel, such as kernel='median'."
            )
        given = Streamed(as_source(X), as_source(Y), client, as_seed(random_state))
        return _streamed(estimator, kernels, given, block_size, budget)
    check_name("estimator", estimator, ("u", *ESTIMATES, "features"))
    pooled = Pooled.of(X, Y, domain_of(kernels, X))
    if min(pooled.m, pooled.n) < 2:
        raise InputError(f"Each sample needs at least two rows; X has {pooled.m} and Y has {pooled.n}.")
    seed = as_seed(random_state)
    chosen = family(kernels, pooled.points, seed)
    if estimator != "u":
        return _asymptotic(estimator, chosen, pooled, block_size, budget, seed, memory_budget)
    if null == "gamma":
        return _by_gamma(chosen, pooled, memory_budget)
    if null == "wild":
        return _by_signs(chosen, pooled, combine, n_resamples, seed, order, memory_budget)
    N, m = len(pooled.points), pooled.m
    blocks, exchanged = exchanged_blocks(
        groups, order, (pooled.first, pooled.second), lambda g: group_blocks(g, m, N), lambda k: order_blocks(m, N, k)
    )
    if blocks is None and m == pooled.n and N > EXACT_ROWS and pooled.points.is_tensor and not of_matrices(chosen):
        return _by_pairs(chosen, pooled, combine, n_resamples, seed, memory_budget)
    A = labels(N, m, n_resamples, seed, blocks)
    shift = near_means(A)
    sums = pair_sums(chosen, pooled.points, A - shift, memory_budget=memory_budget)
    result = _combined(combine, chosen, unbiased(sums, A, shift), sums, min(pooled.m, pooled.n))
    count = A.shape[1] - 1
    how = f"MMD of {kernel_words(chosen, combine)}, {counted(count, 'permutation')}{exchanged}"
    return _result(pooled, result, how, count < n_resamples)


def of_matrices(kernels: Sequence[Kernel]) -> bool:
    """Whether a kernel is a ready Gram matrix."""
    return any(kernel.domain == "matrix" for kernel in kernels)


def _by_pairs(
    kernels: Sequence[Kernel], pooled: Pooled, combine: str, count: int, seed: int, memory: Any
) -> TwoSampleResult:
    """Permutations that exchange the rows of random pairs, one of each sample: a group of permutations, so that
    p-values are exact, too. Independent rows lose no power, and sums are a quarter of the work.
    """
    n = pooled.n
    partners = torch.from_numpy(np.random.default_rng([seed, 1]).permutation(n)) + n
    points = pooled.points.take(torch.cat([torch.arange(n), partners]))
    S = torch.cat([torch.ones(n, 1), signs(n, count, seed)], 1)
    sums = exchanged_sums(kernels, points, S, memory_budget=memory)
    how = f"MMD of {kernel_words(kernels, combine)}, {counted(count, 'permutation')}"
    return _result(pooled, _combined(combine, kernels, sums.unbiased, sums, n), how)


def _check_dependence(estimator: str, null: str, groups: Any, order: Any) -> None:
    """An error where rows are said to belong together and the null distribution takes no account of it."""
    if estimator != "u" and null != "permutation":
        raise InputError(f"estimator={estimator!r} has a null distribution of its own; leave out null={null!r}.")
    how = f"null={null!r}" if estimator == "u" else f"estimator={estimator!r}"
    if groups is not None and how != "null='permutation'":
        raise InputError(f"{how} takes no account of groups; permutations do (estimator='u', null='permutation').")
    if is_ordered(order) and how not in ("null='permutation'", "null='wild'"):
        raise InputError(f"{how} takes no account of order; permutations do (estimator='u', null='permutation').")


def near_means(A: Tensor) -> Tensor:
    """The column means to twelve bits, so that A minus them is exact in float32 too.

    >>> near_means(torch.tensor([[1.0], [0.0], [0.0]])) * 2**12
    tensor([1365.])
    """
    return (A.mean(0) * 2**12).round() / 2**12


def unbiased(sums: PairSums, A: Tensor, shift: Tensor) -> Tensor:
    """MMD^2_U for each kernel and each column of the indicators A, from forms of A - shift.

    Row sums and totals are float64, and so is all that is added up here.
    """
    m, c = A.sum(0).double(), shift.double()
    n = len(A) - m
    r, total = sums.rows @ A.double(), sums.totals.unsqueeze(1)
    first = sums.forms + 2.0 * c * r - c**2 * total
    scale = 1.0 / (m * (m - 1)) + 1.0 / (n * (n - 1)) + 2.0 / (m * n)
    return scale * first - r * (2.0 / (n * (n - 1)) + 2.0 / (m * n)) + total / (n * (n - 1))


@dataclass(frozen=True, eq=False, repr=False)
class TwoSampleResult(TestResult):
    """The result of `two_sample_test`: a `TestResult` that also says where the samples differ."""

    pooled: Pooled = field(kw_only=True)
    n_rows: tuple[int, int] | None = field(kw_only=True, default=None)

    def witness(self, X: Any) -> Any:
        r"""The witness function :math:`\hat\mu_X - \hat\mu_Y` of the kernel that counts most, at the rows of X.

        Positive where the first sample has more mass, negative where the second has.
        """
        return self._function()(X)

    def columns(self) -> tuple[ColumnDifference, ...]:
        """How much each column differs by itself, those that differ most first, with p-values corrected by Holm.

        Samples can differ in how columns go together although no column differs.
        """
        points = self.pooled.points
        if not points.is_tensor or self.kernel.domain == "matrix":
            raise InputError("Only tables have columns; these samples are objects or a ready Gram matrix.")
        x, y = (part.values.double().cpu().numpy() for part in (self.pooled.first, self.pooled.second))
        return column_differences(x, y, column_labels(points.names, x.shape[1]))

    def rows(self, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
        """The places of the rows of X and of Y that are most unlike the other sample, by the witness function."""
        values = self._values()
        m = self.pooled.m
        return np.argsort(-values[:m], kind="stable")[:k], np.argsort(values[m:], kind="stable")[:k]

    def plot_differences(self, ax: Axes | None = None) -> Axes:
        """Where the samples differ: densities and the witness of one column, or the distance of each of several."""
        if not self.pooled.points.is_tensor:
            return plot_columns(self.columns(), ax)
        x, y = (part.values.double().cpu().numpy() for part in (self.pooled.first, self.pooled.second))
        if x.shape[1] > 1:
            return plot_columns(self.columns(), ax)
        names = column_labels(self.pooled.points.names, 1)
        return plot_line(x[:, 0], y[:, 0], self.witness, names[0] if self.pooled.points.names else "x", ax)

    def _function(self) -> RKHSFunction:
        m, n = self.pooled.m, self.pooled.n
        coefficients = np.concatenate([np.full(m, 1.0 / m), np.full(n, -1.0 / n)])
        return RKHSFunction(self.kernel, self.pooled.points, coefficients)

    def _values(self) -> np.ndarray:
        if self.kernel.domain == "matrix":
            K = self.pooled.points.values.double().cpu().numpy()
            return np.asarray(K @ np.asarray(self._function().coef))
        points = self.pooled.points.values
        values = self.witness(points)
        return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)

    def _finding(self) -> str:
        if self.pvalue > 0.05:
            m, n = (self.pooled.m, self.pooled.n) if self.n_rows is None else self.n_rows
            return f"No difference found between samples of {m:,} and {n:,} rows"
        text = "The samples differ"
        if not self.pooled.points.is_tensor or self.kernel.domain == "matrix":
            return text
        found = [replace(c, name=in_words(c.name, self.pooled.points.names)) for c in self.columns()]
        if len(found) < 2:
            return text
        named, none = found_columns(found, 0.05)
        return f"{text}, most in {listed(named)}" if named else f"{text}, though {none}"


def _result(pooled: Pooled, found: Any, how: str, complete: bool = False) -> TwoSampleResult:
    joint, per_kernel = found
    null = joint.null.numpy()
    return TwoSampleResult(joint.statistic, joint.pvalue, null, how, per_kernel, complete=complete, pooled=pooled)


def _combined(
    combine: str, kernels: Sequence[Kernel], statistics: Tensor, sums: PairSums | ExchangedSums, n: int
) -> Any:
    sizes = (sums.squares / (n * (n - 1))).sqrt()
    rounding = sizes * ROUNDING[sums.dtype] / (n if sums.dtype == torch.float32 else 1)
    joint = combined(combine, statistics, rounding, normal_scores, SHARPNESS)
    each = per_kernel_p_values(statistics, rounding)
    return joint, findings(kernels, statistics[:, 0], each, joint.weights)


def kernel_words(kernels: Sequence[Kernel], combine: str) -> str:
    """The kernels of a test in words."""
    if len(kernels) == 1:
        return repr(kernels[0].rounded()) if len(repr(kernels[0])) < 100 else f"one {type(kernels[0]).__name__} kernel"
    return f"{len(kernels)} kernels, {COMBINED[combine]}"


def _by_signs(
    kernels: Sequence[Kernel], pooled: Pooled, combine: str, count: int, seed: int, order: Any, memory: Any
) -> TwoSampleResult:
    """The wild bootstrap: x_i and y_i, observed together, change places; signs stay as long as rows are correlated."""
    if pooled.m != pooled.n:
        raise InputError(f'null="wild" pairs rows: X and Y need equally many, not {pooled.m} and {pooled.n}.')
    n, flip = pooled.n, 0.5
    if is_ordered(order) and not is_flag(order):
        raise InputError(f"order={order!r:.60}: null='wild' takes True or None.")
    if is_ordered(order) and pooled.points.is_tensor:
        flip = flip_probability(torch.cat([pooled.first.values, pooled.second.values], 1))
    W = torch.cat([torch.ones(n, 1), signs(n, count, seed, flip)], 1)
    sums = exchanged_sums(kernels, pooled.points, W, memory_budget=memory)
    statistics = (sums.forms - 2.0 * sums.within.unsqueeze(1)) / (n * (n - 1))
    how = f"MMD of {kernel_words(kernels, combine)}, wild bootstrap of {count:,}"
    return _result(pooled, _combined(combine, kernels, statistics, sums, n), how)


def flip_probability(values: Tensor) -> float:
    """How often signs of a Markov bootstrap change: more slowly than rows forget each other, one half where at once.

    >>> round(flip_probability(torch.randn(4000, 1, generator=torch.Generator().manual_seed(0))), 1)
    0.5
    """
    time = autocorrelation_time(values)
    return 0.5 if time < 1.2 else 0.5 / (SLOWER * time)


def _by_gamma(kernels: Sequence[Kernel], pooled: Pooled, memory: Any) -> TwoSampleResult:
    r"""A gamma distribution with the mean and the variance that the eigenvalues of the centred Gram matrix give."""
    if len(kernels) != 1:
        raise InputError('null="gamma" needs one kernel, such as kernel="median".')
    N, m, n = len(pooled.points), pooled.m, pooled.n
    v = torch.cat([torch.full((m,), 1.0 / m), torch.full((n,), -1.0 / n)]).double().unsqueeze(1)
    sums = pair_sums(kernels, pooled.points, v, memory_budget=memory, dtype=torch.float64)
    diagonal = sums.diagonal[0]
    statistic = (m * n / N) * float(sums.forms[0, 0] + diagonal @ v[:, 0].square())
    mean, variance = gamma_moments(
        sums.rows[0] + diagonal, float(sums.squares[0]) + float(diagonal @ diagonal), diagonal
    )
    null = gamma(mean**2 / variance, scale=variance / mean) if variance > 0 else None
    p = 1.0 if null is None else float(null.sf(statistic))
    how = f"MMD of {kernel_words(kernels, '')}, gamma approximation"
    per_kernel = findings(kernels, [statistic], [p], [1.0])
    return TwoSampleResult(statistic, p, np.empty(0), how, per_kernel, approximation=null, pooled=pooled)


def gamma_moments(rows: Tensor, squares: float, diagonal: Tensor) -> tuple[float, float]:
    """Mean and variance of sum_l lambda_l chi^2_l for the eigenvalues lambda of the centred Gram matrix over N."""
    N, total = len(rows), float(rows.sum())
    trace = float(diagonal.sum()) - total / N
    frobenius = squares - 2.0 * float(rows @ rows) / N + (total / N) ** 2
    return trace / (N - 1), 2.0 * max(frobenius, 0.0) / (N - 1) ** 2


def _asymptotic(
    estimator: str, kernels: Sequence[Kernel], pooled: Pooled, block_size: Any, budget: Any, seed: int, memory: Any
) -> TwoSampleResult:
    """An unbiased estimate over its standard error, which is normal if the samples have one distribution."""
    if len(kernels) != 1:
        raise InputError(f'estimator={estimator!r} needs one kernel, such as kernel="median".')
    estimate = ESTIMATES[estimator](kernels[0], shuffled(pooled, seed), block_size, budget, seed, memory)
    how = f"{estimator} MMD of {kernel_words(kernels, '')}, normal approximation"
    return normal_result(estimate, kernels[0], pooled, how)


def normal_result(estimate: Estimate, kernel: Kernel, pooled: Pooled, how: str) -> TwoSampleResult:
    """The one-sided test of an estimate and its standard error."""
    z = estimate.value / estimate.error if 0 < estimate.error < math.inf else 0.0
    p = float(norm.sf(z))
    per_kernel = findings([kernel], [z], [p], [1.0])
    return TwoSampleResult(z, p, np.empty(0), how, per_kernel, approximation=norm(), pooled=pooled)


def _streamed(
    estimator: str, kernels: Sequence[Kernel] | None, given: Streamed, block_size: Any, budget: Any
) -> TwoSampleResult:
    """The test of two sources, of which some rows are kept for the result to look at."""
    if kernels is None or len(kernels) != 1 or kernels[0].domain not in ("vectors", "any"):
        raise InputError(f'estimator={estimator!r} needs one kernel of rows, such as kernel="median".')
    rows = (given.x.n_rows, given.y.n_rows)
    if min(rows) < 2:
        raise InputError(f"Each sample needs at least two rows; X has {rows[0]} and Y has {rows[1]}.")
    pooled = given.drawn()
    kernel = with_width(kernels[0], pooled, given.seed)
    if estimator != "features":
        estimate = streamed_estimate(estimator, kernel, given, block_size, budget)
        how = f"{estimator} MMD of {kernel_words([kernel], '')} over sources of rows, normal approximation"
        return replace(normal_result(estimate, kernel, pooled, how), n_rows=rows)
    found, mean, variance = feature_estimate(kernel, given)
    statistic = found.value + mean
    null = gamma(mean**2 / variance, scale=variance / mean) if variance > 0 else None
    p = 1.0 if null is None else float(null.sf(statistic))
    how = f"MMD of random features of {kernel_words([kernel], '')}, gamma approximation"
    per_kernel = findings([kernel], [statistic], [p], [1.0])
    return TwoSampleResult(statistic, p, np.empty(0), how, per_kernel, approximation=null, pooled=pooled, n_rows=rows)


def check_count(n_resamples: Any) -> None:
    """An error for what is no number of resamples."""
    check(n_resamples=n_resamples)
