"""Kernel ridge regression against scikit-learn: one fit with prediction, and a whole path of alphas."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.kernel_ridge import KernelRidge as SklearnKernelRidge
from sklearn.model_selection import GridSearchCV

from benchmarks import Row, compare
from mercer import KernelRidge
from mercer.kernels import Gaussian, Laplace


def run() -> list[Row]:
    return [_fit_predict("rbf"), _fit_predict("laplacian"), _alpha_path(), _mixed()]


def _data(n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)


def _fit_predict(kernel: str) -> Row:
    """Predictions at as many new rows as there are training rows."""
    X, y = _data(16_000, 10)
    X, X_new, y = X[:8_000], X[8_000:], y[:8_000]
    own = Gaussian.from_gamma(0.1) if kernel == "rbf" else Laplace(10.0, metric="l1")
    ours = KernelRidge(own, alpha=0.1, fit_intercept=False)
    theirs = SklearnKernelRidge(alpha=0.1, kernel=kernel, gamma=0.1)
    difference = np.abs(ours.fit(X, y).predict(X_new) - theirs.fit(X, y).predict(X_new)).max()
    assert difference < 1e-8, difference
    return compare(
        f"KernelRidge fit + predict, n=8,000, d=10, {kernel}",
        "sklearn KernelRidge",
        lambda: ours.fit(X, y).predict(X_new),
        lambda: theirs.fit(X, y).predict(X_new),
        target=2.0 if kernel == "rbf" else None,
        repeats=1,
        warm_up=False,
    )


def _alpha_path() -> Row:
    X, y = _data(3_000, 10)
    alphas = np.geomspace(1e-6, 1e2, 30)
    ours = KernelRidge(Gaussian.from_gamma(0.1), alpha="loo", alphas=alphas, fit_intercept=False)
    theirs = GridSearchCV(SklearnKernelRidge(kernel="rbf", gamma=0.1), {"alpha": alphas}, cv=5)

    def search() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ill-conditioned systems at the smallest alphas
            theirs.fit(X, y)

    name, peer = "path of 30 alphas with LOO, n=3,000", "GridSearchCV, 5 folds"
    return compare(name, peer, lambda: ours.fit(X, y), search, target=10.0, rounds=1, repeats=1, warm_up=False)


def _mixed() -> Row:
    """A factor in float32 with refinement in float64 against one in float64, which is its reason to be."""
    X, y = _data(4_000, 10)
    mixed, full = (
        KernelRidge(Gaussian.from_gamma(0.1), alpha=1.0, fit_intercept=False, solver=solver)
        for solver in ("mixed_cholesky", "cholesky")
    )
    found, expected = (model.fit(X, y).dual_coef_ for model in (mixed, full))
    assert np.abs(found - expected).max() < 1e-8 * np.abs(expected).max()
    name = "KernelRidge fit, n=4,000, mixed_cholesky"
    return compare(name, "cholesky", lambda: mixed.fit(X, y), lambda: full.fit(X, y), repeats=1, warm_up=False)
