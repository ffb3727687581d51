"""Spectral measures: by Bochner's theorem a shift-invariant kernel is the mean of cosines over random frequencies."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import scipy.special
import torch
from torch import Tensor

from mercer.kernels.pair import LengthScale, as_scale

SMALLEST = 1e-300
LARGEST_LOG = 690.0
LARGEST_RATE = 1e15
"""Bounds that keep every frequency finite; beyond them a cosine is noise at any distance a float can hold."""


@dataclass(frozen=True)
class Draws:
    """The random numbers of `count` frequencies, one row each.

    They are made on the CPU in float64, so that every device sees the same ones, by inverting distribution functions
    where that is possible.
    """

    count: int
    generator: torch.Generator

    def uniform(self, n_columns: int = 1) -> Tensor:
        """Uniform numbers in [0, 1)."""
        return torch.rand(self.count, n_columns, dtype=torch.float64, generator=self.generator)

    def normal(self, n_columns: int) -> Tensor:
        """Standard normal numbers."""
        return torch.randn(self.count, n_columns, dtype=torch.float64, generator=self.generator)

    def cauchy(self, n_columns: int) -> Tensor:
        """Standard Cauchy numbers."""
        return torch.tan(math.pi * (self.uniform(n_columns) - 0.5))

    def gamma(self, shape: float) -> Tensor:
        r"""Gamma numbers of scale one, :math:`E e^{-sG} = (1 + s)^{-\text{shape}}`."""
        values = torch.from_numpy(scipy.special.gammaincinv(float(shape), self.uniform().numpy()))
        return values.clamp(min=SMALLEST)

    def stable(self, index: float) -> Tensor:
        r"""Positive stable numbers, :math:`E e^{-sS} = e^{-s^a}` for an index 0 < a <= 1.

        References: Kanter, *Stable densities under change of scale and total variation inequalities*, 1975.
        """
        a = float(index)
        angle = (math.pi * self.uniform()).clamp(min=SMALLEST)
        waiting = (-torch.log1p(-self.uniform())).clamp(min=SMALLEST)
        if a == 1.0:
            return torch.ones_like(angle)
        log = torch.sin(a * angle).log() - torch.sin(angle).log() / a
        log += (torch.sin((1.0 - a) * angle) / waiting).log() * ((1.0 - a) / a)
        return log.clamp(max=LARGEST_LOG).exp()

    def winding(self, concentration: float | Tensor, n_columns: int) -> Tensor:
        r"""Integers J, differences of two Poisson numbers, with :math:`E \cos(J t) = e^{\kappa (\cos t - 1)}`."""
        rate = torch.as_tensor(concentration, dtype=torch.float64).clamp(max=LARGEST_RATE) / 2.0
        rates = rate.expand(self.count, n_columns).contiguous()
        return torch.poisson(rates, self.generator) - torch.poisson(rates, self.generator)


Frequencies = Callable[[Draws], Tensor]


@dataclass(frozen=True)
class SpectralMeasure:
    r"""The Fourier transform of a shift-invariant kernel: a mass at zero and a law of frequencies,

    .. math:: k(x, z) = c + a\, E \cos(\omega \cdot (x - z)).

    Measures add and multiply as their kernels do: a sum mixes frequencies, a product adds independent ones. The rows
    of a draw have the same law each but need not be independent: a sum shares the draw out among its terms in
    proportion to their amplitudes, which is better than leaving that to chance and keeps every mean.

    Attributes
    ----------
    n_columns : length of a frequency.
    frequencies : function from `Draws` to frequencies, one in each row.
    amplitude, constant : a and c.

    References: Rahimi and Recht, *Random features for large-scale kernel machines*, 2007.

    >>> from mercer.kernels import Gaussian
    >>> measure = (3.0 * Gaussian(2.0) + 1.0).spectral_measure(n_columns=2)
    >>> measure.amplitude, measure.constant
    (3.0, 1.0)
    >>> frequencies = measure.draw(20_000, torch.Generator().manual_seed(0))
    >>> frequencies.shape, round(float(frequencies.std()), 1)
    (torch.Size([20000, 2]), 0.5)
    """

    n_columns: int
    frequencies: Frequencies
    amplitude: float = 1.0
    constant: float = 0.0

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """Random frequencies of shape (count, n_columns) on the CPU, in float64."""
        return self.frequencies(Draws(count, generator))

    def __rmul__(self, factor: float) -> SpectralMeasure:
        return replace(self, amplitude=factor * self.amplitude, constant=factor * self.constant)

    def __add__(self, other: SpectralMeasure) -> SpectralMeasure:
        def frequencies(draws: Draws) -> Tensor:
            if draws.count == 0:
                return torch.zeros(0, self.n_columns, dtype=torch.float64)
            share = self.amplitude / amplitude if amplitude > 0.0 else 0.0
            first = min(draws.count, math.floor(draws.count * share + float(replace(draws, count=1).uniform())))
            parts = [self.draw(first, draws.generator), other.draw(draws.count - first, draws.generator)]
            return torch.cat(parts)[torch.randperm(draws.count, generator=draws.generator)]

        amplitude = self.amplitude + other.amplitude
        return SpectralMeasure(self.n_columns, frequencies, amplitude, self.constant + other.constant)

    def __mul__(self, other: SpectralMeasure) -> SpectralMeasure:
        def frequencies(draws: Draws) -> Tensor:
            return self.frequencies(draws) + other.frequencies(draws)

        product = SpectralMeasure(self.n_columns, frequencies, self.amplitude * other.amplitude)
        for factor, measure in ((other.constant, self), (self.constant, other)):
            if factor > 0.0:
                product += factor * replace(measure, constant=0.0)
        return replace(product, constant=self.constant * other.constant)

    def __pow__(self, exponent: int) -> SpectralMeasure:
        return self if exponent == 1 else self ** (exponent // 2) * self ** (exponent - exponent // 2)

    def embedded(self, positions: Sequence[int], n_columns: int) -> SpectralMeasure:
        """The measure of the same kernel of some columns out of `n_columns`: frequencies are zero elsewhere."""

        def frequencies(draws: Draws) -> Tensor:
            wide = torch.zeros(draws.count, n_columns, dtype=torch.float64)
            return wide.index_add_(1, torch.tensor(positions), self.frequencies(draws))

        return replace(self, n_columns=n_columns, frequencies=frequencies)


def constant(n_columns: int, value: float) -> SpectralMeasure:
    """The measure of a constant kernel, all of it at frequency zero."""

    def frequencies(draws: Draws) -> Tensor:
        return torch.zeros(draws.count, n_columns, dtype=torch.float64)

    return SpectralMeasure(n_columns, frequencies, amplitude=0.0, constant=float(value))


def scaled(
    n_columns: int, length_scale: LengthScale, frequencies: Frequencies, name: str = "length_scale"
) -> SpectralMeasure:
    """The measure of a kernel of (x - z) / length_scale, from the frequencies for a length scale of one."""
    scale = as_scale(length_scale, torch.empty(0, n_columns, dtype=torch.float64), name)
    return SpectralMeasure(n_columns, lambda draws: frequencies(draws) / scale)


def gaussian_mixture(
    n_columns: int, length_scale: LengthScale, variance: Callable[[Draws], Any] = lambda draws: 1.0
) -> SpectralMeasure:
    r"""The measure of a mixture of Gaussians over a random variance V,

    .. math:: k(x, z) = E \exp(-V \|x - z\|^2 / (2 \ell^2)), \qquad \omega = \sqrt{V} N / \ell, \quad N \sim N(0, I).

    Every radial function that is a kernel in all dimensions is one.

    References: Schoenberg, *Metric spaces and completely monotone functions*, 1938.
    """
    return scaled(n_columns, length_scale, lambda draws: draws.normal(n_columns) * variance(draws) ** 0.5)
