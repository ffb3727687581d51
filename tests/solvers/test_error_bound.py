"""The law of `error_bound`: it bounds the error at the rows, and it does not cry wolf."""

from __future__ import annotations

import warnings

import mpmath as mp
import numpy as np
import pytest
import torch

from mercer import KernelRidge, load
from mercer.core.results import SolverReport
from mercer.kernels import Gaussian, Laplace, Linear, Matern, Polynomial
from mercer.rows import ArrayRows
from mercer.solvers.dials import ALLOWED
from mercer.solvers.error_bound import Moments, landmark_bound, row_bound

LANDMARKS = ("nystrom", "falkon")
RIDGES = (1e-8, 1e-6, 1e-4, 1e-2, 1.0)
KERNELS = (Gaussian(1.0), Laplace(2.0), Matern(nu=1.5, length_scale=2.0), Matern(nu=2.5, length_scale=1.0), Linear())


def rows(n, d, seed, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(dtype)
    return X, np.sin(X.astype(float).sum(1)) + 0.2 * rng.normal(size=n) + 3.0


def fitted(kernel, X, y, alpha, solver, **options):
    landmarks = {"landmarks": X} if solver in LANDMARKS else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        textbook = {"fit_intercept": False} | options
        return KernelRidge(kernel, alpha=alpha, solver=solver, **landmarks, **textbook).fit(X, y)


def distance(values, reference, y):
    return float(np.linalg.norm(values - reference) / len(y) ** 0.5 / y.std())


def exact_ridge(X, y, alpha):
    """Of the polynomial kernel (1 + x z)^4, with eighty digits."""
    with mp.workdps(80):
        points = [[mp.mpf(float(v)) for v in x] for x in X]
        K = mp.matrix([[(1 + mp.fdot(a, b)) ** 4 for b in points] for a in points])
        c = mp.lu_solve(K + mp.mpf(alpha) * mp.eye(len(y)), mp.matrix(y.tolist()))
        return np.array([float(v) for v in K * c])


@pytest.mark.parametrize("solver", [*LANDMARKS, "cholesky"])
@pytest.mark.parametrize("alpha", [1e-10, 1e-12])
def test_rows_that_are_closer_than_rounding_do_not_hide_an_error(solver, alpha):
    for d, n, scale in [(2, 4, 10.0), (3, 4, 30.0), (3, 8, 10.0), (2, 8, 1.0)]:
        rng = np.random.default_rng(1)
        X, y = rng.normal(size=(n, d)) * scale, rng.normal(size=n)
        X[1] = X[0] + 1e-9
        model = fitted(Polynomial(4), X, y, alpha, solver)
        error, report = distance(model.predict(X), exact_ridge(X, y, alpha), y), model.solver_report_
        assert not report.converged or error <= min(report.error_bound, ALLOWED), (d, n, scale)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", KERNELS)
def test_ordinary_fits_converge_and_keep_their_bound(kernel, dtype):
    for d in (2, 6):
        X, y = rows(150, d, seed=d, dtype=dtype)
        K = kernel(torch.tensor(X).double()).numpy()
        values, vectors = np.linalg.eigh(K)
        for alpha in RIDGES:
            share = values.clip(0) / (values.clip(0) + alpha)
            reference = vectors @ (share * (vectors.T @ y))
            rounding = 30 * 2.2e-16 * values[-1] / alpha
            for solver in ("cholesky", "eigh", "pcg", *LANDMARKS):
                model = fitted(kernel, X, y, alpha, solver, **({"tol": 1e-5} if solver in ("pcg", "falkon") else {}))
                error, report = distance(K @ model.dual_coef_, reference, y), model.solver_report_
                assert error <= report.error_bound + rounding, (solver, alpha, d)
                if dtype == np.float32 and solver == "falkon" and alpha < 1e-7:
                    continue  # float32 products alone may be off by a thousandth there, as the processor adds them up
                assert report.error_bound <= ALLOWED, (solver, alpha, d)
                assert report.converged, (solver, alpha, d, str(report))


@pytest.mark.parametrize("solver", ["nystrom", "random_features"])
def test_sums_in_memory_streamed_and_continued_have_one_bound(solver):
    X, y = rows(300, 3, seed=0)
    options = {"landmarks": X[:40]} if solver == "nystrom" else {"n_features": 40}
    new = lambda: KernelRidge(Gaussian(2.0), alpha=1e-6, solver=solver, random_state=0, **options)  # noqa: E731
    parts = new()
    for start in range(0, 300, 100):
        parts.partial_fit(X[start : start + 100], y[start : start + 100])
    bounds = [m.solver_report_.error_bound for m in (new().fit(X, y), new().fit(ArrayRows(X, y)), parts)]
    assert 0 < bounds[0] < ALLOWED
    np.testing.assert_allclose(bounds, bounds[0], rtol=0.3)


def test_the_residual_of_any_iterate_bounds_its_error():
    generator = torch.Generator().manual_seed(0)
    for seed in range(50):
        Phi = torch.randn(60, 8, generator=generator, dtype=torch.float64) * torch.logspace(0, -seed % 9, 8)
        y = torch.randn(60, 1, generator=generator, dtype=torch.float64)
        alphas = torch.full((1,), 10.0 ** -(seed % 11)).double()
        G = Phi.T @ Phi
        exact = torch.linalg.solve(G + alphas * torch.eye(8).double(), Phi.T @ y)
        u = exact + torch.randn(8, 1, generator=generator, dtype=torch.float64)
        missed = (Phi.T @ y - G @ u - alphas * u).norm(dim=0) / (2 * alphas.sqrt())
        moments, squares = Moments.of(y), G.diagonal()
        bound = landmark_bound(moments, None, u, alphas, squares, missed, (u * (Phi.T @ y)).sum(0), squares.sqrt())
        assert moments.share((Phi @ (u - exact)).norm(dim=0)) <= bound
        K, c = Phi @ Phi.T, torch.randn(60, 1, generator=generator, dtype=torch.float64)
        residual = (y - K @ c - alphas * c).norm(dim=0) / y.norm(dim=0)
        assert moments.share((K @ c - Phi @ exact).norm(dim=0)) <= row_bound(moments, residual)


def test_a_residual_that_is_small_beside_a_large_mean_is_not_small_beside_the_spread():
    X, y = rows(400, 6, seed=3)
    model = fitted(Laplace(2.0), X, y + 1e5, 1e-2, "pcg", tol=1e-5)
    assert model.solver_report_.residual <= 1e-5
    assert not model.solver_report_.converged
    assert "of the spread of the targets" in model.solver_report_.reason


def test_weights_are_repeated_rows_in_the_bound():
    X, y = rows(60, 2, seed=4)
    repeats = np.random.default_rng(0).integers(1, 4, 60)
    for options in ({"solver": "nystrom", "landmarks": X[:20]}, {"solver": "cholesky"}):
        weighted = KernelRidge(Laplace(), alpha=1e-3, **options).fit(X, y, sample_weight=repeats)
        repeated = KernelRidge(Laplace(), alpha=1e-3, **options).fit(X.repeat(repeats, 0), y.repeat(repeats))
        assert weighted.solver_report_.error_bound == pytest.approx(
            repeated.solver_report_.error_bound, rel=3, abs=1e-12
        )


def test_no_bound_is_known_without_a_ridge_on_landmarks_nor_where_rows_were_held_out():
    X, y = rows(80, 2, seed=5)
    assert fitted(Laplace(), X, y, 0.0, "nystrom").solver_report_.error_bound is None
    assert fitted(Laplace(), X, y, 0.0, "eigenpro").solver_report_.error_bound is None
    assert fitted(Laplace(), X, y, 1.0, "gd").solver_report_.error_bound is not None
    assert fitted(Laplace(), X, y * 1e200, 1.0, "nystrom").solver_report_.error_bound is None
    assert fitted(Laplace(), X, y * 1e200, 1.0, "cholesky").solver_report_.error_bound < 1e-9


def test_the_bound_is_told_where_it_says_something_and_kept_in_files(tmp_path):
    assert "error < 2e-04" in str(SolverReport("nystrom", True, 1e-16, error_bound=2e-4))
    assert "error" not in str(SolverReport("nystrom", True, 1e-16, error_bound=2e-9))
    X, y = rows(50, 2, seed=6)
    model = fitted(Laplace(), X, y, 1e-3, "nystrom")
    model.save(tmp_path / "model.safetensors")
    assert load(tmp_path / "model.safetensors").solver_report_ == model.solver_report_
