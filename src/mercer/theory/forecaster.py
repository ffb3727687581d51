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
LARGEST_GAP = 0.2
MOST_DUPLICATES = 0.02
FARTHEST = 8
LARGEST_DISAGREEMENT = 0.1
"""|log| of the ratio of the two forecasts, fixed on one half of the sets of benchmarks/forecasts.py."""
GROWTH = 0.06
"""What each doubling adds to the standard error of the logarithm of a forecast."""
WIDTH = 1.0
"""Intervals are this many times as wide as those of a normal distribution: fixed on the same half."""


@dataclass(frozen=True, eq=False)
class Forecaster:
    """What forecasts for any number of rows are made of; see `learning_curve`."""

    path: RidgePath
    law: PowerLaw
    spectral: SpectralForecast | None
    doubt: str

    @property
    def n(self) -> int:
        """Rows seen."""
        return len(self.path.squares)

    @property
    def loo(self) -> float:
        """The leave-one-out error at the best alpha, a mean square."""
        return float(self.path.loo[self.path.best])

    @property
    def most(self) -> float:
        """The factor up to which the spectrum reaches: beyond, the best kappa is below that of alpha = 0."""
        return float(self.path.kappa[self.path.best] / self.path.smallest_kappa)

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
        if self.spectral is None:
            return self.loo * by_law, self._width(factor, 0.0), self.doubt
        by_spectrum = self.spectral.error(rows) / self.loo
        apart = float(np.log(by_spectrum / by_law))
        why = self.doubt
        if factor > 1 and factor >= self.most:
            why = why or "the ridge it would take is smaller than these rows can tell"
        if factor > FARTHEST:
            why = why or f"more than {FARTHEST} times the rows at hand"
        if abs(apart) > LARGEST_DISAGREEMENT:
            why = why or "the spectrum and the fits to fewer rows disagree"
        return self.loo * float(np.sqrt(by_spectrum * by_law)), self._width(factor, apart), why

    def interval(self, factor: float, level: float) -> tuple[float, float]:
        """Both ends of the interval of the mean squared error."""
        mse, error, _ = self.at(factor)
        spread = float(np.exp(norm.ppf((1 + level) / 2) * error))
        return mse / spread, mse * spread

    def _width(self, factor: float, apart: float) -> float:
        return WIDTH * float(np.hypot(np.hypot(self.path.noise_of_loo, apart), GROWTH * np.log2(factor)))


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
    found = []
    for path, law in zip(paths, laws, strict=True):
        by_spectrum = SpectralForecast.of(path) if spectral is True else None
        doubt = _doubt(path, duplicates, spectral, by_spectrum)
        found.append(Forecaster(path, law, by_spectrum, doubt))
    return found


def _doubt(path: RidgePath, duplicates: float, spectral: str | bool, found: SpectralForecast | None) -> str:
    """Why no forecast of these rows can be believed, or nothing."""
    if isinstance(spectral, str):
        return spectral
    if duplicates >= MOST_DUPLICATES:
        return f"{duplicates:.0%} of the rows repeat others"
    if found is None:
        return "the best ridge is at the end of the path"
    if not abs(path.gap) < LARGEST_GAP:
        return "generalised cross-validation and leave-one-out disagree: the rows are not like independent draws"
    return ""
