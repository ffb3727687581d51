"""What a test found, in the manner of `scipy.stats`, and in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer.kernels import Kernel
from mercer.plots.canvas import BLUE, MUTED, ORANGE, axes_for, brief, legend, name_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class KernelFinding:
    """What one kernel of a test says by itself.

    Attributes
    ----------
    kernel : Kernel
        The kernel; of a test of two sides a pair.
    statistic : float
        Its statistic.
    pvalue : float
        Its p-value, not corrected for the other kernels.
    weight : float
        Its share of the joint statistic.
    """

    kernel: Any
    statistic: float
    pvalue: float
    weight: float


@dataclass(frozen=True, eq=False, repr=False)
class TestResult:
    """The result of a test.

    Attributes
    ----------
    statistic : float
        Of the data.
    pvalue : float
        The probability of a statistic at least as large if the hypothesis holds.
    null_distribution : array
        Statistics of the resamples; empty where the null distribution is a formula.
    method : str
        What was done, in words.
    per_kernel : tuple[KernelFinding, ...]
        What each kernel says by itself, the most telling first.
    approximation : distribution of scipy.stats or None
        The null distribution where it is a formula.
    complete : bool
        Whether there are no other resamples, so that the p-value has no random error.
    """

    __test__ = False

    statistic: float
    pvalue: float
    null_distribution: np.ndarray
    method: str
    per_kernel: tuple[KernelFinding, ...] = ()
    approximation: Any = field(kw_only=True, default=None)
    complete: bool = field(kw_only=True, default=False)

    def __iter__(self) -> Iterator[float]:
        return iter((self.statistic, self.pvalue))

    @property
    def kernel(self) -> Kernel:
        """The kernel that counts most."""
        result: Kernel = self.per_kernel[0].kernel
        return result

    @property
    def summary(self) -> str:
        """What was found, and how sure."""
        return (
            f"{self._finding()} ({how_sure(self.pvalue, len(self.null_distribution), self.complete)}; {self.method})."
        )

    def _finding(self) -> str:
        return "Rejected" if self.pvalue <= 0.05 else "Not rejected"

    def __repr__(self) -> str:
        return self.summary

    def plot(self, ax: Axes | None = None) -> Axes:
        """The statistic beside those of the resamples, or beside the density that stands for them."""
        if self.approximation is not None:
            return null_density(self.statistic, self.approximation, self.pvalue, ax=ax)
        return null_histogram(self.statistic, self.null_distribution, self.pvalue, ax=ax)


def how_sure(pvalue: float, resamples: int, complete: bool = False) -> str:
    """The p-value, with the room that a finite number of resamples leaves, none where they are all there are.

    >>> how_sure(1 / 2001, 2000), how_sure(0.04, 0), how_sure(0.05, 99)
    ('p = 0.0005, the smallest that 2,000 resamples can give', 'p = 0.04', 'p = 0.05 +- 0.04 with 99 resamples')
    """
    if not resamples:
        return f"p = {brief(pvalue)}"
    if round(pvalue * (resamples + 1)) == 1:
        return f"p = {brief(pvalue)}, the smallest that {resamples:,} resamples can give"
    error = 0.0 if complete else 1.96 * math.sqrt(pvalue * (1 - pvalue) / (resamples + 1))
    return f"p = {brief(pvalue)}" + (f" +- {error:.1g} with {resamples:,} resamples" if error > 0.1 * pvalue else "")


def listed(names: Sequence[str], most: int = 3) -> str:
    """The first names, and how many more there are.

    >>> listed("abc"), listed("abcd")
    ('a, b, c', 'a, b, c and 1 more column')
    """
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {counted(len(names) - most, 'more column')}"


def counted(n: int, word: str) -> str:
    """A number of things.

    >>> counted(1, "permutation"), counted(2000, "permutation")
    ('1 permutation', '2,000 permutations')
    """
    return f"{n:,} {word}{'' if n == 1 else 's'}"


def findings(kernels: Any, statistics: Any, pvalues: Any, weights: Any) -> tuple[KernelFinding, ...]:
    """One finding for each kernel, by weight and then by p-value."""
    found = [
        KernelFinding(k, float(t), float(p), float(w))
        for k, t, p, w in zip(kernels, statistics, pvalues, weights, strict=True)
    ]
    return tuple(sorted(found, key=lambda f: (-f.weight, f.pvalue)))


def null_histogram(statistic: float, null: np.ndarray, pvalue: float, *, ax: Axes | None = None) -> Axes:
    """A histogram of the statistics of resamples, and a line at that of the data."""
    ax = axes_for(ax)
    if len(null):
        ax.hist(null, bins=min(50, max(5, len(null) // 20)), color=MUTED, alpha=0.6, label="resamples")
    ax.axvline(statistic, color=ORANGE if pvalue <= 0.05 else BLUE, linewidth=2, label="data")
    name_axes(ax, "Statistic", "Resamples", f"p = {brief(pvalue)}")
    legend(ax)
    return ax


def null_density(statistic: float, null: Any, pvalue: float, *, ax: Axes | None = None) -> Axes:
    """The density of a null distribution, and a line at the statistic of the data."""
    ax = axes_for(ax)
    low, high = null.ppf([1e-3, 1 - 1e-3])
    at = np.linspace(min(low, statistic), max(high, statistic), 400)
    ax.fill_between(at, null.pdf(at), color=MUTED, alpha=0.6, label="null distribution")
    ax.axvline(statistic, color=ORANGE if pvalue <= 0.05 else BLUE, linewidth=2, label="data")
    name_axes(ax, "Statistic", "Density", f"p = {brief(pvalue)}")
    legend(ax)
    return ax
