"""`goodness_of_fit_test`: does a sample come from a given distribution?"""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from scipy.stats import norm
from torch import Tensor

from mercer.core.arrays import Points, as_points
from mercer.core.errors import InputError, InputTypeError
from mercer.core.rules import is_flag, is_number
from mercer.core.seeding import as_seed
from mercer.kernels import Kernel
from mercer.stats.columns import ColumnDifference, holm
from mercer.stats.combining import check_combine, combined, in_units, per_kernel_p_values
from mercer.stats.dials import PARAMETRIC_RESAMPLES, ROUNDING
from mercer.stats.families import family, given_kernels
from mercer.stats.mixed import is_mixed
from mercer.stats.pair_sums import PairSums, pair_sums
from mercer.stats.resampling import is_ordered, signs
from mercer.stats.results import TestResult, findings
from mercer.stats.samples import column_labels, sample_points
from mercer.stats.scores import scored_points
from mercer.stats.stein_kernel import SteinKernel
from mercer.stats.two_sample import TwoSampleResult, check_count, flip_probability, kernel_words, two_sample_test


def goodness_of_fit_test(
    X: Any,
    score: Any = None,
    *,
    log_prob: Any = None,
    sampler: Callable[..., Any] | None = None,
    fit: Callable[..., Any] | None = None,
    kernel: Any = None,
    combine: str = "fused",
    order: Any = None,
    n_resamples: int | None = None,
    random_state: Any = None,
    memory_budget: Any = None,
) -> Any:
    r"""Test whether a sample comes from a distribution p, by its kernel Stein discrepancy,

    .. math:: \mathrm{KSD}^2_U = \frac{1}{n (n - 1)} \sum_{i \ne j} k_p(x_i, x_j).

    p is known up to its constant, by a score or a log density; or it can be sampled from; or it is one of a family
    whose parameters are fitted. The null distribution is that of :math:`\sum_{i \ne j} \epsilon_i \epsilon_j
    k_p(x_i, x_j)` with random signs (wild bootstrap), which is right for large n, from about 100 rows.

    Parameters
    ----------
    score : callable or array of shape (n, d)
        The gradients of log p at the rows; see `ksd`.
    log_prob : callable
        Or log p, as a function of a torch tensor of rows.
    sampler : callable or None
        A function (n, random_state) that draws n rows from p: a two-sample test with as many rows as X has.
    fit : callable or None
        A function from rows to a distribution with `log_prob(rows)`, and `sample((n,))` as in `torch.distributions` or
        `rvs(n, random_state)`. The statistic is compared with those of samples of the fitted distribution, each of
        which is fitted again (parametric bootstrap).
    kernel : Kernel, str, callable, list of them or None
        Base kernels: None for ten inverse multiquadrics whose widths cover the distances of the rows; "median"; a
        kernel, a name, or a list. Or Stein kernels of their own, such as `DiscreteSteinKernel`.
    combine : str
        "fused", "min_p" or "agg" (KSDAgg): see `two_sample_test`.
    order : bool, float or None
        True where rows are the draws of a Markov chain, in order: signs then change more slowly than rows forget
        each other. A number is the probability of a change.
    n_resamples : int or None
        2,000 by default, 500 with `fit`.
    memory_budget : int, str or None
        Bytes, or text such as "2GiB"; by default half of what is free.

    References
    ----------
    Chwialkowski, Strathmann and Gretton, 2016; Liu, Lee and Jordan, 2016; Schrab, Guedj and Gretton, *KSD
    aggregated goodness-of-fit test*, 2022; Key et al., *Composite goodness-of-fit tests with kernels*, 2025.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_t(3, size=(300, 2))
    >>> goodness_of_fit_test(X, lambda x: -x, n_resamples=500).pvalue < 0.01
    True
    """
    check_combine(combine)
    given = [
        name
        for name, value in (("score", score), ("log_prob", log_prob), ("sampler", sampler), ("fit", fit))
        if value is not None
    ]
    if len(given) > 1:
        raise InputError(f"Give one of score, log_prob, sampler and fit, not {' and '.join(given)}.")
    if fit is not None and is_ordered(order):
        raise InputError("fit draws independent rows from the fitted distribution; leave out order.")
    count = (PARAMETRIC_RESAMPLES if fit is not None else 2000) if n_resamples is None else n_resamples
    check_count(count)
    seed = as_seed(random_state)
    if sampler is not None:
        return _against_sampler(X, sampler, kernel, combine, order, count, seed, memory_budget)
    points = sample_points(X, "X")
    if len(points) < 2:
        raise InputError(f"X has {len(points)} row; a goodness-of-fit test needs at least two.")
    kernels = given_kernels(kernel)
    if fit is not None:
        return _refitted(points, fit, kernels, combine, count, seed, memory_budget)
    base = family(kernels, points, seed, smooth=True)
    rows, stein = _stein(points, base, score, log_prob)
    n, flip = len(points), _flip(order, points)
    W = torch.cat([torch.ones(n, 1), signs(n, count, seed, flip)], 1)
    sums = pair_sums(stein, rows, W, memory_budget=memory_budget)
    chain = "" if flip == 0.5 else f" for a chain (signs change with probability {flip:.2g})"
    how = f"KSD of {kernel_words(base, combine)}, wild bootstrap of {count:,}{chain}"
    return _result(combine, base, sums, n, how, rows if stein is not base else None, points)


