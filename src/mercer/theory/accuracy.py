"""How far the errors of single designs are from the expected ones, and how fast that falls with the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.core.errors import InputError
from mercer.core.seeding import as_seed
from mercer.plots.canvas import vector
from mercer.plots.risk import risk_curve
from mercer.theory.algebra import solve
from mercer.theory.arguments import POSITIVE, check, rows_counts
from mercer.theory.equivalents import krr_risk


@dataclass(frozen=True, eq=False)
class EquivalentsAccuracy:
    """Relative errors of the deterministic equivalents.

    Attributes
    ----------
    n : array
        Numbers of rows.
    bias, variance : array
        Root mean squares over designs of the relative errors of both parts.
    """

    n: np.ndarray
    bias: np.ndarray
    variance: np.ndarray

    @property
    def exponents(self) -> tuple[float, float]:
        """The powers of n that both fall with, by least squares of the logarithms."""
        bias, variance = (-np.polyfit(np.log(self.n), np.log(part), 1)[0] for part in (self.bias, self.variance))
        return float(bias), float(variance)

    def plot(self, ax: Any = None) -> Any:
        """Draw both against the number of rows; returns matplotlib axes."""
        lines = {"bias": self.bias, "variance": self.variance}
        return risk_curve(self.n, lines, error_name="relative error of one design", ax=ax)


def equivalents_accuracy(
    spectrum: Any, coefficients: Any, n: Any, alpha: float = 1.0, *, draws: int = 20, random_state: Any = None
) -> EquivalentsAccuracy:
    r"""Compare bias and variance of designs of Gaussian features with `krr_risk`: both concentrate,

    .. math:: |B_n / B - 1| \lesssim n^{-1/2}, \qquad |V_n / V - 1| \lesssim n^{-1},

    the second more slowly where the spectrum falls fast, so that few directions matter. The bias keeps more noise: it
    depends on how rows meet one function, the variance on all functions alike.

    Parameters
    ----------
    spectrum, coefficients, alpha : array-like of shape (p,) and array-like of shape (p,) and float
        See `krr_risk`; alpha must be positive.
    n : array-like of int
        Numbers of rows.
    draws : int
        Designs for each.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None
        Seed of the designs.

    References
    ----------
    Misiakiewicz and Saeed, *A non-asymptotic theory of kernel ridge regression*, 2024.

    Examples
    --------
    >>> import numpy as np
    >>> j = np.arange(1, 301)
    >>> found = equivalents_accuracy(j**-1.5, 1.0 / j, n=[40, 160], draws=10)
    >>> bool((found.variance < found.bias).all())
    True
    """
    POSITIVE.check("alpha", alpha, False)
    check(draws=draws, random_state=random_state)
    rows, values = rows_counts(n), vector(spectrum, "spectrum")
    v = vector(coefficients, "coefficients", len(values))
    rng = np.random.default_rng(as_seed(random_state))
    off = []
    for m in rows:
        expected = krr_risk(values, v, m, alpha, noise=1.0)
        predicted = np.array([float(expected.bias), float(expected.variance)])
        if not ((predicted > 0) & np.isfinite(predicted)).all():
            raise InputError(
                f"With n={m} bias and variance are {predicted.tolist()}: to be compared, both must be positive and "
                "finite. Look at the coefficients, the spectrum and alpha."
            )
        parts = np.array([_parts(values, v, rng.standard_normal((m, len(values))), alpha) for _ in range(draws)])
        relative = parts / predicted - 1
        off.append(np.sqrt((relative**2).mean(0)))
    table = np.array(off)
    return EquivalentsAccuracy(rows, table[:, 0], table[:, 1])


def _parts(values: np.ndarray, v: np.ndarray, g: np.ndarray, alpha: float) -> tuple[float, float]:
    """Bias and variance, for noise of unit variance, of one design g of features."""
    smoother = solve((g * values) @ g.T + alpha * np.eye(len(g)), g * values).T  # coefficients are smoother @ labels
    return float(((smoother @ (g @ v) - v) ** 2).sum()), float((smoother**2).sum())
