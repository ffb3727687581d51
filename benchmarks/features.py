"""Explicit features and kernel PCA against scikit-learn: `transform` of 50,000 rows, and 10 components of 5,000."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from sklearn.decomposition import KernelPCA as SklearnKernelPCA
from sklearn.kernel_approximation import Nystroem, RBFSampler

from benchmarks import Row, compare
from mercer import KernelPCA, NystromFeatures, RandomFourierFeatures
from mercer.core import blocks
from mercer.kernels import Gaussian

GAMMA = 0.05


def run() -> list[Row]:
    rows = [_fourier(100, "float64"), _fourier(1000, "float64"), _fourier(1000, "float32")]
    rows += [_nystrom(100, "float64"), _nystrom(100, "float32"), _nystrom(500, "float64")]
    with _new_memory():
        rows += [replace(_nystrom(100, dtype), target=None) for dtype in ("float64", "float32")]
        rows[-2:] = [replace(row, name=f"{row.name}, kept") for row in rows[-2:]]
    return [*rows, _kernel_pca("auto"), _kernel_pca("arpack")]


@contextmanager
def _new_memory() -> Iterator[None]:
    """As where every result is kept: freed memory is not used again."""
    usual, blocks.KEPT_BYTES = blocks.KEPT_BYTES, 0
    try:
        yield
    finally:
        blocks.KEPT_BYTES = usual


def _data(n: int, dtype: str = "float64") -> np.ndarray:
    return np.random.default_rng(0).standard_normal((n, 10)).astype(dtype)


def _fourier(p: int, dtype: str) -> Row:
    X = _data(50_000 if p < 1000 else 10_000, dtype)
    ours = RandomFourierFeatures(p, Gaussian.from_gamma(GAMMA)).fit(X)
    theirs = RBFSampler(gamma=GAMMA, n_components=p, random_state=0).fit(X)
    return compare(
        f"Fourier features transform, n={len(X):,}, p={p:,}, {dtype}",
        "sklearn RBFSampler",
        lambda: ours.transform(X),
        lambda: theirs.transform(X),
        target=3.0 if dtype == "float64" else None,
    )


def _nystrom(p: int, dtype: str) -> Row:
    X = _data(50_000 if p == 100 else 10_000, dtype)
    theirs = Nystroem(gamma=GAMMA, n_components=p, random_state=0).fit(X)
    ours = NystromFeatures(kernel=Gaussian.from_gamma(GAMMA), landmarks=theirs.components_).fit(X)
    few = X[:500]
    difference = np.abs(_products(ours.transform(few)) - _products(theirs.transform(few))).max()
    assert difference < (1e-8 if dtype == "float64" else 1e-2), difference
    return compare(
        f"Nyström features transform, n={len(X):,}, p={p}, {dtype}",
        "sklearn Nystroem",
        lambda: ours.transform(X),
        lambda: theirs.transform(X),
        target=3.0 if p == 100 else None,  # beyond, both spend their time in the same matrix product
    )


def _products(phi: np.ndarray) -> np.ndarray:
    return phi @ phi.T


def _kernel_pca(eigen_solver: str) -> Row:
    X = _data(5_000)
    ours = KernelPCA(10, Gaussian.from_gamma(GAMMA))
    theirs = SklearnKernelPCA(10, kernel="rbf", gamma=GAMMA, eigen_solver=eigen_solver, random_state=0)
    difference = np.abs(np.abs(ours.fit_transform(X)) - np.abs(theirs.fit_transform(X))).max()
    assert difference < 1e-8, difference
    peer = "sklearn KernelPCA" + ("" if eigen_solver == "auto" else f", {eigen_solver}")
    return compare(
        "KernelPCA fit_transform, 10 of n=5,000",
        peer,
        lambda: ours.fit_transform(X),
        lambda: theirs.fit_transform(X),
        target=10.0 if eigen_solver == "auto" else 1.0,
        rounds=1 if eigen_solver == "auto" else 3,
        repeats=1,
        warm_up=False,
    )
