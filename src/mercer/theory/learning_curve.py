"""Should I collect more data? The expected error with more rows, and which forecasts can be believed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.core.errors import InputError
from mercer.core.rules import of_kind
from mercer.plots.canvas import numbers, vector
from mercer.plots.learning_curve import learning_curve_plot
from mercer.theory.arguments import check
from mercer.theory.dials import MOST_ROWS
from mercer.theory.forecaster import Forecaster, forecasters
from mercer.theory.power_law import PowerLaw
from mercer.theory.spectral_forecast import SpectralForecast


@dataclass(frozen=True, eq=False, repr=False)
class LearningCurve:
    """The error expected with more rows.

    Attributes
    ----------
    n : int
        Rows seen.
    factors, rows : array
        How many times as many, and how many.
    error : array
        The expected error at each: a root mean square, or a mean square where that is the measure.
    lower, upper : array
        Ends of its interval.
    level : float
        The share of intervals that hold the truth.
    believed : array
        Whether each forecast can be believed.
    reasons : tuple[str, ...]
        Why not; empty words where it can.
    now : float
        The squared error of the rows at hand.
    noise : float
        The squared error that forecasts tend to with ever more rows.
    law : PowerLaw
        The power law through fits to fewer rows.
    spectral : SpectralForecast or None
        The forecast from the spectrum, or None.
    measure : str
        "RMSE"; "Brier score" for probabilities of classes.
    alone : str
        Why the fits to fewer rows are the only reading; no words where the spectrum is one too.
    """

    n: int
    factors: np.ndarray
    rows: np.ndarray
    error: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    level: float
    believed: np.ndarray
    reasons: tuple[str, ...]
    now: float
    noise: float
    law: PowerLaw
    spectral: SpectralForecast | None
    measure: str = "RMSE"
    alone: str = ""

    @property
    def rmse(self) -> np.ndarray:
        """The root of the expected mean squared error at each number of rows."""
        return self.error if self.measure == "RMSE" else np.sqrt(self.error)

    @property
    def ratio(self) -> np.ndarray:
        """The error at each number of rows beside the error now."""
        return self.error / _shown(self.now, self.measure)

    def plot(self, ax: Any = None) -> Any:
        """Draw errors measured on subsets and forecasts; those not to be believed are hollow. Returns axes."""
        measured = self.law.rows, _shown(self.law.errors, self.measure)
        forecast = self.rows, self.error, self.lower, self.upper, self.believed
        floor = float(_shown(self.noise, self.measure))
        return learning_curve_plot(
            measured, forecast, self.n, level=self.level, floor=floor, error_name=self.measure, ax=ax
        )

    def __repr__(self) -> str:
        lines = [f"{'rows':>10}  {self.measure:>11}  {f'{self.level:.0%} interval':>21}  change"]
        for rows, error, low, high, ratio, why in zip(
            self.rows, self.error, self.lower, self.upper, self.ratio, self.reasons, strict=True
        ):
            doubt = f"  (do not rely on it: {why})" if why else ""
            lines.append(f"{rows:>10,}  {error:>11.4g}  {low:>10.4g} {high:>10.4g}  {ratio - 1:+.1%}{doubt}")
        return "\n".join([*lines, *([f"From fits to fewer rows alone: {self.alone}."] if self.alone else [])])


FORECASTER = of_kind(lambda value: isinstance(value, Forecaster), "a Forecaster, as `forecasters` makes them")


def learning_curve(
    gram: Any,
    targets: Any,
    factors: Any = (1, 2, 4, 8),
    level: float = 0.9,
    weights: Any = None,
    *,
    intercept: bool = False,
    duplicates: float = 0.0,
    alone: str = "",
    random_state: Any = None,
) -> LearningCurve:
    r"""Forecast the error of kernel ridge regression with more rows, alpha chosen anew, from the rows at hand.

    Two readings that share nothing but the rows are combined: the spectrum of the kernel with leave-one-out errors
    along a path of alphas, E(N), and a power law through fits to fewer rows, P(N),

    .. math:: R(N) = \mathrm{LOO} \sqrt{\frac{E(N)}{E(n)} \frac{P(N)}{P(n)}}.

    Where they disagree, or leave-one-out and generalised cross-validation do, or rows are repeated, the forecast is not
    to be believed, and says so.

    Parameters
    ----------
    gram : array-like of shape (n, n)
        The matrix K of the kernel that more rows would be fitted with.
    targets : array-like of shape (n,) or (n, t)
        Squared errors of several are summed: class indicators give the Brier score.
    factors : sequence of float
        How many times as many rows.
    level : float
        Of the intervals.
    weights : array-like of shape (n,), or None
        Of the rows.
    intercept : bool
        Whether the fit has an unpenalised constant.
    duplicates : float
        The share of rows that repeated others before they were merged.
    alone : str
        Why the spectrum must not be used, if it must not: the kernel was tuned on these rows, say.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None
        Seed of the subsets.

    References
    ----------
    Wei, Hu and Steinhardt, *More than a toy: random matrix models predict how real-world neural
    representations generalize*, 2022; Jacot, Simsek, Spadaro, Hongler and Gabriel, *Kernel alignment risk estimator*,
    2020.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-3, 3, (200, 1))
    >>> y = np.sin(2 * x[:, 0]) + 0.3 * rng.standard_normal(200)
    >>> curve = learning_curve(np.exp(-abs(x - x.T)), y)
    >>> bool(0.28 < curve.rmse[-1] < curve.rmse[0])
    True
    """
    made = forecasters(
        gram,
        [targets],
        weights,
        intercept=intercept,
        duplicates=duplicates,
        alone=alone,
        random_state=random_state,
    )
    return curve_of(made[0], factors, level)


def curve_of(
    made: Forecaster, factors: Any = (1, 2, 4, 8), level: float = 0.9, *, measure: str = "RMSE"
) -> LearningCurve:
    """The learning curve that a forecaster draws.

    >>> from mercer.theory import forecasters
    >>> x = np.linspace(0, 1, 100)
    >>> made = forecasters(np.exp(-4 * (x[:, None] - x) ** 2), [np.sin(9 * x)])
    >>> curve_of(made[0], factors=(1, 2)).rows
    array([100, 200])
    """
    FORECASTER.check("made", made, False)
    check(level=level, measure=measure)
    factors = vector(np.atleast_1d(numbers(factors, "factors")), "factors")
    if (factors < 1).any() or (factors > MOST_ROWS / made.n).any():
        raise InputError(f"factors={factors.tolist()}: each must be at least 1, for {MOST_ROWS:.0e} rows at most.")
    ends = _shown([made.interval(float(f), level) for f in factors], measure)
    found = [made.at(float(f)) for f in factors]
    reasons = tuple(why for _, _, why in found)
    return LearningCurve(
        n=made.n,
        factors=factors,
        rows=np.rint(factors * made.n).astype(int),
        error=_shown([mse for mse, _, _ in found], measure),
        lower=ends[:, 0],
        upper=ends[:, 1],
        level=level,
        believed=np.array([not why for why in reasons]),
        reasons=reasons,
        now=made.now,
        noise=made.noise,
        law=made.law,
        spectral=made.spectral,
        measure=measure,
        alone=made.alone,
    )


def _shown(mse: Any, measure: str) -> Any:
    """Mean squares as the measure shows them: their roots, or for the Brier score as they are."""
    return np.sqrt(mse) if measure == "RMSE" else np.asarray(mse)
