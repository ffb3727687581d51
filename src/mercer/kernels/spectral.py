"""Spectral measures: by Bochner's theorem a shift-invariant kernel is the mean of cosines over random frequencies."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import scipy.special
import scipy.stats
import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.kernels.dials import LARGEST_LOG, LARGEST_RATE, SOBOL_STEP, SPECTRAL_SMALLEST
from mercer.kernels.pair import LengthScale, as_scale

Frequencies = Callable[["Draws"], Tensor]


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
        return values.clamp(min=SPECTRAL_SMALLEST)

    def stable(self, index: float) -> Tensor:
        r"""Positive stable numbers, :math:`E e^{-sS} = e^{-s^a}` for an index 0 < a <= 1.

        References: Kanter, *Stable densities under change of scale and total variation inequalities*, 1975.
        """
        a = float(index)
        angle = (math.pi * self.uniform()).clamp(min=SPECTRAL_SMALLEST)
        waiting = (-torch.log1p(-self.uniform())).clamp(min=SPECTRAL_SMALLEST)
        if a == 1.0:
            return torch.ones_like(angle)
        log = torch.sin(a * angle).log() - torch.sin(angle).log() / a
        log += (torch.sin((1.0 - a) * angle) / waiting).log() * ((1.0 - a) / a)
        return log.clamp(max=LARGEST_LOG).exp()

    def winding(self, concentration: float | Tensor, n_columns: int) -> Tensor:
        r"""Integers J, differences of two Poisson numbers, with :math:`E \cos(J t) = e^{\kappa (\cos t - 1)}`."""
        rate = torch.as_tensor(concentration, dtype=torch.float64).clamp(max=LARGEST_RATE) / 2.0
        rates = rate.expand(self.count, n_columns).contiguous()
        return self.poisson(rates) - self.poisson(rates)

    def poisson(self, rates: Tensor) -> Tensor:
        """Poisson numbers, one for each rate."""
        return torch.poisson(rates, self.generator)

    def part(self, count: int, frequencies: Frequencies) -> Tensor:
        """Some frequencies from numbers of their own."""
        return frequencies(replace(self, count=count))


class OrthogonalDraws(Draws):
    """Draws whose normal rows point in orthogonal directions, as many at a time as there are columns.

    Each row alone has the normal law; together they cover the directions more evenly than independent ones.

    References: Yu, Suresh, Choromanski, Holtmann-Rice and Kumar, *Orthogonal random features*, 2016.

    >>> rows = OrthogonalDraws(3, torch.Generator().manual_seed(0)).normal(3)
    >>> bool((rows @ rows.T - torch.diag(rows.square().sum(1))).abs().max() < 1e-12)
    True
    """

    def normal(self, n_columns: int) -> Tensor:
        """Orthogonal directions with the lengths of independent normal rows."""
        blocks = -(-self.count // n_columns)
        square = torch.randn(blocks, n_columns, n_columns, dtype=torch.float64, generator=self.generator)
        directions = torch.linalg.qr(square)[0].mT.reshape(-1, n_columns)[: self.count]
        signs = torch.randint(0, 2, (self.count, 1), generator=self.generator) * 2 - 1
        result: Tensor = directions * signs * super().normal(n_columns).norm(dim=1, keepdim=True)
        return result

    def cauchy(self, n_columns: int) -> Tensor:
        raise _needs_directions("the L1 distance")

    def poisson(self, rates: Tensor) -> Tensor:
        raise _needs_directions("a period")


def _needs_directions(what: str) -> InputError:
    return InputError(
        f'method="orthogonal" is for kernels of the Euclidean distance, not for a kernel of {what}; '
        'use method="qmc" or "pairs".'
    )


@dataclass(frozen=True)
class QuasiDraws(Draws):
    """Draws from a scrambled Sobol sequence, which fills the unit cube more evenly than independent numbers.

    Every number is made from a uniform one by inverting its distribution function; each row alone has the right law.
    Made by `part`, which finds out how many columns of the sequence are needed.

    References: Avron, Sindhwani, Yang and Mahoney, *Quasi-Monte Carlo feature maps for shift-invariant kernels*, 2016;
    Owen, *Scrambling Sobol' and Niederreiter-Xing points*, 1998.

    >>> draws = QuasiDraws(4, torch.Generator().manual_seed(0))
    >>> draws.part(4, lambda draws: draws.uniform()).mul(4).floor().sort(dim=0).values.squeeze(1)
    tensor([0., 1., 2., 3.], dtype=torch.float64)
    """

    unused: list[Tensor] = field(default_factory=list)

    def part(self, count: int, frequencies: Frequencies) -> Tensor:
        counter = CountingDraws(1, torch.Generator().manual_seed(0))
        frequencies(counter)
        n_columns = len(counter.asked)
        if n_columns > torch.quasirandom.SobolEngine.MAXDIM:
            most = torch.quasirandom.SobolEngine.MAXDIM
            raise InputError(f'method="qmc" takes at most {most} columns, but {n_columns} are needed; use "pairs".')
        numbers: list[Tensor] = []
        if n_columns and count:
            seed = int(torch.randint(2**31, (), generator=self.generator))
            points = torch.quasirandom.SobolEngine(n_columns, scramble=True, seed=seed).draw(count, dtype=torch.float64)
            numbers = list((points + SOBOL_STEP / 2.0).T)
        return frequencies(replace(self, count=count, unused=numbers))

    def uniform(self, n_columns: int = 1) -> Tensor:
        if not self.count:
            return torch.zeros(0, n_columns, dtype=torch.float64)
        taken = [self.unused.pop(0) for _ in range(n_columns)]
        return torch.stack(taken, dim=1)

    def normal(self, n_columns: int) -> Tensor:
        result: Tensor = torch.special.ndtri(self.uniform(n_columns))
        return result

    def poisson(self, rates: Tensor) -> Tensor:
        return torch.from_numpy(scipy.stats.poisson.ppf(self.uniform(rates.shape[1]).numpy(), rates.numpy()))


@dataclass(frozen=True)
class CountingDraws(QuasiDraws):
    """Draws that only note how many columns of uniform numbers are asked for."""

    asked: list[int] = field(default_factory=list)

    def part(self, count: int, frequencies: Frequencies) -> Tensor:
        return frequencies(Draws(count, self.generator))  # has a sequence of its own

    def uniform(self, n_columns: int = 1) -> Tensor:
        self.asked.extend(range(n_columns))
        return torch.full((self.count, n_columns), 0.5, dtype=torch.float64)


DRAWS: dict[str, type[Draws]] = {"random": Draws, "orthogonal": OrthogonalDraws, "qmc": QuasiDraws}
"""The ways to draw frequencies."""


class NoSpectralMeasureError(InputError):
    """A kernel without a known Fourier transform: `reason` says so, and the message adds a way out for solvers."""

    @property
    def reason(self) -> str:
        return str(self.args[0])

    def __str__(self) -> str:
        return f'{self.reason} Use solver="nystrom", which takes every kernel; white noise belongs in alpha.'


@dataclass(frozen=True)
class SpectralMeasure:
    r"""The Fourier transform of a shift-invariant kernel: a mass at zero and a law of frequencies,

    .. math:: k(x, z) = c + a\, E \cos(\omega \cdot (x - z)).

    Measures add and multiply as their kernels do: a sum mixes frequencies, a product adds independent ones. The rows
    of a draw have the same law each but need not be independent: a sum shares the draw out among its terms in
    proportion to their amplitudes, which is better than leaving that to chance and keeps every mean.

    Attributes
    ----------
    n_columns : int
        Length of a frequency.
    frequencies : Frequencies
        Function from `Draws` to frequencies, one in each row.
    amplitude, constant : float
        A and c.

    References
    ----------
    Rahimi and Recht, *Random features for large-scale kernel machines*, 2007.

    Examples
    --------
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

    def draw(self, count: int, generator: torch.Generator, how: str = "random") -> Tensor:
        """Frequencies of shape (count, n_columns) on the CPU, in float64: "random", "orthogonal" or "qmc"."""
        return DRAWS[how](count, generator).part(count, self.frequencies)

    def __rmul__(self, factor: float) -> SpectralMeasure:
        return replace(self, amplitude=factor * self.amplitude, constant=factor * self.constant)

    def __add__(self, other: SpectralMeasure) -> SpectralMeasure:
        def frequencies(draws: Draws) -> Tensor:
            if draws.count == 0:
                return torch.zeros(0, self.n_columns, dtype=torch.float64)
            share = self.amplitude / amplitude if amplitude > 0.0 else 0.0
            chance = float(torch.rand(1, dtype=torch.float64, generator=draws.generator))
            first = min(draws.count, math.floor(draws.count * share + chance))
            parts = [draws.part(first, self.frequencies), draws.part(draws.count - first, other.frequencies)]
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
