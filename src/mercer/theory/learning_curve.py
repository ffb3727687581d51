"""Should I collect more data? The expected error with more rows, and which forecasts can be believed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from mercer.core.errors import InputError
from mercer.plots.canvas import vector
from mercer.plots.learning_curve import learning_curve_plot
from mercer.theory.power_law import PowerLaw, power_law
from mercer.theory.ridge_path import Eigen, RidgePath
from mercer.theory.spectral_forecast import SpectralForecast

FEWEST_ROWS = 64
"""Below, subsets have fewer than eight rows."""
LARGEST_GAP = 0.2
MOST_DUPLICATES = 0.02
LARGEST_DISAGREEMENT = 0.1
"""|log| of the ratio of the two forecasts, fixed on one half of the sets of benchmarks/forecasts.py."""
GROWTH = 0.06
"""What each doubling adds to the standard error of the logarithm of a forecast."""
WIDTH = 1.0
"""Intervals are this many times as wide as those of a normal distribution: fixed on the same half."""


@dataclass(frozen=True, eq=False, repr=False)
class LearningCurve:
    """The error expected with more rows.

    Attributes
    ----------
    n : rows seen.
    factors, rows : how many times as many, and how many.
    rmse : the root of the expected mean squared error at each.
    lower, upper : ends of its interval.
    level : the share of intervals that hold the truth.
    believed : whether each forecast can be believed.
    reasons : why not; empty words where it can.
    noise : the squared error that no number of rows removes, as far as the rows say.
    law : the power law through fits to fewer rows.
    spectral : the forecast from the spectrum, or None.
    """

    n: int
    factors: np.ndarray
    rows: np.ndarray
    rmse: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    level: float
    believed: np.ndarray
    reasons: tuple[str, ...]
    noise: float
    law: PowerLaw
    spectral: SpectralForecast | None

    @property
    def ratio(self) -> np.ndarray:
        """The error at each number of rows beside the error now."""
        return self.rmse / np.sqrt(self.law.errors[-1])

    def plot(self, ax: Any = None) -> Any:
        """Draw errors measured on subsets and forecasts; those not to be believed are hollow. Returns axes."""
        measured = self.law.rows, np.sqrt(self.law.errors)
        forecast = self.rows, self.rmse, self.lower, self.upper, self.believed
        return learning_curve_plot(measured, forecast, self.n, level=self.level, floor=self.noise**0.5, ax=ax)

    def __repr__(self) -> str:
        lines = [f"{'rows':>10}  {'RMSE':>10}  {f'{self.level:.0%} interval':>21}  change"]
        for rows, rmse, low, high, ratio, why in zip(
            self.rows, self.rmse, self.lower, self.upper, self.ratio, self.reasons, strict=True
        ):
            doubt = f"  (do not rely on it: {why})" if why else ""
            lines.append(f"{rows:>10,}  {rmse:>10.4g}  {low:>10.4g} {high:>10.4g}  {ratio - 1:+.1%}{doubt}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Forecaster:
    """What forecasts for any number of rows are made of; see `learning_curve`."""

    n: int
    loo: float
    noise_of_loo: float
    law: PowerLaw
    spectral: SpectralForecast | None
    doubt: str
    most: float
    """The factor up to which the spectrum reaches."""

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
            by_spectrum, why = by_law, why or "the ridge it would take is smaller than these rows can tell"
        elif abs(apart) > LARGEST_DISAGREEMENT:
            why = why or "the spectrum and the fits to fewer rows disagree"
        return self.loo * float(np.sqrt(by_spectrum * by_law)), self._width(factor, apart), why

    def _width(self, factor: float, apart: float) -> float:
        return WIDTH * float(np.hypot(np.hypot(self.noise_of_loo, apart), GROWTH * np.log2(factor)))


def forecaster(
    gram: Any,
    targets: Any,
    weights: Any = None,
    *,
    intercept: bool = False,
    duplicates: float = 0.0,
    spectral: str | bool = True,
    random_state: Any = None,
) -> Forecaster:
    """The eigendecompositions that forecasts need; `spectral` is True, or why the spectrum must not be used."""
    eigen = Eigen.of(gram, weights, intercept=intercept)
    n = len(eigen.values)
    if n < FEWEST_ROWS:
        raise InputError(f"A forecast from {n} rows would be a guess: it needs at least {FEWEST_ROWS}.")
    path = RidgePath.of(eigen, targets)
    loo = float(path.loo[path.best])
    if not loo > 0:
        raise InputError("The leave-one-out error is zero: there is nothing that more rows could improve.")
    law = power_law(gram, targets, loo, weights, intercept=intercept, random_state=random_state)
    by_spectrum = SpectralForecast.of(path) if spectral is True else None
    most = path.kappa[path.best] / path.smallest_kappa
    return Forecaster(n, loo, path.noise_of_loo, law, by_spectrum, _doubt(path, duplicates, spectral, by_spectrum), most)


def learning_curve(
    gram: Any,
    targets: Any,
    factors: Any = (1, 2, 4, 8),
    level: float = 0.9,
    weights: Any = None,
    *,
    intercept: bool = False,
    duplicates: float = 0.0,
    spectral: str | bool = True,
    random_state: Any = None,
) -> LearningCurve:
    r"""Forecast the error of kernel ridge regression with more rows, alpha chosen anew, from the rows at hand.

    Two readings that share nothing but the rows are combined: the spectrum of the kernel with leave-one-out errors along
    a path of alphas, E(N), and a power law through fits to fewer rows, P(N),

    .. math:: R(N) = \mathrm{LOO} \sqrt{\frac{E(N)}{E(n)} \frac{P(N)}{P(n)}}.

    Where they disagree, or leave-one-out and generalised cross-validation do, or rows are repeated, the forecast is not to
    be believed, and says so.

    Parameters
    ----------
    gram : K, of shape (n, n), of the kernel that more rows would be fitted with.
    targets : (n,); or (n, t), whose squared errors are summed: class indicators give the Brier score.
    factors : how many times as many rows.
    level : of the intervals.
    weights : of the rows.
    intercept : whether the fit has an unpenalised constant.
    duplicates : the share of rows that repeated others before they were merged.
    spectral : True, or words that say why the spectrum must not be used: the kernel was tuned on these rows, say.
    random_state : seed of the subsets.

    References: Wei, Hu and Steinhardt, *More than a toy: random matrix models predict how real-world neural
    representations generalize*, 2022; Jacot, Simsek, Spadaro, Hongler and Gabriel, *Kernel alignment risk estimator*, 2020.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-3, 3, (200, 1))
    >>> y = np.sin(2 * x[:, 0]) + 0.3 * rng.standard_normal(200)
    >>> curve = learning_curve(np.exp(-abs(x - x.T)), y)
    >>> bool(0.28 < curve.rmse[-1] < curve.rmse[0])
    True
    """
    factors = vector(factors, "factors")
    if (factors < 1).any():
        raise InputError(f"factors={factors.tolist()}: each must be at least 1, a number of rows not yet seen.")
    if not 0 < level < 1:
        raise InputError(f"level={level!r}: must be between 0 and 1.")
    made = forecaster(
        gram, targets, weights, intercept=intercept, duplicates=duplicates, spectral=spectral, random_state=random_state
    )
    found = [made.at(float(f)) for f in factors]
    rmse, errors = np.sqrt([mse for mse, _, _ in found]), np.array([error for _, error, _ in found])
    spread = np.exp(0.5 * norm.ppf((1 + level) / 2) * errors)
    reasons = tuple(why for _, _, why in found)
    return LearningCurve(
        n=made.n,
        factors=factors,
        rows=np.rint(factors * made.n).astype(int),
        rmse=rmse,
        lower=rmse / spread,
        upper=rmse * spread,
        level=level,
        believed=np.array([not why for why in reasons]),
        reasons=reasons,
        noise=made.law.floor if made.spectral is None else made.spectral.noise,
        law=made.law,
        spectral=made.spectral,
    )


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
