"""The expected error of kernel ridge regression from the spectrum of the kernel and the coefficients of the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from mercer.core.errors import InputError
from mercer.plots.canvas import numbers, vector
from mercer.plots.risk import risk_curve
from mercer.theory.arguments import check


def effective_regularisation(
    spectrum: Any, n: Any, alpha: Any = 0.0, *, multiplicities: Any = None, tail: float = 0.0
) -> Any:
    r"""The ridge kappa that infinitely many rows would need to be smoothed as much as n rows are, from

    .. math:: n = \sum_i \frac{\lambda_i}{\lambda_i + \kappa} + \frac{\alpha}{\kappa}.

    It is positive also at alpha = 0, where more eigenvalues than n are positive: high dimension regularises by itself.

    Parameters
    ----------
    spectrum : array-like of shape (p,)
        Eigenvalues of the kernel's integral operator.
    n, alpha : int or array-like and float or array-like
        Numbers of rows and ridges of ``K + alpha I``, which broadcast.
    multiplicities : array-like of shape (p,) or None
        How often each eigenvalue occurs, once when None.
    tail : float
        Sum of the eigenvalues that are left out of `spectrum`; it acts as a ridge.

    References
    ----------
    Simon, Dickens, Karkada and DeWeese, *The eigenlearning framework*, 2023; Misiakiewicz and Saeed,
    *A non-asymptotic theory of kernel ridge regression*, 2024.

    Examples
    --------
    >>> round(effective_regularisation([1.0, 1.0], n=1, alpha=0.0), 12)
    1.0
    >>> effective_regularisation([1.0], n=2, alpha=0.0)  # more rows than features
    0.0
    """
    check(tail=tail)
    values, counts = _spectrum(spectrum, multiplicities)
    rows, ridges = _together(n=n, alpha=alpha)
    _check_rows(rows, ridges)
    kept = values > 0
    found = [
        _kappa(values[kept], counts[kept], float(m), float(a) + tail)
        for m, a in zip(rows.flat, ridges.flat, strict=True)
    ]
    return found[0] if rows.ndim == 0 else np.array(found).reshape(rows.shape)


@dataclass(frozen=True, eq=False)
class KRRRisk:
    """What kernel ridge regression is expected to do, for each n and alpha.

    Attributes
    ----------
    n, alpha, noise : array
        What was asked, of one shape; `noise` is a variance.
    kappa : array
        The effective regularisation.
    learnabilities : array
        The share of each eigenfunction that is learned; one more axis, that of the spectrum.
    bias, variance : array
        The two parts of the error against the target without noise.
    test, train : array
        Mean squared errors on noisy labels.
    """

    n: np.ndarray
    alpha: np.ndarray
    noise: np.ndarray
    kappa: np.ndarray
    learnabilities: np.ndarray
    bias: np.ndarray
    variance: np.ndarray
    test: np.ndarray
    train: np.ndarray

    @property
    def risk(self) -> np.ndarray:
        """The error against the target without noise: bias + variance."""
        return self.bias + self.variance

    @property
    def tail_power(self) -> np.ndarray:
        """The sum of the eigenvalues that are not learned, n kappa - alpha; a tail is part of it."""
        return self.n * self.kappa - self.alpha

    def plot(self, ax: Any = None) -> Any:
        """Draw the errors against n, or against alpha where n is the same everywhere; returns matplotlib axes."""
        by_rows = np.ptp(self.n) > 0 or np.ptp(self.alpha) == 0
        along, name = (self.n, "n (rows)") if by_rows else (self.alpha, "alpha (ridge)")
        parts = {"test": self.test, "bias": self.bias, "variance": self.variance, "train": self.train}
        return risk_curve(np.ravel(along), {k: np.ravel(v) for k, v in parts.items()}, along_name=name, ax=ax)


def krr_risk(
    spectrum: Any,
    coefficients: Any,
    n: Any,
    alpha: Any = 0.0,
    noise: Any = 0.0,
    *,
    multiplicities: Any = None,
    tail: float = 0.0,
) -> KRRRisk:
    r"""The expected errors of kernel ridge regression on n random rows, by deterministic equivalents:

    .. math:: L_i = \frac{\lambda_i}{\lambda_i + \kappa}, \quad
        B = \frac{n \sum_i (1 - L_i)^2 v_i^2}{n - \sum_i L_i^2}, \quad
        V = \frac{\sigma^2 \sum_i L_i^2}{n - \sum_i L_i^2},

    the test error on noisy labels is :math:`B + V + \sigma^2`, and the train error
    :math:`(\alpha / n \kappa)^2 (B + V + \sigma^2)`. Arrays broadcast. Within one or two per cent of the average from
    about a hundred rows on.

    Parameters
    ----------
    spectrum : array-like of shape (p,)
        Eigenvalues of the kernel's integral operator; zero for what the kernel cannot learn.
    coefficients : array-like of shape (p,)
        Of the target in the eigenfunctions; with `multiplicities` the root of the power of each eigenspace.
    n, alpha : int or array-like and float or array-like
        Numbers of rows and ridges of ``K + alpha I``.
    noise : float, array-like of shape (n,), or str
        Variance of the noise of the labels.
    multiplicities, tail : array-like of shape (p,) or None and float
        See `effective_regularisation`.

    References
    ----------
    Simon, Dickens, Karkada and DeWeese, *The eigenlearning framework*, 2023; Canatar, Bordelon and
    Pehlevan, *Spectral bias and task-model alignment*, 2021.

    Examples
    --------
    >>> found = krr_risk([1.0, 1.0], [1.0, 0.0], n=1, alpha=0.0)
    >>> round(float(found.kappa), 12), round(float(found.bias), 12)
    (1.0, 0.5)
    """
    values, counts = _spectrum(spectrum, multiplicities)
    power = vector(coefficients, "coefficients", len(values)) ** 2
    rows, ridges, noise = _together(n=n, alpha=alpha, noise=noise)
    if (noise < 0).any():
        raise InputError(f"noise={noise.min():g}: a variance must not be negative.")
    kappa = np.asarray(effective_regularisation(values, rows, ridges, multiplicities=counts, tail=tail))
    L = _learnabilities(values, kappa)
    free = rows - (counts * L**2).sum(-1)
    bias = rows * _ratio(((1 - L) ** 2 * power).sum(-1), free)
    variance = _ratio(noise * (counts * L**2).sum(-1), free)
    test = bias + variance + noise
    train = _product(_left_over(counts, L, rows, ridges, kappa) ** 2, test)
    return KRRRisk(rows, ridges, noise, kappa, L, bias, variance, test, train)


def _kappa(values: np.ndarray, counts: np.ndarray, n: float, alpha: float) -> float:
    """Between two bounds: where the left-hand side is at least n, and where it is at most n."""
    order = np.argsort(-values)
    below = np.cumsum(counts[order]) - n
    if alpha == 0 and not (below > 0).any():
        return 0.0
    low = max(alpha / n, float((values[order] * below).max(initial=0.0)) / n)
    high = (float(counts @ values) + alpha) / n

    def missing(log_kappa: float) -> float:
        kappa = np.exp(log_kappa)
        return float(counts @ (values / (values + kappa))) + alpha / kappa - n

    ends = np.log(low) - 1e-9, np.log(high) + 1e-9
    return float(np.exp(brentq(missing, *ends, xtol=1e-15, rtol=1e-14)))


def _learnabilities(values: np.ndarray, kappa: np.ndarray) -> np.ndarray:
    bottom = values + kappa[..., None]
    return np.where(values > 0, values / np.where(bottom > 0, bottom, 1.0), 0.0)


def _left_over(counts: np.ndarray, L: np.ndarray, n: np.ndarray, alpha: np.ndarray, kappa: np.ndarray) -> np.ndarray:
    """The share of the labels that training leaves: alpha / (n kappa), also where that is 0 / 0."""
    by_count = 1 - (counts * L).sum(-1) / n
    return np.where(kappa > 0, alpha / np.where(kappa > 0, n * kappa, 1.0), by_count)


def _ratio(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """top / bottom, zero where the top is, and infinite where only the bottom is."""
    top, bottom = np.broadcast_arrays(np.asarray(top, dtype=float), bottom)
    safe = np.where(bottom > 0, bottom, 1.0)
    return np.where(top == 0, 0.0, np.where(bottom > 0, top / safe, np.inf))


def _product(share: np.ndarray, error: np.ndarray) -> np.ndarray:
    """share * error, zero where the share is."""
    return np.where(share == 0, 0.0, share * np.where(share == 0, 0.0, error))


def _spectrum(spectrum: Any, multiplicities: Any) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, not negative, and how often each occurs."""
    values = vector(spectrum, "spectrum")
    counts = np.ones(len(values)) if multiplicities is None else vector(multiplicities, "multiplicities", len(values))
    if (values < 0).any() or (counts < 0).any():
        raise InputError("spectrum and multiplicities must not be negative: clip eigenvalues that are rounding errors.")
    return values, counts


def _together(**given: Any) -> tuple[np.ndarray, ...]:
    """Arrays of numbers in one shape."""
    found = {name: numbers(values, name) for name, values in given.items()}
    try:
        return np.broadcast_arrays(*found.values())
    except ValueError:
        shapes = " and ".join(f"{name} {values.shape}" for name, values in found.items())
        raise InputError(f"The shapes of {shapes} do not broadcast: give numbers, or arrays of one length.") from None


def _check_rows(n: np.ndarray, alpha: np.ndarray) -> None:
    if (n <= 0).any():
        raise InputError(f"n={n.min():g}: the number of rows must be positive.")
    if (alpha < 0).any():
        raise InputError(f"alpha={alpha.min():g}: a ridge must not be negative.")