@dataclass(frozen=True, eq=False, repr=False)
class GoodnessOfFitResult(TestResult):
    """The result of `goodness_of_fit_test`: a `TestResult` that also says where the sample is off."""

    points: Points = field(kw_only=True)
    scored: Points | None = field(kw_only=True, default=None)

    def witness(self) -> np.ndarray:
        """For each row, the mean of its Stein kernel with the others: large where the sample has too much mass."""
        kernel = self.kernel if self.scored is None else SteinKernel(self.kernel)
        sums = pair_sums([kernel], self.points if self.scored is None else self.scored)
        return (sums.rows[0] / max(1, len(self.points) - 1)).numpy()

    def rows(self, k: int = 5) -> np.ndarray:
        """The places of the rows that contribute most."""
        return np.argsort(-self.witness(), kind="stable")[:k]

    def columns(self) -> tuple[ColumnDifference, ...]:
        """How much each column is off, those that are most first.

        Under p the score has mean zero and x_j s_j has mean minus one. `distance` is the larger of both deviations in
        standard errors, `pvalue` is corrected by Holm, `shift` is the mean score. For independent rows, and densities
        whose tails are not heavier than those of a Student distribution with five degrees of freedom.
        """
        if self.scored is None:
            raise InputError("Columns can be tested only where a score is known.")
        both = self.scored.values
        x, s = both[:, : both.shape[1] // 2], both[:, both.shape[1] // 2 :]
        centred = x - x.mean(0)
        z = torch.stack([_standardised(s), _standardised(centred * s + 1.0)]).abs().amax(0).numpy()
        pvalues = holm(np.minimum(1.0, 2 * 2 * norm.sf(z)))
        shift = (s.mean(0) / s.std(0).clamp(min=1e-300)).numpy()
        names = column_labels(self.points.names, len(z))
        found = [
            ColumnDifference(*entry) for entry in zip(names, z.tolist(), pvalues.tolist(), shift.tolist(), strict=True)
        ]
        return tuple(sorted(found, key=lambda c: (c.pvalue, -c.distance)))

    def _finding(self) -> str:
        n = f"{len(self.points):,} rows"
        return f"The {n} do not fit the distribution" if self.pvalue <= 0.05 else f"No misfit found in {n}"


def _standardised(values: Tensor) -> Tensor:
    spread = values.std(0) / math.sqrt(len(values))
    return torch.where(spread > 0, values.mean(0) / spread, torch.zeros_like(spread))


def _stein(points: Points, base: Sequence[Kernel], score: Any, log_prob: Any) -> tuple[Points, Sequence[Kernel]]:
    """Rows with scores and Stein kernels on them; kernels that know their distribution stay as they are."""
    own = [getattr(k, "is_stein", False) for k in base]
    if all(own):
        if score is not None or log_prob is not None:
            raise InputError("These kernels know their distribution; leave out score and log_prob.")
        return points, base
    return scored_points(points, score, log_prob), [SteinKernel(k) for k in base]


def _flip(order: Any, points: Points) -> float:
    if not is_ordered(order):
        return 0.5
    if is_flag(order):
        return flip_probability(points.values)
    if is_number(order) and 0 < order <= 0.5:
        return float(order)
    raise InputError(f"order={order!r:.60}: give True, or the probability of a change of sign, at most 0.5.")


def _result(
    combine: str, base: Sequence[Kernel], sums: PairSums, n: int, how: str, scored: Points | None, points: Points
) -> GoodnessOfFitResult:
    statistics = sums.forms / (n * (n - 1))
    sizes = (sums.squares / (n * (n - 1))).sqrt()
    return _joined(combine, base, statistics, sizes, n, how, scored, points)


def _joined(
    combine: str,
    base: Sequence[Kernel],
    statistics: Tensor,
    sizes: Tensor,
    n: int,
    how: str,
    scored: Any,
    points: Points,
) -> GoodnessOfFitResult:
    rounding = sizes * ROUNDING[torch.float64]
    joint = combined(combine, statistics, rounding, lambda T: in_units(T, sizes), math.sqrt(n * (n - 1)))
    each = per_kernel_p_values(statistics, rounding)
    found = findings(base, statistics[:, 0], each, joint.weights)
    return GoodnessOfFitResult(
        joint.statistic, joint.pvalue, joint.null.numpy(), how, found, points=points, scored=scored
    )


def _refitted(
    points: Points, fit: Callable[..., Any], kernels: Any, combine: str, count: int, seed: int, memory: Any
) -> GoodnessOfFitResult:
    """The parametric bootstrap. Widths are those of the data, so that all statistics are of the same kernels."""
    base = family(kernels, points, seed, smooth=True)
    n, x = len(points), points.values.detach().double()
    fitted = fit(x)
    rng = unlike(seed)
    scored = _scored_by(fitted, x)
    columns, sizes = [], None
    for b in range(count + 1):
        rows = scored if b == 0 else _scored_again(fit, _drawn(fitted, n, rng), x.shape)
        sums = pair_sums([SteinKernel(k) for k in base], rows, torch.ones(n, 1), memory_budget=memory)
        columns.append(sums.forms / (n * (n - 1)))
        sizes = (sums.squares / (n * (n - 1))).sqrt() if sizes is None else sizes
    assert sizes is not None
    how = f"KSD of {kernel_words(base, combine)}, parametric bootstrap of {count:,}"
    return _joined(combine, base, torch.cat(columns, 1), sizes, n, how, scored, points)


def _scored_by(distribution: Any, x: Tensor) -> Points:
    log_prob = getattr(distribution, "log_prob", None)
    if log_prob is None:
        raise InputTypeError(f"fit must give a distribution with log_prob, got {type(distribution).__name__}.")
    return scored_points(Points(x), None, lambda rows: _per_row(log_prob(rows), len(rows)))


def _per_row(values: Tensor, n: int) -> Tensor:
    """Log densities of columns of their own add up."""
    return values.reshape(n, -1).sum(1)


def _scored_again(fit: Callable[..., Any], x: Tensor, shape: torch.Size) -> Points:
    if x.shape != shape:
        raise InputError(f"The fitted distribution drew rows of shape {tuple(x.shape)}, expected {tuple(shape)}.")
    return _scored_by(fit(x), x)


def _drawn(distribution: Any, n: int, rng: np.random.Generator) -> Tensor:
    """n rows of a distribution; torch draws from the global generator, whose state is put back."""
    if hasattr(distribution, "rvs"):
        return _matrix(torch.as_tensor(np.asarray(distribution.rvs(n, random_state=rng)), dtype=torch.float64))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**62)))
        return _matrix(distribution.sample((n,)).double())


