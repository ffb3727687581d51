"""A forecast from the spectrum: errors at smaller effective regularisation, extended by a power law."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mercer.theory.dials import FORECAST_STEPS, WINDOW
from mercer.theory.ridge_path import RidgePath

EXPONENTS = np.linspace(0.05, 2.0, 79)


@dataclass(frozen=True)
class SpectralForecast:
    r"""Power laws of the bias and the degrees of freedom above the best kappa,

    .. math:: B(\kappa) = s^2 + c (\kappa / \kappa_*)^b, \qquad
        \mathrm{df}_2(\kappa) = \mathrm{df}_2(\kappa_*) (\kappa / \kappa_*)^{-g}, \qquad
        R(N) = \min_{\kappa_* n / N \le \kappa \le \kappa_*} \frac{B(\kappa)}{1 - \mathrm{df}_2(\kappa) / N}.

    Attributes
    ----------
    n : int
        Rows seen.
    noise, slope, exponent : float
        s^2, c and b; s^2 is the error that no number of rows removes.
    df2, decay : float
        df2 at the best kappa, and g.
    """

    n: int
    noise: float
    slope: float
    exponent: float
    df2: float
    decay: float

    @classmethod
    def of(cls, path: RidgePath) -> SpectralForecast | None:
        """Fit the path; None where the best alpha is the smallest, or too few values lie above it."""
        n, best = len(path.squares), path.best
        some = slice(best, int(np.searchsorted(path.kappa, WINDOW * path.kappa[best], side="right")))
        if best == 0 or len(path.kappa[some]) < 3 or not path.df2[some].min() > 0:
            return None
        ratio, df2 = path.kappa[some] / path.kappa[best], path.df2[some]
        B = path.loo[some] * (1 - df2 / n)
        noise, slope, exponent = _through_first(ratio, B)
        logs = np.log(ratio)
        decay = -float(logs @ np.log(df2 / df2[0]) / (logs @ logs))
        return cls(n, noise, slope, exponent, float(df2[0]), decay)

    def times(self, factor: float) -> SpectralForecast:
        """The forecast of errors that are a factor larger."""
        return replace(self, noise=factor * self.noise, slope=factor * self.slope)

    def error(self, rows: float) -> float:
        """The expected squared error with that many rows and the best alpha."""
        ratio = np.geomspace(min(1.0, self.n / rows), 1.0, FORECAST_STEPS)
        share = self.df2 * ratio**-self.decay / rows
        errors = (self.noise + self.slope * ratio**self.exponent) / np.where(share < 1, 1 - share, np.nan)
        return float(np.nanmin(errors)) if (share < 1).any() else np.inf


def _through_first(ratio: np.ndarray, B: np.ndarray) -> tuple[float, float, float]:
    """s^2, c, b of B = s^2 + c ratio^b that passes through the first value, by relative errors."""
    best, size = (np.inf, 0.0, 0.0), float(B[0])
    B = B / size
    for b in EXPONENTS:
        rise, wanted = (ratio**b - 1) / B, (B - B[0]) / B
        c = float(np.clip(rise @ wanted / (rise @ rise), 0.0, 1.0))
        best = min(best, (float(((c * rise - wanted) ** 2).sum()), c, float(b)))
    _, c, b = best
    return size * (1.0 - c), size * c, b
