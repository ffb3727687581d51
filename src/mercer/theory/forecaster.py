"""Forecasts for any number of rows: a reading of the spectrum and one of fits to fewer rows, and whether they agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import norm

from mercer.core.errors import InputError
from mercer.theory.arguments import check, columns_of, square
from mercer.theory.dials import (
    FARTHEST,
    FEWEST_BELIEVED,
    FEWEST_ROWS,
    LARGEST_ERROR,
    LARGEST_GAP,
    MOST_DUPLICATES,
    NOISE,
    PER_DOUBLING,
    SHARE_ALONE,
    SHARE_OF_CHANGE,
    SMALLEST_RIDGE,
    WIDTH,
)
from mercer.theory.power_law import PowerLaw, power_laws
from mercer.theory.ridge_path import Eigen, RidgePath
from mercer.theory.spectral_forecast import SpectralForecast


@dataclass(frozen=True, eq=False)
class Forecaster:
    """What forecasts for any number of rows are made of; see `learning_curve`.

    Attributes
    ----------
    n : int
        Rows seen.
    now : float
        The squared error of fits to them.
    noise_of_now : float
        The standard error of its logarithm.
    law : PowerLaw
        Through the errors of fits to fewer rows.
    spectral : SpectralForecast or None
        The other reading, or None.
    gap : float
        Log GCV / LOO.
    alone : str
        Why the spectrum says nothing; no words where it may.
    """

    n: int
    now: float
    noise_of_now: float
    law: PowerLaw
    spectral: SpectralForecast | None = None
    gap: float = 0.0
    alone: str = ""

    @classmethod
    def of(cls, path: RidgePath, law: PowerLaw, duplicates: float = 0.0, alone: str = "") -> Forecaster:
        """Both readings of a ridge regression; of its law alone where a reason is given, or the path has one."""
        spectral = SpectralForecast.of(path)
        if not alone and duplicates >= MOST_DUPLICATES:
            alone = f"{duplicates:.0%} of the rows repeat others, which the spectrum takes for structure"
        if not alone and (spectral is None or path.ridge < SMALLEST_RIDGE):
            alone = "the best ridge is as small as the rows can tell, where the spectrum says nothing of more rows"
        now = float(path.loo[path.best])
        return cls(len(path.squares), now, path.noise_of_loo, law, None if alone else spectral, path.gap, alone)

    @classmethod
    def of_law(cls, law: PowerLaw, n: int, noise_of_now: float, alone: str) -> Forecaster:
        """The reading of fits to fewer rows."""
        now = float(law.errors[-1]) if law.rows[-1] == n else float(law.error(n))
        return cls(n, now, noise_of_now, law, alone=alone)

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
        by_law = float(np.log(self.law.error(rows) / self.law.error(self.n)))
        by_spectrum = by_law if self.spectral is None else float(np.log(self.spectral.error(rows) / self.now))
        change, apart = 0.5 * (by_law + by_spectrum), by_spectrum - by_law
        doublings = float(np.log2(factor))
        share = SHARE_ALONE if self.spectral is None else SHARE_OF_CHANGE
        error = float(np.sqrt(apart**2 + (share * change) ** 2 + (PER_DOUBLING * doublings) ** 2 / self.n))
        spread = WIDTH * float(np.hypot(error, NOISE * self.noise_of_now))
        return self.now * float(np.exp(change)), spread, self._doubt(factor, error, abs(apart) > share * abs(change))

    def _doubt(self, factor: float, error: float, disagree: bool) -> str:
        """Why a forecast cannot be believed, or nothing."""
        if self.n < FEWEST_BELIEVED:
            return f"{self.n} rows are too few, at least {FEWEST_BELIEVED} are needed"
        if factor > FARTHEST:
            return f"more than {FARTHEST} times the rows at hand"
        if abs(self.gap) >= LARGEST_GAP:
            return "generalised cross-validation and leave-one-out disagree: the rows are not like independent draws"
        if error <= LARGEST_ERROR * max(1.0, np.log2(factor)) ** 0.5:
            return ""
        if disagree:
            return "the spectrum and the fits to fewer rows disagree"
        return "the error falls too fast to say how far"

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
    """A forecaster for each problem, a target (n,) or several (n, t) whose errors are summed; see `learning_curve`.

    >>> x = np.linspace(0, 1, 100)
    >>> [made] = forecasters(np.exp(-4 * (x[:, None] - x) ** 2), [np.sin(9 * x)])
    >>> made.n, bool(made.now > 0)
    (100, True)
    """
    check(intercept=intercept, random_state=random_state)
    gram = square(gram)
    n = len(gram)
    check_rows(n)
    eigen = Eigen.of(gram, weights, intercept=intercept)
    targets = [columns_of(problem, n) for problem in problems]
    paths = [RidgePath.of(eigen, Y) for Y in targets]
    loos = [float(path.loo[path.best]) for path in paths]
    if not all(loo > 0 for loo in loos):
        raise InputError("The leave-one-out error is zero: more rows cannot improve it.")
    laws = power_laws(gram, targets, loos, eigen.weights, intercept=intercept, random_state=random_state)
    return [Forecaster.of(path, law, duplicates, alone) for path, law in zip(paths, laws, strict=True)]


def check_rows(n: int) -> None:
    """Enough rows for subsets."""
    if n < FEWEST_ROWS:
        raise InputError(f"A forecast from {n} rows would be a guess: it needs at least {FEWEST_ROWS}.")
