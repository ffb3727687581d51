"""Gaussian process regression: learning against scikit-learn, and the published posteriors of real data.

``python -m benchmarks gaussian_process`` compares the fit; ``python -m benchmarks.gaussian_process`` reproduces the
reference table from the folder in MERCER_DATA (dense float64 with up to 15,642 rows: some minutes and 5 GiB).
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor as SklearnProcess
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel
from sklearn.gaussian_process.kernels import Matern as SklearnMatern

from benchmarks import Row
from benchmarks.real_data import published, split
from mercer import GaussianProcessRegressor
from mercer.kernels import Matern

REFERENCE = {
    "pol": (0.0834, -1.2136, 0.934, -0.9864),
    "elevators": (0.3566, 0.3920, 0.942, 0.4402),
    "bike": (0.0431, -2.7088, 0.979, -1.9992),
}
"""RMSE, negative log density, 95% coverage and -log marginal likelihood / n of the exact float64 posterior."""

DIGITS = (0.6e-4, 0.6e-4, 0.6e-3, 0.6e-4)
"""Half a unit of the last digit that the table shows, and a little."""


def run() -> list[Row]:
    """Learning of Matern-5/2 with a length scale for each of 8 features from 2,000 rows, no restarts on either side."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2_000, 8))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * X[:, 3] ** 2 + 0.1 * rng.standard_normal(2_000)
    y = (y - y.mean()) / y.std()
    ours = GaussianProcessRegressor("matern52", mean="zero", n_restarts=0)
    kernel = ConstantKernel() * SklearnMatern(np.ones(8), nu=2.5) + WhiteKernel()
    theirs = SklearnProcess(kernel, alpha=0.0)
    ours.fit(X[:600], y[:600])  # threads and caches are ready
    our_seconds = _seconds(lambda: ours.fit(X, y))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # parameters at their bounds
        their_seconds = _seconds(lambda: theirs.fit(X, y))
    found, expected = ours.log_marginal_likelihood_, theirs.log_marginal_likelihood_value_
    assert found >= expected - 1e-3, (found, expected)
    name = "GaussianProcessRegressor fit, n=2,000, d=8, ARD, at an equal or better likelihood"
    return [Row(name, "sklearn GaussianProcessRegressor", our_seconds, their_seconds, "s", target=8.0)]


def reference(names: tuple[str, ...] = tuple(REFERENCE)) -> bool:
    """Whether the exact posterior with published hyperparameters has the published numbers, to four digits."""
    met = True
    for name in names:
        data, given = split(name), published(name)
        if given is None:
            raise SystemExit("gp_hparams.json is not there: set MERCER_DATA to the folder of the data.")
        model = GaussianProcessRegressor(
            given.signal**2 * Matern(1.5, tuple(given.length_scale)),
            mean="zero",
            noise=given.noise**2,
            method="exact",
            tune=False,
            standardize=False,
        )
        started = time.perf_counter()
        model.fit(data.X.astype(np.float64), data.y.astype(np.float64))
        fitted = time.perf_counter()
        held = model.calibration(data.X_test.astype(np.float64), data.y_test.astype(np.float64), levels=[0.95])
        done = time.perf_counter()
        found = (held.rmse, held.nll, float(held.coverage[0]), -model.log_marginal_likelihood_ / len(data.y))
        same = all(abs(a - b) < tolerance for a, b, tolerance in zip(found, REFERENCE[name], DIGITS, strict=True))
        met &= same
        numbers = "  ".join(f"{value:8.4f}" for value in found)
        times = f"fit {fitted - started:.0f} s, predict {done - fitted:.0f} s"
        print(f"{name:10} n={len(data.y):6,}  {numbers}  {times}  {'same' if same else 'DIFFERENT'}", flush=True)
    return met


def _seconds(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(0 if reference(tuple(sys.argv[1:]) or tuple(REFERENCE)) else 1)
