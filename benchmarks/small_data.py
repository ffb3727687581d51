"""Where most users are: processes and ridge regression on 30 to 1,000 rows of 5 features against scikit-learn.

Learning without restarts on both sides, at an equal or better likelihood; the default of mercer follows restarts, too.
Where BoTorch is installed, its processes on 10 to 100 rows of 2 and 6 features, which have priors on their parameters.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from sklearn.gaussian_process import GaussianProcessRegressor as SklearnProcess
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel
from sklearn.gaussian_process.kernels import Matern as SklearnMatern
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge

from benchmarks import Row, compare
from mercer import GaussianProcessRegressor, KernelRidge
from mercer.kernels import Gaussian

FASTER = {30: 1.0, 100: 2.0, 200: 2.0, 500: 4.0, 1000: 4.0}
"""Ratios asked of learning without restarts, by rows; with restarts a third of them."""
RIDGE = {100: 1 / 2, 500: 1.0, 1000: 1.0}
LIKELIHOOD = 1e-3
"""How far below the other log likelihood counts as equal."""


def run() -> Iterator[Row]:
    for n, target in FASTER.items():
        yield from _processes(n, target)
    for n, target in RIDGE.items():
        yield from _ridge(n, target)
    if find_spec("botorch") is not None:
        for d in (2, 6):
            for n in (10, 30, 100):
                yield from _botorch(n, d)


def _data(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 5))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)
    return X, (y - y.mean()) / y.std()


def _processes(n: int, target: float) -> Iterator[Row]:
    X, y = _data(n)
    kernel = ConstantKernel() * SklearnMatern(np.ones(5), nu=2.5) + WhiteKernel()
    theirs = SklearnProcess(kernel, alpha=0.0)
    once, often = (GaussianProcessRegressor("matern52", mean="zero", **options) for options in ({"n_restarts": 0}, {}))
    fast = {"rounds": 1 if n >= 500 else 2, "repeats": 1 if n >= 500 else 3, "warm_up": n < 500}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # parameters at their bounds
        for model, words, ratio in ((once, "no restarts", target), (often, "default restarts", target / 3)):
            row = compare(
                f"process, fit, n={n:,}, {words}",
                "GaussianProcessRegressor",
                lambda: model.fit(X, y),  # noqa: B023
                lambda: theirs.fit(X, y),
                target=ratio,
                **fast,
            )
            found, expected = model.log_marginal_likelihood_, theirs.log_marginal_likelihood_value_
            less = "" if found >= expected - LIKELIHOOD else f", likelihood {expected - found:.2f} LESS"
            yield Row(row.name + less, row.peer, row.ours, row.theirs, target=row.target)
    x = X[:1]
    if n != 500:
        yield _many(
            f"process, one row with deviation, n={n:,}",
            "GaussianProcessRegressor",
            lambda: once.predict(x, return_std=True),
            lambda: theirs.predict(x, return_std=True),
            1 / 3,
        )


def _botorch(n: int, d: int) -> Iterator[Row]:
    rng = np.random.default_rng(n + d)
    X = rng.random((n, d))
    y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)
    y = (y - y.mean()) / y.std(ddof=1)
    expected = _likelihood(_fitted_by_botorch(X, y), y)
    for words, options in (("no restarts", {"n_restarts": 0}), ("default restarts", {})):
        model = GaussianProcessRegressor("gaussian", tune="ard", **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # parameters at their bounds
            row = compare(
                f"process, fit, n={n}, d={d}, {words}",
                "BoTorch",
                lambda: model.fit(X, y),  # noqa: B023
                lambda: _fitted_by_botorch(X, y),
                target=1.0 if words == "no restarts" else None,
                rounds=2,
                repeats=2,
            )
        less = expected - model.log_marginal_likelihood_
        words = f", likelihood {less:.2f} LESS" if less > LIKELIHOOD else ""
        yield Row(row.name + words, row.peer, row.ours, row.theirs, target=row.target)


def _fitted_by_botorch(X: np.ndarray, y: np.ndarray) -> Any:
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    model = SingleTaskGP(torch.from_numpy(X), torch.from_numpy(y).unsqueeze(1), outcome_transform=None)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def _likelihood(model: Any, y: np.ndarray) -> float:
    """The log marginal likelihood at what BoTorch found, without its priors."""
    model.train()
    with torch.no_grad():
        return float(model.likelihood(model(model.train_inputs[0])).log_prob(torch.from_numpy(y)))


def _ridge(n: int, target: float) -> Iterator[Row]:
    X, y = _data(n)
    ours = KernelRidge(Gaussian.from_gamma(0.2), alpha=0.1, fit_intercept=False)
    theirs = SklearnKernelRidge(alpha=0.1, kernel="rbf", gamma=0.2)
    yield _many(
        f"ridge, fit, n={n:,}", "KernelRidge", lambda: ours.fit(X, y), lambda: theirs.fit(X, y), target, 200 // n + 1
    )
    x = X[:1]
    yield _many(f"ridge, one row, n={n:,}", "KernelRidge", lambda: ours.predict(x), lambda: theirs.predict(x), 1 / 1.5)


def _many(
    name: str, peer: str, ours: Callable[[], object], theirs: Callable[[], object], target: float, count: int = 10
) -> Row:
    """The time of one of some calls in a row."""

    def repeated(job: Callable[[], object]) -> Callable[[], None]:
        def all_of_them() -> None:
            for _ in range(count):
                job()

        return all_of_them

    row = compare(name, peer, repeated(ours), repeated(theirs), target=target, rounds=3)
    return Row(name, peer, row.ours / count, row.theirs / count, target=target)
