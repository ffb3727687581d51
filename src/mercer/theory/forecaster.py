"""Forecasts for any number of rows: a reading of the spectrum and one of fits to fewer rows, and whether they agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from mercer.core.errors import InputError
from mercer.plots.canvas import numbers
from mercer.theory.power_law import PowerLaw, power_laws
from mercer.theory.ridge_path import Eigen, RidgePath
from mercer.theory.spectral_forecast import SpectralForecast

FEWEST_ROWS = 64
"""Below, subsets have fewer than eight rows."""
FARTHEST = 8
"""Factors above are not believed."""
LARGEST_GAP, LARGEST_DISAGREEMENT, SMALLEST_RIDGE = 0.3, 0.1, 1.5
"""Of |log GCV / LOO|; of the |log| of the ratio of the two readings, for each doubling; of the best kappa beside that
of alpha = 0. Fixed on the first half of the sets of benchmarks/forecasts.py."""
MOST_DUPLICATES = 0.02
GROWTH = 0.06
"""What each doubling adds to the standard error of the logarithm of a forecast."""
WIDTH = 1.4
"""By how much these standard errors fall short: on the same half, nine in ten errors are within 1.645 times as many."""


@dataclass(frozen=True, eq=False)
class Forecaster:
    """What forecasts for any number of rows are made of; see `learning_curve`."""

    path: RidgePath
    law: PowerLaw
    spectral: SpectralForecast | None
    duplicates: float
    told: str

    @property
    def n(self) -> int:
        """Rows seen."""
        return len(self.path.squares)

    @property
    def loo(self) -> float:
        """The leave-one-out error at the best alpha, a mean square."""
        return float(self.path.loo[self.path.best])

    @property
    def noise(self) -> float:
        """The squared error that forecasts tend to with ever more rows."""
        by_law = self.law.floor / float(self.law.error(self.n))
        by_spectrum = by_law if self.spectral is None else self.spectral.noise / self.loo
        return self.loo * float(np.sqrt(by_law * by_spectrum))

    def at(self, factor: float) -> tuple[float, float, str]:
        """Mean squared error, standard error of its logarithm, and why not to believe it."""
        rows = factor * self.n
        by_law = float(self.law.error(rows) / self.law.error(self.n))
        by_spectrum = by_law if self.spectral is None else self.spectral.error(rows) / self.loo
        apart = float(np.log(by_spectrum / by_law))
        ridge = 0.0 if self.spectral is None else self.path.ridge
        why = self.told or doubt(factor, self.duplicates, self.path.gap, ridge, apart)
        error = log_error(factor, self.path.noise_of_loo, apart)
        return self.loo * float(np.sqrt(by_spectrum * by_law)), error, why

    def interval(self, factor: float, level: float) -> tuple[float, float]:
        """Both ends of the interval of the mean squared error."""
        mse, error, _ = self.at(factor)
        spread = float(np.exp(norm.ppf((1 + level) / 2) * error))
        return mse / spread, mse * spread


def forecasters(
    gram: Any,
    problems: Sequence[Any],
    weights: Any = None,
    *,
    intercept: bool = False,
    duplicates: float = 0.0,
    spectral: str | bool = True,
    random_state: Any = None,
) -> list[Forecaster]:
    """A forecaster for each problem, a target (n,) or several (n, t) whose errors are summed; see `learning_curve`."""
    eigen = Eigen.of(gram, weights, intercept=intercept)
    n = len(eigen.values)
    if n < FEWEST_ROWS:
        raise InputError(f"A forecast from {n} rows would be a guess: it needs at least {FEWEST_ROWS}.")
    targets = [numbers(problem, "targets").reshape(n, -1) for problem in problems]
    paths = [RidgePath.of(eigen, Y) for Y in targets]
    loos = [float(path.loo[path.best]) for path in paths]
    if not all(loo > 0 for loo in loos):
        raise InputError("The leave-one-out error is zero: there is nothing that more rows could improve.")
    laws = power_laws(gram, targets, loos, eigen.weights, intercept=intercept, random_state=random_state)
    told = "" if spectral is True else str(spectral)
    spectra = [None if told else SpectralForecast.of(path) for path in paths]
    return [Forecaster(*parts, duplicates, told) for parts in zip(paths, laws, spectra, strict=True)]


def log_error(factor: float, noise_of_loo: float, apart: float) -> float:
    """The standard error of the logarithm of a forecast, a mean square; the arguments are those of `doubt`."""
    return WIDTH * float(np.sqrt(noise_of_loo**2 + apart**2 + (GROWTH * np.log2(factor)) ** 2))


def doubt(factor: float, duplicates: float, gap: float, ridge: float, apart: float) -> str:
    """Why a forecast cannot be believed, or nothing.

    Parameters
    ----------
    factor : how many times as many rows.
    duplicates : the share of rows that repeat others.
    gap : log GCV / LOO.
    ridge : the best kappa beside that of alpha = 0; 0 where the best alpha is at the end of the path.
    apart : the log of the ratio of the two readings.

    >>> doubt(2, 0.0, 0.01, 50.0, 0.02), doubt(2, 0.5, 0.01, 50.0, 0.02)
    ('', '50% of the rows repeat others')
    """
    if duplicates >= MOST_DUPLICATES:
        return f"{duplicates:.0%} of the rows repeat others"
    if factor > FARTHEST:
        return f"more than {FARTHEST} times the rows at hand"
    if ridge < SMALLEST_RIDGE:
        return "the best ridge is at the end of what these rows can tell"
    if abs(gap) >= LARGEST_GAP:
        return "generalised cross-validation and leave-one-out disagree: the rows are not like independent draws"
    if abs(apart) > LARGEST_DISAGREEMENT * max(1.0, np.log2(factor)):
        return "the spectrum and the fits to fewer rows disagree"
    return ""
