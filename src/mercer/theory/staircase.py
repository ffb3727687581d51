"""Learning degree by degree: the staircase of the risk, and the peaks of multiple descent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.core.errors import InputError
from mercer.core.seeding import as_seed
from mercer.kernels import Kernel
from mercer.plots.canvas import numbers, vector
from mercer.plots.risk import risk_curve
from mercer.theory.algebra import solve
from mercer.theory.arguments import check, rows_counts
from mercer.theory.degrees import sphere_points
from mercer.theory.dials import MORE_DEGREES, TEST_POINTS
from mercer.theory.equivalents import KRRRisk, krr_risk
from mercer.theory.harmonics import legendre, sphere_harmonics_dimension
from mercer.theory.sphere import SphereSpectrum, sphere_spectrum


@dataclass(frozen=True, eq=False)
class SphereExperiment:
    """The risk of a kernel on the sphere against the number of rows, and simulations of it.

    Attributes
    ----------
    spectrum : SphereSpectrum
        Of the kernel.
    n : array
        Numbers of rows.
    expected : KRRRisk
        What `krr_risk` says.
    simulated_n, simulated, standard_errors : array
        Numbers of rows, means and standard errors of the simulated risk.
    """

    spectrum: SphereSpectrum
    n: np.ndarray
    expected: KRRRisk
    simulated_n: np.ndarray
    simulated: np.ndarray
    standard_errors: np.ndarray

    def plot(self, ax: Any = None) -> Any:
        """Draw the risk against log n / log d, with the numbers of harmonics marked; returns matplotlib axes."""
        d = self.spectrum.d
        parts = {"risk": self.expected.risk}
        if self.expected.noise.any():
            parts |= {"bias": self.expected.bias, "variance": self.expected.variance}
        shown = np.log(self.n) / np.log(d)
        marks = {
            f"B(d, {k})": np.log(B) / np.log(d)
            for k, B in enumerate(self.spectrum.multiplicities)
            if k and self.n.min() <= B <= self.n.max()
        }
        points = np.log(self.simulated_n) / np.log(d), self.simulated, self.standard_errors
        simulated = points if len(self.simulated_n) else None
        return risk_curve(
            shown, parts, simulated=simulated, marks=marks, along_name="log n / log d", error_name="risk",
            logarithmic="", title=f"d = {d}", ax=ax,
        )  # fmt: skip


def staircase(
    kernel: Kernel | Any,
    d: int = 30,
    powers: Sequence[float] = (0.0, 1.0, 1.0, 1.0),
    *,
    alpha: float = 1e-3,
    noise: float = 0.0,
    exponents: Any = None,
    simulate: Sequence[int] = (),
    repeats: int = 10,
    random_state: Any = None,
) -> SphereExperiment:
    r"""The risk against log n / log d: at n between d^l and d^(l+1) the degrees up to l are learned and no others.

    Parameters
    ----------
    kernel : Kernel, str or callable
        See `sphere_spectrum`.
    d : int
        Columns of the points, uniform on the unit sphere.
    powers : Sequence[float]
        Squared norms of the parts of degree 0, 1, ... of the target.
    alpha, noise : float
        Ridge, and variance of the noise of the labels.
    exponents : array-like or None
        Values of log n / log d, by default 200 from 0.3 to one above the degree of the target.
    simulate : Sequence[int]
        Numbers of rows at which to simulate.
    repeats : int
        Draws for each.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None
        Seed of the simulation.

    References
    ----------
    Ghorbani, Mei, Misiakiewicz and Montanari, *Linearized two-layers neural networks in high dimension*,
    2021.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> found = staircase(Gaussian(), d=100, powers=(0, 1, 1), exponents=[0.3, 1.5, 2.7])
    >>> found.expected.bias.round(1).tolist()
    [2.2, 0.9, 0.0]
    """
    check(d=d)
    degrees = len(vector(powers, "powers"))
    kappas = np.linspace(0.3, degrees, 200) if exponents is None else vector(exponents, "exponents")
    n = float(d) ** kappas
    return _experiment(kernel, d, powers, n, alpha, noise, simulate, repeats, random_state)


def multiple_descent(
    kernel: Kernel | Any,
    d: int = 30,
    powers: Sequence[float] = (0.0, 1.0, 1.0),
    *,
    alpha: float = 1e-8,
    noise: float = 1.0,
    n: Any = None,
    simulate: Sequence[int] = (),
    repeats: int = 10,
    random_state: Any = None,
) -> SphereExperiment:
    """The risk on noisy labels with little regularisation: it peaks at each number of harmonics, n = B(d, l).

    The parameters are those of `staircase`; `n` are the numbers of rows.

    References: Liang, Rakhlin and Zhai, *On the multiple descent of minimum-norm interpolants and restricted lower
    isometry of kernels*, 2020; Xiao, Hu, Misiakiewicz, Lu and Pennington, *Precise learning curves and higher-order
    scaling limits for dot product kernel regression*, 2022.

    >>> found = multiple_descent([1.0, 1.0, 1.0, 0.02], d=20, n=[60, 209, 500])
    >>> risk = found.expected.risk
    >>> bool(risk[1] > risk[0] and risk[1] > risk[2])
    True
    """
    degrees = len(vector(powers, "powers"))
    top = sphere_harmonics_dimension(d, degrees - 1)
    rows = np.geomspace(max(2, d // 5), 5 * top, 300) if n is None else vector(n, "n")
    return _experiment(kernel, d, powers, rows, alpha, noise, simulate, repeats, random_state)


def _experiment(
    kernel: Any, d: int, powers: Any, n: np.ndarray, alpha: float, noise: float, simulate: Any, repeats: int, seed: Any
) -> SphereExperiment:
    check(d=d, alpha=alpha, noise=noise, repeats=repeats, random_state=seed)
    power = vector(powers, "powers")
    simulate = rows_counts(simulate, "simulate", 20_000) if np.size(numbers(simulate, "simulate")) else ()
    if (power < 0).any():
        raise InputError("powers are squared norms and must not be negative.")
    spectrum = sphere_spectrum(kernel, d, len(power) - 1 + MORE_DEGREES)
    roots = np.sqrt(np.append(power, np.zeros(MORE_DEGREES)))
    expected = krr_risk(
        spectrum.eigenvalues, roots, n, alpha, noise, multiplicities=spectrum.multiplicities, tail=spectrum.tail
    )
    rng = np.random.default_rng(as_seed(seed))
    risks = [[_simulated(kernel, d, power, int(m), alpha, noise, rng) for _ in range(repeats)] for m in simulate]
    table = np.array(risks, dtype=float).reshape(len(simulate), repeats)
    error = table.std(1, ddof=1) / np.sqrt(repeats) if repeats > 1 else np.zeros(len(table))
    return SphereExperiment(spectrum, n, expected, np.array(simulate, dtype=float), table.mean(1), error)


def _simulated(kernel: Any, d: int, power: np.ndarray, n: int, alpha: float, noise: float, rng: Any) -> float:
    """The squared error of one fit; the target is a sum of zonal polynomials around one direction."""
    X, Z, w = (sphere_points(m, d, rng) for m in (n, TEST_POINTS, 1))

    def target(points: np.ndarray) -> np.ndarray:
        dims = [sphere_harmonics_dimension(d, k) for k in range(len(power))]
        return np.asarray(np.sqrt(power * dims) @ legendre(d, len(power) - 1, points @ w[0]))

    y = target(X) + np.sqrt(noise) * rng.standard_normal(n)
    dual = solve(_between(kernel, X, X) + alpha * np.eye(n), y)
    return float(np.mean((_between(kernel, Z, X) @ dual - target(Z)) ** 2))


def _between(kernel: Any, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    if isinstance(kernel, Kernel):
        return np.asarray(kernel(X, Z))
    T = np.clip(X @ Z.T, -1.0, 1.0)
    return np.asarray(kernel(T)) if callable(kernel) else np.polynomial.polynomial.polyval(T, np.asarray(kernel))
