"""One answer from many kernels: statistics of the data and of resamples, kernel by kernel, become one p-value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from mercer.stats.arguments import check_name
from mercer.stats.dials import LEAST_SKEWNESS, ROUNDED
from mercer.stats.families import log_mean_exp

COMBINE = ("fused", "min_p", "agg")


@dataclass(frozen=True, eq=False)
class Combined:
    """One statistic of all kernels: that of the data, those of the resamples, the p-value, and what kernels count."""

    statistic: float
    null: Tensor
    pvalue: float
    weights: Tensor


def p_value(observed: Tensor | float, null: Tensor, rounding: float = 0.0) -> float:
    """(1 + #{null >= observed}) / (B + 1), where statistics that differ by less than `rounding` are equal.

    >>> p_value(2.0, torch.tensor([1.0, 2.0, 3.0]))
    0.75
    """
    return float((1 + int((null >= observed - rounding).sum())) / (len(null) + 1))


def per_kernel_p_values(statistics: Tensor, rounding: Tensor) -> list[float]:
    """The p-value of each kernel by itself; column 0 is the data, the others are resamples."""
    return [p_value(row[0], row[1:], float(r)) for row, r in zip(statistics, rounding, strict=True)]


def combined(
    how: str, statistics: Tensor, rounding: Tensor, standard: Callable[[Tensor], Tensor], exponent: float
) -> Combined:
    """Statistics (k, B + 1), column 0 of the data, as one.

    `standard` makes those of different kernels comparable, `exponent` is how much the largest counts: see `fused`.
    """
    check_combine(how)
    if len(statistics) == 1:
        null = statistics[0, 1:]
        return Combined(
            float(statistics[0, 0]), null, p_value(statistics[0, 0], null, float(rounding[0])), torch.ones(1)
        )
    if how == "fused":
        return fused(standard(_tied(statistics, rounding)), exponent)
    return min_p(statistics, rounding) if how == "min_p" else aggregated(statistics, rounding)


def check_combine(how: str) -> None:
    """An error for what is no way to combine kernels."""
    check_name("combine", how, tuple(COMBINE))


def fused(scores: Tensor, exponent: float) -> Combined:
    r"""The soft maximum of statistics that are comparable, :math:`\frac1\lambda \log \mathrm{mean}_k
    \exp(\lambda T_k)`.

    References: Biggs, Schrab and Gretton, *MMD-FUSE: learning and combining kernels for two-sample testing*, 2023.

    >>> found = fused(torch.tensor([[3.0, 1.0, 2.0], [3.0, 2.0, 1.0]]).double(), 1.0)
    >>> round(found.statistic, 6), round(found.pvalue, 6)
    (3.0, 0.333333)
    """
    values = log_mean_exp(exponent * scores) / exponent
    weights = torch.softmax(exponent * scores[:, 0], 0)
    return Combined(float(values[0]), values[1:], p_value(values[0], values[1:], ROUNDED), weights)


def in_units(statistics: Tensor, sizes: Tensor) -> Tensor:
    """Statistics of each kernel over their size; zero where that is zero."""
    return statistics / torch.where(sizes > 0, sizes, torch.inf).unsqueeze(1)


def normal_scores(statistics: Tensor) -> Tensor:
    r"""Statistics of each kernel as if they were standard normal under the hypothesis.

    They are sums of squares, nearly of gamma distributions, whose cube roots are nearly normal (Wilson and Hilferty,
    1931). With :math:`z` in deviations from the mean over all columns and the skewness :math:`s`, at most that of one
    square, the score is :math:`\tfrac6s \big(\sqrt[3]{1 + s z / 2} - 1 + s^2 / 36\big)`. No column is special,
    so that permutations of them are as exact as before.

    >>> squares = torch.randn(4, 4000, generator=torch.Generator().manual_seed(0)).double().square()
    >>> normal_scores(squares[:1]).quantile(0.95).round(decimals=1)  # 1.6 of a normal distribution, 2.0 of z
    tensor(1.6000, dtype=torch.float64)
    """
    centred = statistics - statistics.mean(1, keepdim=True)
    z = in_units(centred, centred.square().mean(1).sqrt())
    s = z.pow(3).mean(1, keepdim=True).clamp(LEAST_SKEWNESS, math.sqrt(8.0))
    cubed = 1.0 + s * z / 2.0
    return 6.0 / s * (cubed.sign() * cubed.abs().pow(1.0 / 3.0) - 1.0 + s.square() / 36.0)


def _tied(statistics: Tensor, rounding: Tensor) -> Tensor:
    """Statistics that differ from that of the data by less than rounding are equal to it."""
    data = statistics[:, :1]
    return torch.where((statistics - data).abs() <= rounding.unsqueeze(1), data, statistics)


def min_p(statistics: Tensor, rounding: Tensor | None = None) -> Combined:
    """The smallest p-value of a kernel, compared with the smallest ones of the resamples; all from one layer.

    >>> found = min_p(torch.tensor([[3.0, 1.0, 2.0, 0.0], [0.0, 2.0, 1.0, 3.0]]).double())
    >>> found.statistic, found.pvalue
    (-0.25, 0.5)
    """
    return _rarest(statistics, statistics, rounding)


def aggregated(statistics: Tensor, rounding: Tensor | None = None) -> Combined:
    """The test of MMDAgg, HSICAgg and KSDAgg with equal weights, with half of the resamples for each of two layers.

    One layer says how rare a statistic is for its kernel, the other how often the rarest of the kernels is as rare.
    The p-value is the smallest level that rejects.

    References: Schrab et al., *MMD aggregated two-sample test*, 2023.
    """
    half = 1 + (statistics.shape[1] - 1) // 2
    judged = torch.cat([statistics[:, :1], statistics[:, half:]], 1)
    return _rarest(statistics[:, :half], judged, rounding)


def _rarest(reference: Tensor, judged: Tensor, rounding: Tensor | None) -> Combined:
    """The largest over kernels of minus the share of the reference that is at least as large."""
    ties = torch.zeros(len(reference)) if rounding is None else rounding
    shares = torch.stack(
        [_shares_at_least(a, b, float(tie)) for a, b, tie in zip(reference, judged, ties, strict=True)]
    )
    least = -shares.amin(0)
    observed, null = least[0], least[1:]
    weights = (shares[:, 0] == shares[:, 0].min()).double()
    return Combined(float(observed), null, p_value(observed, null), weights / weights.sum())


def _shares_at_least(reference: Tensor, values: Tensor, tie: float) -> Tensor:
    """For each value, the share of the reference that is at least as large."""
    ascending = reference.sort().values
    below = torch.searchsorted(ascending, (values - tie).contiguous())
    return (len(reference) - below).double() / len(reference)