def _matrix(values: Tensor) -> Tensor:
    return values.reshape(len(values), -1)


def _against_sampler(
    X: Any, sampler: Callable[..., Any], kernel: Any, combine: str, order: Any, count: int, seed: int, memory: Any
) -> TwoSampleResult:
    options = {"combine": combine, "order": order, "n_resamples": count, "random_state": seed, "memory_budget": memory}
    if is_mixed(X):
        return two_sample_test(X, _called(sampler, len(X), seed), kernel, **options)
    points = sample_points(X, "X")
    drawn = _called(sampler, len(points), seed)
    if np.ndim(drawn) == 1 and points.is_tensor and points.values.shape[1] == 1:
        drawn = np.asarray(drawn).reshape(-1, 1)
    rows = as_points(drawn, "The sample")
    if rows.values.shape[1] != points.values.shape[1]:
        raise InputError(f"X has {points.values.shape[1]} columns, but sampler draws {rows.values.shape[1]}.")
    return two_sample_test(points, Points(rows.values, points.names), kernel, **options)


def unlike(seed: int) -> np.random.Generator:
    """A stream of its own: rows that a user drew with ``default_rng(seed)`` are not drawn again.

    >>> bool(unlike(0).random() == np.random.default_rng(0).random())
    False
    """
    return np.random.default_rng([seed, 2])


def _called(sampler: Callable[..., Any], n: int, seed: int) -> Any:
    rng = unlike(seed)
    with contextlib.suppress(ValueError):  # builtins that do not tell what they take
        try:
            inspect.signature(sampler).bind(n, rng)
        except TypeError:
            raise InputTypeError(
                "sampler must take the number of rows and a numpy Generator: sampler(n, rng)."
            ) from None
    return sampler(n, rng)
