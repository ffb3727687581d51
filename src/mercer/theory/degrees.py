"""A kernel matrix and a function on the sphere, taken apart by the degree of polynomials."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.core.errors import InputError
from mercer.core.seeding import as_seed
from mercer.kernels import Kernel
from mercer.plots.canvas import numbers
from mercer.plots.degrees import degree_part, degree_spectrum
from mercer.theory.arguments import check, table, values_of
from mercer.theory.harmonics import legendre, sphere_harmonics_dimension
from mercer.theory.sphere import SphereSpectrum, sphere_spectrum


@dataclass(frozen=True, eq=False)
class DegreeParts:
    r"""The kernel matrix of n points on a sphere as a sum over degrees.

    Degrees with far fewer than n harmonics are fitted, one with about n is half fitted, and all higher ones together
    act as a ridge: their matrix is close to a multiple of the identity.

    Attributes
    ----------
    spectrum : SphereSpectrum
        The eigenvalues of the degrees.
    parts : array
        The matrices of the degrees, of shape (kmax + 1, n, n).
    rest : array
        What higher degrees add.
    """

    spectrum: SphereSpectrum
    parts: np.ndarray
    rest: np.ndarray

    @property
    def ridge(self) -> float:
        """The multiple of the identity that the rest is close to."""
        return float(np.trace(self.rest) / len(self.rest))

    @property
    def distance_from_ridge(self) -> float:
        """The spectral norm of the rest minus that multiple, beside it; small where the rest is a ridge."""
        return float(np.linalg.norm(self.rest - self.ridge * np.eye(len(self.rest)), 2) / self.ridge)

    @property
    def fitted(self) -> np.ndarray:
        """For each degree the share of its harmonics that n rows could fit, at most 1."""
        return np.minimum(1.0, len(self.rest) / self.spectrum.multiplicities)

    def plot(self, ax: Any = None) -> Any:
        """Draw the eigenvalues of the degrees; returns matplotlib axes."""
        return degree_spectrum({f"d = {self.spectrum.d}": self.spectrum.eigenvalues}, ax=ax)


def degree_parts(kernel: Kernel | Callable[[np.ndarray], Any] | Any, X: Any, kmax: int = 3) -> DegreeParts:
    r"""Split the kernel matrix of points on a sphere by degree,

    .. math:: K = \sum_{k \le k_{\max}} \lambda_k B(d, k) P_k(X X^T / r^2) + \text{rest}.

    Parameters
    ----------
    kernel : Kernel, str or callable
        See `sphere_spectrum`; of Taylor coefficients, all of them.
    X : array-like of shape (n, d), or list of objects
        Points of one length r; for a function of the cosine and Taylor coefficients any.
    kmax : int
        The highest degree with a matrix of its own.

    References
    ----------
    Ghorbani, Mei, Misiakiewicz and Montanari, *Linearized two-layers neural networks in high dimension*,
    2021.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> found = degree_parts(Linear(bias=1.0), [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], kmax=1)
    >>> found.parts.round(12).tolist()
    [[[1.0, 1.0], [1.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]]
    """
    check(kmax=kmax)
    X = table(X)
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(X, axis=1)
        radius = float(lengths.mean())
    if not math.isfinite(radius):
        raise InputError("Rows of X are so long that their lengths overflow: scale all rows to one length.")
    if not (radius > 0 and np.allclose(lengths, radius)):
        worst = int(np.abs(lengths - radius).argmax())
        raise InputError(
            f"Row {worst} of X has length {lengths[worst]:g}, the mean is {radius:g}: scale all rows to one length."
        )
    d = X.shape[1]
    spectrum = sphere_spectrum(kernel, d, kmax, radius=radius)
    T = np.clip(X @ X.T / radius**2, -1.0, 1.0)
    parts = spectrum.shares[:, None, None] * legendre(d, kmax, T)
    return DegreeParts(spectrum, parts, _matrix(kernel, X, T) - parts.sum(0))


def _matrix(kernel: Any, X: np.ndarray, T: np.ndarray) -> np.ndarray:
    if isinstance(kernel, Kernel):
        return np.asarray(kernel(X))
    return np.asarray(kernel(T)) if callable(kernel) else np.polynomial.polynomial.polyval(T, np.asarray(kernel))


@dataclass(frozen=True, eq=False)
class DegreeProjection:
    """The part of one degree of a function on the unit sphere, by Monte Carlo; call it with points.

    Attributes
    ----------
    degree : int
        The degree.
    points, values : array
        Draws z from the sphere, and what the function adds at each, B(d, degree) f(z).
    """

    degree: int
    points: np.ndarray
    values: np.ndarray

    def __call__(self, X: Any) -> np.ndarray:
        """The part at unit vectors X."""
        return np.asarray(self._terms(X).mean(1))

    def standard_error(self, X: Any) -> np.ndarray:
        """The standard error of the values at X: it falls like one over the root of the number of draws."""
        terms = self._terms(X)
        return np.asarray(terms.std(1, ddof=1) / np.sqrt(terms.shape[1]))

    def plot(self, ax: Any = None) -> Any:
        """Draw the part along the great circle through the first two axes, within two standard errors. Returns axes."""
        angle = np.linspace(0.0, 2.0 * np.pi, 181)
        circle = np.zeros((len(angle), self.points.shape[1]))
        circle[:, 0], circle[:, 1] = np.cos(angle), np.sin(angle)
        return degree_part(angle, self(circle), self.standard_error(circle), self.degree, ax=ax)

    def _terms(self, X: Any) -> np.ndarray:
        X = numbers(X, "X")
        if X.ndim != 2 or X.shape[1] != self.points.shape[1] or not np.allclose(np.linalg.norm(X, axis=1), 1.0):
            raise InputError(f"X must hold unit vectors with {self.points.shape[1]} columns.")
        return np.asarray(legendre(X.shape[1], self.degree, X @ self.points.T)[self.degree] * self.values)


def project_degree(
    f: Callable[[np.ndarray], Any], degree: int, d: int, *, draws: int = 20_000, random_state: Any = None
) -> DegreeProjection:
    r"""The part of degree l of a function on the unit sphere in d dimensions,

    .. math:: (\Pi_l f)(x) = B(d, l)\, E_z\big[P_l(x \cdot z) f(z)\big],

    with the mean over `draws` uniform points and their opposites, which leave parts of the other parity out exactly.

    References: Efthimiou and Frye, *Spherical Harmonics in p Dimensions*, 2014.

    >>> import numpy as np
    >>> part = project_degree(lambda z: 1 + 3 * z[:, 0], 1, d=3)
    >>> x = np.eye(3)[:1]
    >>> bool(abs(part(x) - 3)[0] < 4 * part.standard_error(x)[0])
    True
    """
    check(f=f, d=d, degree=degree, draws=draws, random_state=random_state)
    z = sphere_points(draws, d, random_state)
    sign = (-1) ** degree
    values = (values_of(f, z, "f") + sign * values_of(f, -z, "f")) / 2
    return DegreeProjection(degree, z, sphere_harmonics_dimension(d, degree) * values)


def sphere_points(n: int, d: int, random_state: Any = None) -> np.ndarray:
    """n uniform points on the unit sphere in d dimensions."""
    z = np.random.default_rng(as_seed(random_state)).standard_normal((n, d))
    return np.asarray(z / np.linalg.norm(z, axis=1, keepdims=True))
