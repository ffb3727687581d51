"""Forecasts for any number of rows: a reading of the spectrum and one of fits to fewer rows, and whether they agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    """What forecasts for any number of rows are made of; see `learning_curve`.

    Attributes
    ----------
    n : rows seen.
    now : the squared error of fits to them.
    noise_of_now : the standard error of its logarithm.
    law : through the errors of fits to fewer rows.
    spectral : the other reading, or None.
    gap : log GCV / LOO.
    ridge : the best kappa beside that of alpha = 0; 0 where the best alpha is at the end of the path.
    duplicates : the share of rows that repeated others.
    alone : why the spectrum says nothing; no words where it may.
    """

    n: int
    now: float
    noise_of_now: float
    law: PowerLaw
    spectral: SpectralForecast | None = None
    gap: float = 0.0
    ridge: float = 0.0
    duplicates: float = 0.0
    alone: str = ""

    @classmethod
    def of(cls, path: RidgePath, law: PowerLaw, duplicates: float = 0.0, alone: str = "") -> Forecaster:
        """Both readings of a ridge regression; of its law alone where a reason is given."""
        spectral = None if alone else SpectralForecast.of(path)
        now, ridge = float(path.loo[path.best]), 0.0 if spectral is None else path.ridge
        return cls(len(path.squares), now, path.noise_of_loo, law, spectral, path.gap, ridge, duplicates, alone)

    @classmethod
    def of_law(cls, law: PowerLaw, n: int, noise_of_now: float, alone: str, duplicates: float = 0.0) -> Forecaster:
        """The reading of fits to fewer rows."""
        now = float(law.errors[-1]) if law.rows[-1] == n else float(law.error(n))
        return cls(n, now, noise_of_now, law, duplicates=duplicates, alone=alone)

    def scaled(self, now: float) -> Forecaster:
        """The same change with more rows from another error now."""
        by = now / self.now
        spectral = None if self.spectral is None else self.spectral.times(by)
        return replace(self, now=now, law=self.law.times(by), spectral=spectral)

    @property
    def noise(self) -> float:
        """The squared error that forecasts tend to with ever more rows."""
        by_law = self.law.floor / float(self.law.error(self.n))
        by_spectrum = by_law if self.spectral is None else self.spectral.noise / self.now
        return self.now * float(np.sqrt(by_law * by_spectrum))

    def at(self, factor: float) -> tuple[float, float, str]:
        """Mean squared error, standard error of its logarithm, and why not to believe it."""
        rows = factor * self.n
        by_law = float(self.law.error(rows) / self.law.error(self.n))
        by_spectrum = by_law if self.spectral is None else self.spectral.error(rows) / self.now
        apart = float(np.log(by_spectrum / by_law))
        why = doubt(factor, self.duplicates, self.gap, self.ridge, apart)
        error = log_error(factor, self.noise_of_now, apart)
        return self.now * float(np.sqrt(by_spectrum * by_law)), error, why

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
    alone: str = "",
    random_state: Any = None,
) -> list[Forecaster]:
    """A forecaster for each problem, a target (n,) or several (n, t) whose errors are summed; see `learning_curve`."""
    n = len(numbers(gram, "gram"))
    check_rows(n)
    eigen = Eigen.of(gram, weights, intercept=intercept)
    targets = [numbers(problem, "targets").reshape(n, -1) for problem in problems]
    paths = [RidgePath.of(eigen, Y) for Y in targets]
    loos = [float(path.loo[path.best]) for path in paths]
    if not all(loo > 0 for loo in loos):
        raise InputError("The leave-one-out error is zero: there is nothing that more rows could improve.")
    laws = power_laws(gram, targets, loos, eigen.weights, intercept=intercept, random_state=random_state)
    return [Forecaster.of(path, law, duplicates, alone) for path, law in zip(paths, laws, strict=True)]


def check_rows(n: int) -> None:
    """Enough rows for subsets."""
    if n < FEWEST_ROWS:
        raise InputError(f"A forecast from {n} rows would be a guess: it needs at least {FEWEST_ROWS}.")


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
