"""`independence_test`: do two things that were observed together have anything to do with each other?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.stats import gamma
from torch import Tensor

from mercer.core.errors import InputError
from mercer.core.seeding import as_seed
from mercer.kernels import Kernel
from mercer.stats.arguments import check_name
from mercer.stats.centred_grams import CentredGram, centred_gram, permutation_moments, permuted_sums
from mercer.stats.combining import check_combine, combined, in_units, per_kernel_p_values
from mercer.stats.dependence_plot import plot_pairs, plot_shares
from mercer.stats.dials import COLUMN_RESAMPLES, EXACT_INDEPENDENCE, EXPONENT, ROUNDING
from mercer.stats.orders import consecutive_blocks, orders, row_blocks
from mercer.stats.resampling import exchanged_blocks
from mercer.stats.results import TestResult, counted, findings, listed
from mercer.stats.samples import in_words
from mercer.stats.sides import Side, check_paired, side
from mercer.stats.two_sample import COMBINED, check_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NULLS = ("permutation", "gamma")


def independence_test(
    X: Any,
    Y: Any,
    kernel_x: Any = None,
    kernel_y: Any = None,
    *,
    combine: str = "fused",
    null: str = "permutation",
    groups: Any = None,
    order: Any = None,
    n_resamples: int = 2000,
    random_state: Any = None,
    memory_budget: Any = None,
) -> IndependenceResult:
    r"""Test whether paired observations are independent, by their Hilbert-Schmidt independence criterion,

    .. math:: \mathrm{HSIC} = \tfrac{1}{n^2} \operatorname{tr}(K H L H), \qquad H = I - \tfrac1n 1 1^\top.

    It finds dependence of any kind, also where no correlation is. The rows of Y are given to the rows of X in random
    orders, the same ones for all pairs of kernels, so that the p-value is exact at every sample size. Statistics are
    compared in units of their standard deviation over all orders, which has a closed form.

    Parameters
    ----------
    X, Y : table, array or list
        Samples with one row for each observation: tables or columns of numbers, labels (text, booleans, or at most 20
        different integers in one dimension), or lists of objects for kernels that take them.
    kernel_x, kernel_y : kernel, name or list of them
        None for Gaussian kernels of five widths, with each column in units of its deviation, and for labels the kernel
        that is one where they are equal; "median"; "precomputed" for a ready Gram matrix (n, n).
    combine : str
        {"fused", "min_p", "agg"} How several pairs of kernels become one test: a soft maximum, the smallest p-value
        corrected by the same permutations, or HSICAgg, with half of the resamples for each of two layers.
    null : str
        {"permutation", "gamma"} "gamma" is for one pair of kernels, from 200 rows: a gamma distribution with the mean
        and the variance over all permutations.
    groups : array of n, optional
        The group of each row: groups, such as patients, change partners as a whole, those with equally many rows.
    order : bool, int or None
        True where rows follow each other in time: blocks of them change partners, as long as their correlation asks
        for. An integer is the length of a block.
    n_resamples : int
        Random orders. Where there are no more orders, all are taken.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None
        The seed; None is 0.
    memory_budget : int, str or None
        Bytes, or text such as "2GiB"; by default half of what is free.

    Returns
    -------
    IndependenceResult

    References
    ----------
    Gretton et al., *A kernel statistical test of independence*, 2008; Albert et al., *Adaptive test of independence
    based on HSIC measures*, 2022; Schrab, Kim, Guedj and Gretton, *Efficient aggregated kernel tests using incomplete
    U-statistics*, 2022.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(150, 2))
    >>> Y = X[:, 1] ** 2 + 0.3 * rng.normal(size=150)
    >>> result = independence_test(X, Y, n_resamples=500)
    >>> result.pvalue < 0.01, result.columns()[0].name
    (True, '1')
    """
    check_combine(combine)
    check_count(n_resamples)
    check_name("null", null, tuple(NULLS))
    seed = as_seed(random_state)
    x, y = side(X, "X", kernel_x, seed), side(Y, "Y", kernel_y, seed)
    check_paired(x, y)
    n = len(x)
    blocks, exchanged = exchanged_blocks(
        groups, order, (x.points, y.points), lambda g: row_blocks(g, n), lambda k: consecutive_blocks(n, k)
    )
    if null == "gamma" and blocks is not None:
        raise InputError("null='gamma' takes rows to be independent; leave out groups and order, or null.")
    found_x, found_y = ([centred_gram(k, s.points, memory_budget) for k in s.kernels] for s in (x, y))
    grams = [(a, b) for a in found_x for b in found_y]
    moments = np.array([permutation_moments(a, b) for a, b in grams]) / [len(x) ** 2, len(x) ** 4]
    pairs = [(k, l) for k in x.kernels for l in y.kernels]
    if null == "gamma":
        return _by_gamma(x, y, pairs, grams, moments)
    dtype = torch.float64 if len(x) <= EXACT_INDEPENDENCE else torch.float32
    sums = permuted_sums(found_x, found_y, orders(len(x), n_resamples, seed, blocks), dtype)
    statistics = sums / len(x) ** 2
    joint, each = _joined(combine, statistics, moments, dtype)
    per_kernel = findings(pairs, statistics[:, 0], each, joint.weights)
    count = sums.shape[1] - 1
    how = f"HSIC of {_words(pairs, combine)}, {counted(count, 'permutation')}{exchanged}"
    return IndependenceResult(
        joint.statistic, joint.pvalue, joint.null.numpy(), how, per_kernel,
        complete=count < n_resamples, x=x, y=y, seed=seed,
    )  # fmt: skip


def _joined(combine: str, statistics: Tensor, moments: np.ndarray, dtype: torch.dtype) -> tuple[Any, list[float]]:
    mean, variance = torch.from_numpy(moments.T)
    spread = variance.sqrt()
    rounding = ROUNDING[dtype] * (mean + spread)
    joint = combined(combine, statistics, rounding, lambda T: in_units(T - mean[:, None], spread), EXPONENT)
    return joint, per_kernel_p_values(statistics, rounding)


@dataclass(frozen=True)
class ColumnDependence:
    """How much one column has to do with the other side.

    Attributes
    ----------
    side : str
        "X" or "Y".
    name : str
        Of the column.
    statistic : float
        Its HSIC with all of the other side, in standard deviations over permutations.
    pvalue : float
        Corrected for the number of columns by the largest statistic of each permutation.
    share : float
        The square root of HSIC over the largest that both kernels allow, between 0 and 1.
    """

    side: str
    name: str
    statistic: float
    pvalue: float
    share: float


@dataclass(frozen=True, eq=False, repr=False)
class IndependenceResult(TestResult):
    """The result of `independence_test`: a `TestResult` that also says what depends on what."""

    x: Side = field(kw_only=True)
    y: Side = field(kw_only=True)
    seed: int = field(kw_only=True, default=0)

    def columns(self) -> tuple[ColumnDependence, ...]:
        """How much each column has to do with the other side, those that have most first.

        Columns of X are tested against all of Y, those of Y against all of X, by themselves. Columns can matter
        together although none does by itself.
        """
        found = [c for sides in ((self.x, self.y), (self.y, self.x)) for c in _columns(*sides, self.seed)]
        if not found:
            raise InputError("Only tables have columns; both sides are labels, objects or ready Gram matrices.")
        return tuple(sorted(found, key=lambda c: (c.pvalue, -c.share)))

    def rows(self, k: int = 5) -> np.ndarray:
        """The places of the rows that contribute most to the dependence."""
        return np.argsort(-self._contributions(), kind="stable")[:k]

    def witness(self, X: Any, Y: Any) -> np.ndarray:
        r"""The witness function :math:`\hat\mu_{XY} - \hat\mu_X \otimes \hat\mu_Y` of the pair of kernels that counts
        most, at pairs of rows of X and Y: positive where they occur together more often than chance would have them.
        """
        K, L = (s.against(rows, k) for s, rows, k in zip((self.x, self.y), (X, Y), self.kernel, strict=True))
        if len(K) != len(L):
            raise InputError(f"X has {len(K)} rows but Y has {len(L)}; rows are paired.")
        return ((K * L).mean(1) - K.mean(1) * L.mean(1)).numpy()

    def plot_dependence(self, ax: Axes | None = None) -> Axes:
        """What depends on what: pairs of one column each, coloured by the witness, or the share of each column."""
        one = all(s.n_columns == 1 for s in (self.x, self.y))
        if not one:
            return plot_shares(self.columns(), ax)
        x, y = (s.points.values[:, 0].double().cpu().numpy() for s in (self.x, self.y))
        names = [s.column_names[0] if s.points.names else label for s, label in ((self.x, "x"), (self.y, "y"))]
        return plot_pairs(x, y, self._contributions(), names[0], names[1], ax)

    def _contributions(self) -> np.ndarray:
        found = [centred_gram(k, s.points) for k, s in zip(self.kernel, (self.x, self.y), strict=True)]
        a, b = (g.factor for g in found)
        if a is None or b is None:
            return (found[0].whole * found[1].whole).mean(1).numpy()
        return (((a @ (a.T @ b)) * b).sum(1) / len(a)).numpy()

    def _finding(self) -> str:
        n = f"{len(self.x):,} rows"
        if self.pvalue > 0.05:
            return f"No dependence found in {n}"
        if max(self.x.n_columns, self.y.n_columns) < 2:
            return f"X and Y depend on each other, in {n}"
        several = {s.name: s.points.names for s in (self.x, self.y) if s.n_columns > 1}
        named = [
            f"{in_words(c.name, several[c.side])} ({c.side})"
            for c in self.columns()
            if c.pvalue <= 0.05 and c.side in several
        ]
        if not named:
            return f"X and Y depend on each other, in {n}, though no column does by itself"
        return f"X and Y depend on each other, in {n}, most through {listed(named)}"


def _columns(one: Side, other: Side, seed: int) -> list[ColumnDependence]:
    if one.n_columns == 0:
        return []
    parts = one.by_column(seed)
    grams = [centred_gram(p.kernels[0], p.points) for p in parts]
    whole = [centred_gram(other.middle, other.points)]
    dtype = torch.float64 if len(one) <= EXACT_INDEPENDENCE else torch.float32
    sums = permuted_sums(grams, whole, orders(len(one), COLUMN_RESAMPLES, seed), dtype)
    mean, variance = np.array([permutation_moments(g, whole[0]) for g in grams]).T
    spread = np.sqrt(variance)
    standard = (sums.numpy() - mean[:, None]) / np.where(spread > 0, spread, np.inf)[:, None]
    largest = standard[:, 1:].max(0)
    pvalues = (1 + (largest[None, :] >= standard[:, :1] - 1e-6).sum(1)) / (sums.shape[1])
    norms = np.array([math.sqrt(g.squares * whole[0].squares) for g in grams])
    shares = np.sqrt(np.maximum(sums[:, 0].numpy(), 0.0) / np.where(norms > 0, norms, np.inf))
    return [
        ColumnDependence(one.name, name, float(t), float(p), float(s))
        for name, t, p, s in zip(one.column_names, standard[:, 0], pvalues, shares, strict=True)
    ]


def _by_gamma(
    x: Side, y: Side, pairs: Sequence[tuple[Kernel, Kernel]], grams: Sequence[tuple[CentredGram, CentredGram]],
    moments: np.ndarray,
) -> IndependenceResult:  # fmt: skip
    if len(pairs) != 1:
        raise InputError('null="gamma" needs one pair of kernels, such as kernel_x="median", kernel_y="median".')
    a, b = grams[0]
    statistic = float((a.whole * b.whole).sum()) / len(x) ** 2
    mean, variance = moments[0]
    null = gamma(mean**2 / variance, scale=variance / mean) if variance > 0 else None
    p = 1.0 if null is None else float(null.sf(statistic))
    how = f"HSIC of {_words(pairs, '')}, gamma approximation"
    per_kernel = findings(pairs, [statistic], [p], [1.0])
    return IndependenceResult(statistic, p, np.empty(0), how, per_kernel, approximation=null, x=x, y=y)


def _words(pairs: Sequence[tuple[Kernel, Kernel]], combine: str) -> str:
    if len(pairs) > 1:
        return f"{len(pairs)} pairs of kernels, {COMBINED[combine]}"
    text = " and ".join(repr(k.rounded()) for k in pairs[0])
    return text if len(text) < 120 else " and ".join(f"{type(k).__name__}" for k in pairs[0])
