"""Expected errors of ridge regression against simulation: `python -m benchmarks.expected_risk`.

Spectra that fall like powers are simulated by Gaussian features; kernels on the sphere by fits of the kernel itself to
uniform points, with a target of degrees 0 to 2. The spectrum of the sphere is exact, so that nothing is fitted here.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.linalg

from mercer.kernels import NTK, Gaussian, Kernel, Laplace
from mercer.theory import krr_risk, sphere_harmonics_dimension, sphere_spectrum
from mercer.theory.degrees import sphere_points
from mercer.theory.harmonics import legendre

REPEATS, TEST_POINTS = 100, 500
ROWS = (100, 200)
RIDGES = (0.0, 1e-2, 1.0)
NOISES = (0.0, 0.2)
DEGREES, D = 12, 20
POWER = np.array([0.2, 1.0, 0.5])
Errors = tuple[float, float]


def on_features(
    values: np.ndarray, v: np.ndarray, n: int, alpha: float, noise: float, rng: np.random.Generator
) -> Errors:
    """Test and train errors of one fit to Gaussian features."""
    g = rng.standard_normal((n, len(values)))
    y = g @ v + np.sqrt(noise) * rng.standard_normal(n)
    dual = scipy.linalg.solve((g * values) @ g.T + alpha * np.eye(n), y, assume_a="pos")
    return float(((values * (g.T @ dual) - v) ** 2).sum() + noise), float(np.mean((alpha * dual) ** 2))


def on_sphere(kernel: Kernel, n: int, alpha: float, noise: float, rng: np.random.Generator) -> Errors:
    """Test and train errors of one fit to points of the sphere."""
    X, Z, w = (sphere_points(m, D, rng) for m in (n, TEST_POINTS, 1))
    scales = np.sqrt(POWER * [sphere_harmonics_dimension(D, k) for k in range(len(POWER))])
    y, f = (scales @ legendre(D, len(POWER) - 1, points @ w[0]) for points in (X, Z))
    y = y + np.sqrt(noise) * rng.standard_normal(n)
    dual = scipy.linalg.solve(np.asarray(kernel(X)) + alpha * np.eye(n), y, assume_a="pos")
    return float(np.mean((np.asarray(kernel(Z, X)) @ dual - f) ** 2) + noise), float(np.mean((alpha * dual) ** 2))


def settings() -> Iterator[tuple[str, int, float, float, float, float | None]]:
    """What was fitted, n, alpha and the noise, and the relative errors of the expected test and train errors."""
    rng, j = np.random.default_rng(0), np.arange(1, 401.0)
    grid = [(n, alpha, noise) for n in ROWS for alpha in RIDGES for noise in NOISES]
    for decay, source in ((1.2, 1.0), (1.5, 1.0), (2.0, 1.5)):
        values, v = j**-decay, j**-source
        for n, alpha, noise in grid:
            seen = [on_features(values, v, n, alpha, noise, rng) for _ in range(REPEATS)]
            found = krr_risk(values, v, n, alpha, noise)
            yield f"eigenvalues j^-{decay:g}", n, alpha, noise, *_off(seen, found)
    roots = np.sqrt(np.append(POWER, np.zeros(DEGREES + 1 - len(POWER))))
    for kernel in (Gaussian(0.7), Laplace(), NTK(depth=2)):
        s = sphere_spectrum(kernel, D, DEGREES)
        for n, alpha, noise in grid:
            seen = [on_sphere(kernel, n, alpha, noise, rng) for _ in range(REPEATS)]
            found = krr_risk(s.eigenvalues, roots, n, alpha, noise, multiplicities=s.multiplicities, tail=s.tail)
            yield repr(kernel), n, alpha, noise, *_off(seen, found)


def _off(seen: list[Errors], expected: object) -> tuple[float, float | None]:
    test, train = np.mean(seen, axis=0)
    found = expected.test, expected.train  # type: ignore[attr-defined]
    return float(found[0] / test - 1), float(found[1] / train - 1) if found[1] > 0 and train > 0 else None


def main() -> None:
    tests, trains = [], []
    print("| of | n | alpha | noise | test error off by | train error off by |\n| --- | --- | --- | --- | --- | --- |")
    for name, n, alpha, noise, test, train in settings():
        shown = "" if train is None else f"{100 * train:+.1f}%"
        print(f"| {name} | {n} | {alpha:g} | {noise:g} | {100 * test:+.1f}% | {shown} |", flush=True)
        tests.append(abs(test))
        trains += [] if train is None else [abs(train)]
    for name, off in (("test", tests), ("train", trains)):
        print(f"{name}: {len(off)} settings, median {100 * np.median(off):.1f}%, largest {100 * max(off):.1f}%")


if __name__ == "__main__":
    main()
