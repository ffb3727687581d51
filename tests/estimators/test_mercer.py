"""Laws of the Mercer decomposition on a sample."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import KernelRidge, MercerDecomposition
from mercer.core.errors import InputError
from mercer.kernels import Brownian, Gaussian, Laplace, Linear

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 2))
new = rng.normal(size=(20, 2))


@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_eigenfunctions_solve_their_equation_and_are_orthonormal_on_the_sample(solver):
    mercer = MercerDecomposition(8, Laplace(2.0), solver=solver).fit(X)
    psi, kernel = mercer.eigenfunctions(X), Laplace(2.0)
    np.testing.assert_allclose(psi.T @ psi / 120, np.eye(8), atol=1e-9)
    for points in (X, new):
        applied = kernel(points, X) @ psi / 120
        np.testing.assert_allclose(applied, mercer.eigenfunctions(points) * mercer.eigenvalues_, atol=1e-9)


def test_the_kernel_is_recovered_as_the_sum_converges():
    errors = [MercerDecomposition(q, Gaussian(1.5)).fit(X).approximation_error(new).max for q in (2, 8, 30, 90)]
    assert errors[0] > errors[1] > errors[2] > errors[3]
    assert errors[3] < 1e-3
    whole = MercerDecomposition(None, Laplace(1.0)).fit(X)
    assert whole.approximation_error(X).max < 1e-8
    assert whole.eigenvalues_.sum() == pytest.approx(whole.trace_)


def test_eigenvalues_of_brownian_motion_tend_to_those_of_the_integral_operator():
    """On the uniform distribution of [0, 1] they are 1 / ((s - 1/2)^2 pi^2), with sines for eigenfunctions."""
    t = (np.arange(1000) + 0.5) / 1000
    mercer = MercerDecomposition(4, Brownian()).fit(t.reshape(-1, 1))
    s = np.arange(1, 5)
    np.testing.assert_allclose(mercer.eigenvalues_, 1 / ((s - 0.5) ** 2 * np.pi**2), rtol=1e-3)
    exact = np.sqrt(2) * np.sin(np.outer(t, (s - 0.5) * np.pi))
    psi = mercer.eigenfunctions(t.reshape(-1, 1))
    np.testing.assert_allclose(psi * np.sign((psi * exact).sum(0)), exact, atol=5e-3)


@pytest.mark.parametrize("theta", [0.0, 0.5, 1.0, 2.0])
def test_powers_of_the_kernel_have_powers_of_the_eigenvalues(theta):
    mercer = MercerDecomposition(None, Laplace(2.0)).fit(X)
    psi = mercer.eigenfunctions(X)
    K = mercer.power(theta)(X)
    np.testing.assert_allclose(K, (psi * mercer.eigenvalues_**theta) @ psi.T, atol=1e-7)
    if theta == 1.0:
        np.testing.assert_allclose(K, Laplace(2.0)(X), atol=1e-8)
    if theta == 2.0:
        np.testing.assert_allclose(K, Laplace(2.0)(X) @ Laplace(2.0)(X) / 120, atol=1e-8)


def test_paths_of_the_process_are_not_in_its_rkhs_but_in_a_power_space():
    """E f^T K^-1 f = n for draws f of the process: the norm grows with n; in a power space below one it does not."""

    def squared_norm(n, theta):
        rows = np.random.default_rng(1).uniform(size=(n, 1))
        mercer = MercerDecomposition(None, Brownian() + 1e-12).fit(rows)
        psi, values = mercer.eigenfunctions(rows), mercer.eigenvalues_
        draws = np.random.default_rng(2).normal(size=(len(values), 200))
        coefficients = np.sqrt(values)[:, None] * draws
        return float((coefficients**2 / (values**theta)[:, None]).sum(0).mean()), psi

    assert squared_norm(40, 1.0)[0] == pytest.approx(40, rel=0.1)
    assert squared_norm(160, 1.0)[0] == pytest.approx(160, rel=0.1)
    assert squared_norm(160, 0.25)[0] < 1.3 * squared_norm(40, 0.25)[0]


def test_a_power_is_a_kernel_for_regression():
    mercer = MercerDecomposition(30, Gaussian(1.0)).fit(X)
    model = KernelRidge(mercer.power(1.0), alpha=1e-3).fit(X, np.sin(X).sum(1))
    exact = KernelRidge(Gaussian(1.0), alpha=1e-3).fit(X, np.sin(X).sum(1))
    assert np.abs(model.predict(X) - exact.predict(X)).max() < 0.05


def test_there_are_no_more_eigenvalues_than_the_rank():
    mercer = MercerDecomposition(10, Linear()).fit(X)
    assert mercer.eigenvalues_.shape == (2,)
    assert mercer.transform(X).shape == (120, 2)
    np.testing.assert_allclose(mercer.eigenvalues_, np.linalg.eigvalsh(X.T @ X / 120)[::-1])
    assert MercerDecomposition(10, "gaussian").fit(X[:3]).transform(X).shape == (120, 3)


def test_the_plot_shows_the_spectrum():
    mercer = MercerDecomposition(12, "gaussian").fit(X)
    ax = mercer.plot()
    np.testing.assert_allclose(ax.lines[0].get_ydata(), mercer.eigenvalues_)
    assert ax.get_yscale() == "log"
    assert "of the trace" in ax.get_legend().get_texts()[0].get_text()


def test_a_negative_power_is_refused():
    mercer = MercerDecomposition(n_components=3).fit(X)
    for theta in (-1.0, float("nan"), "x"):
        with pytest.raises(InputError, match="theta"):
            mercer.power(theta)
