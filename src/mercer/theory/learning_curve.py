"""Should I collect more data? The expected error with more rows, and which forecasts can be believed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.core.errors import InputError
from mercer.plots.canvas import vector
from mercer.plots.learning_curve import learning_curve_plot
from mercer.theory.forecaster import Forecaster, forecasters
from mercer.theory.power_law import PowerLaw
from mercer.theory.spectral_forecast import SpectralForecast


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
    noise : the squared error that forecasts tend to with ever more rows.
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

    Two readings that share nothing but the rows are combined: the spectrum of the kernel with leave-one-out errors
    along a path of alphas, E(N), and a power law through fits to fewer rows, P(N),

    .. math:: R(N) = \mathrm{LOO} \sqrt{\frac{E(N)}{E(n)} \frac{P(N)}{P(n)}}.

    Where they disagree, or leave-one-out and generalised cross-validation do, or rows are repeated, the forecast is not
    to be believed, and says so.

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
    representations generalize*, 2022; Jacot, Simsek, Spadaro, Hongler and Gabriel, *Kernel alignment risk estimator*,
    2020.

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
        spectral=spectral,
        random_state=random_state,
    )
    return curve_of(made[0], factors, level)


def curve_of(made: Forecaster, factors: Any = (1, 2, 4, 8), level: float = 0.9) -> LearningCurve:
    """The learning curve that a forecaster draws."""
    factors = vector(factors, "factors")
    if (factors < 1).any():
        raise InputError(f"factors={factors.tolist()}: each must be at least 1, a number of rows not yet seen.")
    if not 0 < level < 1:
        raise InputError(f"level={level!r}: must be between 0 and 1.")
    ends = np.sqrt([made.interval(float(f), level) for f in factors])
    found = [made.at(float(f)) for f in factors]
    reasons = tuple(why for _, _, why in found)
    return LearningCurve(
        n=made.n,
        factors=factors,
        rows=np.rint(factors * made.n).astype(int),
        rmse=np.sqrt([mse for mse, _, _ in found]),
        lower=ends[:, 0],
        upper=ends[:, 1],
        level=level,
        believed=np.array([not why for why in reasons]),
        reasons=reasons,
        noise=made.noise,
        law=made.law,
        spectral=made.spectral,
    )
