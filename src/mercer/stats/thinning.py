"""Few points that stand for many: Stein thinning, kernel thinning and kernel herding."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError, InputTypeError
from mercer.core.seeding import as_seed
from mercer.kernels import Kernel, as_kernel, resolve
from mercer.kernels.pair import DiagonalPair
from mercer.operators import gram
from mercer.plots.canvas import BLUE, MUTED, axes_for, legend, name_axes
from mercer.stats.arguments import check, check_given
from mercer.stats.compression import compressed, swapped
from mercer.stats.dials import MANY_ROWS, MOST, REFINED_ROWS
from mercer.stats.ksd import base_kernel
from mercer.stats.pair_sums import pair_sums
from mercer.stats.samples import column_labels, sample_points
from mercer.stats.scores import scored_points
from mercer.stats.sharing import SharedPair
from mercer.stats.stein_greedy import stein_greedy
from mercer.stats.stein_kernel import SteinKernel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Thinned:
    """Places of the chosen rows, in order, and the discrepancy after each of them."""

    indices: np.ndarray
    path: np.ndarray


class Thinning(BaseEstimator):
    """What the three have in common: fitted attributes and a picture."""

    target: float | None
    indices_: np.ndarray
    weights_: np.ndarray
    discrepancy_: float
    discrepancies_: np.ndarray
    kernel_: Kernel
    _points: Points

    def transform(self, X: Any) -> Any:
        """The chosen rows of what was fitted."""
        self._check_fitted()
        if isinstance(X, list | tuple):
            return [X[place] for place in self.indices_]
        return X.iloc[self.indices_] if hasattr(X, "iloc") else X[self.indices_]

    def plot(self, ax: Axes | None = None, columns: tuple[int, int] = (0, 1)) -> Axes:
        """The rows before and, on top, those that were chosen; of one column, both distribution functions."""
        self._check_fitted()
        values = self._points.values.double().cpu().numpy()
        names = column_labels(self._points.names, values.shape[1])
        ax = axes_for(ax)
        if values.shape[1] == 1:
            for rows, colour, label in ((values, MUTED, "all"), (values[self.indices_], BLUE, "chosen")):
                at = np.sort(rows[:, 0])
                ax.step(at, np.arange(1, len(at) + 1) / len(at), color=colour, label=label, where="post")
            name_axes(ax, names[0] if self._points.names else "x", "Share of the rows")
        else:
            i, j = columns
            some = values[:: max(1, len(values) // 5000)]
            ax.plot(some[:, i], some[:, j], ".", color=MUTED, alpha=0.25, markersize=3, label="all")
            ax.plot(values[self.indices_, i], values[self.indices_, j], "o", color=BLUE, markersize=5, label="chosen")
            name_axes(ax, names[i], names[j])
        legend(ax)
        return ax

    def _keep(self, points: Points, kernel: Kernel, found: Thinned) -> Self:
        self._points, self.kernel_, self.indices_ = points, kernel, found.indices
        self.weights_ = np.full(len(found.indices), 1.0 / len(found.indices))
        self.discrepancies_, self.discrepancy_ = found.path, float(found.path[-1])
        if self.target is not None and self.discrepancy_ > self.target:
            warnings.warn(
                f"{len(found.indices):,} rows have a discrepancy of {self.discrepancy_:.3g}, "
                f"not target={self.target:g}.",
                stacklevel=3,
            )
        return self

    def _check_fitted(self) -> None:
        if not hasattr(self, "indices_"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet: call fit first.")


class SteinThinning(Thinning):
    r"""The points of a sample that represent a distribution p best, one after the other, by kernel Stein discrepancy,

    .. math:: \pi(j) = \arg\min_i \tfrac12 k_p(x_i, x_i) + \sum_{l < j} k_p(x_{\pi(l)}, x_i).

    Only the score of p is needed, so that a chain's bias and burn-in are corrected, too. A row may be chosen more than
    once. The cost is n m d, and nothing of size n^2 or n m is stored.

    Parameters
    ----------
    m : int or None
        The number of points; None with `target`.
    kernel : Kernel, str or callable
        The base kernel; by default an inverse multiquadric with the median width and the power 1/2.
    target : float or None
        Stop at this discrepancy; with `m`, after m points at the latest.
    regularisation : float or str or None
        Weight of -log p in the choice, against points between modes and in saddles, where scores vanish: a number, or
        "auto" for 1 / m as in the paper. It needs `log_prob`.
    standardize : bool
        Divide each column by its deviation first.

    Attributes
    ----------
    indices_, weights_ : array
        Places of the chosen rows and their equal weights.
    discrepancy_, discrepancies_ : float, array
        The KSD of the chosen rows, at the end and after each.

    References
    ----------
    Riabiz et al., *Optimal thinning of MCMC output*, 2022; Bénard, Staber and Da Veiga, *Kernel Stein
    discrepancy thinning: a theoretical perspective of pathologies and a practical fix with regularization*, 2023.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> thinned = SteinThinning(20).fit(X, score=lambda x: -x)
    >>> len(thinned.indices_), thinned.discrepancy_ < 0.3
    (20, True)
    """

    def __init__(
        self,
        m: int | None = None,
        kernel: Any = None,
        *,
        target: float | None = None,
        regularisation: float | str | None = None,
        standardize: bool = False,
    ) -> None:
        self.m = m
        self.kernel = kernel
        self.target = target
        self.regularisation = regularisation
        self.standardize = standardize

    def fit(self, X: Any, score: Any = None, *, log_prob: Any = None) -> Self:
        """Choose rows of X for the distribution with that score (a function or an array) or log density."""
        check(standardize=self.standardize)
        points = sample_points(X, "X")
        check(standardize=self.standardize)
        m, target = _size(self.m, self.target, len(points))
        log_p = None
        if self.regularisation is not None:
            log_p = _log_densities(log_prob, points)
        scored = scored_points(points, score, None if score is not None else log_prob)
        base, d = points, points.values.shape[1]
        if self.standardize:
            spread = points.values.double().std(0)
            spread = torch.where(spread > 0, spread, torch.ones_like(spread))
            scored = Points(torch.cat([scored.values[:, :d] / spread, scored.values[:, d:] * spread], 1))
            base = Points(scored.values[:, :d], points.names)
        kernel = SteinKernel(base_kernel(self.kernel, base))
        added = None if log_p is None else -_weight(self.regularisation, m) * log_p
        found = Thinned(*stein_greedy(kernel, scored, m, target, added))
        return self._keep(points, kernel.base, found)


class KernelHerding(Thinning):
    r"""The points of a sample whose mean embedding comes closest to that of all of it, one after the other,

    .. math:: \pi(j) = \arg\max_i \hat\mu(x_i) - \frac{1}{j} \Big(\sum_{l < j} k(x_{\pi(l)}, x_i)
        + \tfrac12 k(x_i, x_i)\Big).

    Parameters
    ----------
    m : int or None
        The number of points; None with `target`.
    kernel : Kernel, str or callable
        A kernel or a name, whose width is the median distance.
    target : float or None
        Stop at this maximum mean discrepancy from the sample.
    memory_budget : int, str or None
        Bytes, or text such as "2GiB"; by default half of what is free.

    Attributes
    ----------
    indices_, weights_, discrepancy_, discrepancies_ : array, float
        As of `SteinThinning`; the discrepancy is the MMD to all rows.

    References
    ----------
    Chen, Welling and Smola, *Super-samples from kernel herding*, 2010.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> KernelHerding(target=0.05).fit(X).discrepancy_ <= 0.05
    True
    """

    def __init__(self, m: int | None = None, kernel: Any = "gaussian", *, target: float | None = None,
                 memory_budget: Any = None) -> None:  # fmt: skip
        self.m = m
        self.kernel = kernel
        self.target = target
        self.memory_budget = memory_budget

    def fit(self, X: Any) -> Self:
        """Choose rows of X."""
        points = sample_points(X, "X", as_kernel(self.kernel).domain)
        m, target = _size(self.m, self.target, len(points))
        kernel = _found(self.kernel, points)
        n = len(points)
        ones = torch.full((n, 1), 1.0 / n, dtype=torch.float64)
        mean = gram(kernel, points, memory_budget=self.memory_budget, dtype="float64").matmul(ones)[:, 0]
        return self._keep(points, kernel, _herded(kernel, points, mean, m, target))


class KernelThinning(Thinning):
    r"""A subset of m rows whose maximum mean discrepancy from all falls almost like 1 / m, by kernel thinning.

    Rows are split into halves again and again, each time so that the halves have nearly equal embeddings (a
    self-balancing walk over pairs), and the best candidate is then improved by exchanging rows one by one. With
    `compress`, sets of four times the root of their size are halved on the way (Compress++), in near-linear time.

    Parameters
    ----------
    m : int or None
        The number of points, any up to half of the rows; by default their root.
    kernel : Kernel, str or callable
        A kernel or a name, whose width is the median distance.
    compress : bool or None
        Whether to use Compress++; by default from 4,096 rows on.
    target : float or None
        Instead of m, the MMD to reach: sizes are doubled until it is.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None
        The seed; None is 0.
    memory_budget : int, str or None
        Bytes, or text such as "2GiB"; by default half of what is free.

    Attributes
    ----------
    indices_, weights_, discrepancy_, discrepancies_ : array, float
        As of `SteinThinning`; the discrepancy is the MMD to all rows, of more than 20,000 rows that to the 1,024 of
        them (or 4 m) that Compress++ chooses, among which m are found.

    References
    ----------
    Dwivedi and Mackey, *Kernel thinning*, 2024, *Generalized kernel thinning*, 2022; Shetty, Dwivedi and
    Mackey, *Distribution compression in near-linear time*, 2022.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(1024, 2))
    >>> thinned = KernelThinning(32).fit(X)
    >>> len(thinned.indices_), thinned.discrepancy_ < 0.05
    (32, True)
    """

    def __init__(self, m: int | None = None, kernel: Any = "gaussian", *, compress: bool | None = None,
                 target: float | None = None, random_state: Any = None, memory_budget: Any = None) -> None:  # fmt: skip
        self.m = m
        self.kernel = kernel
        self.compress = compress
        self.target = target
        self.random_state = random_state
        self.memory_budget = memory_budget

    def fit(self, X: Any) -> Self:
        """Choose rows of X."""
        points = sample_points(X, "X", as_kernel(self.kernel).domain)
        kernel, n = _found(self.kernel, points), len(points)
        if kernel.domain == "matrix":
            raise InputTypeError("KernelThinning needs rows, not a ready Gram matrix.")
        check_given(compress=self.compress, random_state=self.random_state)
        compress = n >= 4096 if self.compress is None else self.compress
        seed = as_seed(self.random_state)
        if self.target is not None:
            _check_target(self.target)
        sizes = [self._size(n)] if self.target is None else _doubling(self.m or n)
        everything = points
        some = torch.arange(n)
        refined = max(REFINED_ROWS, 4 * (sizes[-1] if self.target is None else 0))
        if n > MANY_ROWS and refined < n:  # sums over all pairs of rows would take too long
            some = compressed(kernel, points, refined, seed, True)
            points = points.take(some)
        mean = self._mean(kernel, points)
        path: list[float] = []
        chosen = torch.zeros(1, dtype=torch.long)
        for m in sizes:
            chosen = compressed(kernel, points, m, seed, compress)
            chosen, reached = swapped(kernel, points, chosen, mean[0], mean[1])
            path.append(reached)
            if self.target is not None and reached <= self.target:
                break
        return self._keep(everything, kernel, Thinned(some[chosen].numpy(), np.array(path)))

    def _size(self, n: int) -> int:
        m = max(1, math.isqrt(n)) if self.m is None else self.m
        _check_m(m)
        if m > n:
            raise InputError(f"m={m}: there are only {n} rows.")
        return m

    def _mean(self, kernel: Kernel, points: Points) -> tuple[Tensor, float]:
        """The embedding of all rows at the rows, and its squared norm."""
        sums = pair_sums([kernel], points, memory_budget=self.memory_budget, dtype=torch.float64)
        mean = (sums.rows[0] + sums.diagonal[0]) / len(points)
        return mean, float(mean.mean())


def _herded(kernel: Kernel, points: Points, mean: Tensor, m: int, target: float) -> Thinned:
    n = len(points)
    total, inside, seen, self_term = torch.zeros(n, dtype=torch.float64), 0.0, 0.0, float(mean.mean())
    chosen: list[int] = []
    path: list[float] = []
    diagonal = _diagonal(kernel, points)
    for j in range(m):
        i = int((mean - total / (j + 1) - 0.5 * diagonal / (j + 1)).argmax())
        inside += 2.0 * float(total[i]) + float(diagonal[i])
        seen += float(mean[i])
        chosen.append(i)
        total += _row(kernel, points, i)
        squared = inside / (j + 1) ** 2 - 2.0 * seen / (j + 1) + self_term
        path.append(math.sqrt(max(squared, 0.0)))
        if path[-1] <= target:
            break
    return Thinned(np.array(chosen), np.array(path))


def _row(kernel: Kernel, points: Points, i: int) -> Tensor:
    return SharedPair(points.take(slice(i, i + 1)), points, dtype=torch.float64).value(kernel)[0]


def _diagonal(kernel: Kernel, points: Points) -> Tensor:
    return kernel.on(DiagonalPair(points.double())).double()


def _found(kernel: Any, points: Points) -> Kernel:
    chosen = as_kernel(kernel)
    return resolve(chosen.bind(points.names), points) if points.is_tensor and chosen.domain == "vectors" else chosen


def _size(m: int | None, target: float | None, n: int) -> tuple[int, float]:
    if m is None and target is None:
        raise InputError("Give m, the number of points, or target, the discrepancy to reach.")
    if m is not None:
        _check_m(m)
    if target is not None:
        _check_target(target)
    return (min(n, MOST) if m is None else int(m)), (-1.0 if target is None else float(target))


def _check_m(m: Any) -> None:
    check(m=m)


def _check_target(target: Any) -> None:
    check(target=target)


def _doubling(n: int) -> list[int]:
    return [2**k for k in range(2, max(3, n.bit_length()))]


def _weight(regularisation: float | str | None, m: int) -> float:
    """What minus log p counts in a sum over m^2 pairs."""
    if isinstance(regularisation, str) and regularisation == "auto":
        return 1.0
    if isinstance(regularisation, int | float) and not isinstance(regularisation, bool) and regularisation >= 0:
        return m * float(regularisation)
    raise InputError(f'regularisation={regularisation!r}: must be "auto", a number >= 0, or None.')


def _log_densities(log_prob: Any, points: Points) -> Tensor:
    if log_prob is None:
        raise InputError("regularisation needs log_prob, the log density up to a constant.")
    with torch.no_grad():
        values = torch.as_tensor(log_prob(points.values.double())).double()
    if values.shape != (len(points),):
        raise InputError(f"log_prob must give {len(points)} numbers, got shape {tuple(values.shape)}.")
    return values
