"""How many rows a problem needs: dimensions, bounds, rates, and the exact risk of a design."""

import numpy as np
import pytest

from mercer import KernelRidge
from mercer.core.errors import InputError
from mercer.kernels import Gaussian, Laplace, Linear
from mercer.theory import (
    curse_of_dimensionality,
    degree_reached,
    dimension_lower_bound,
    effective_dimension,
    exact_risk,
    krr_risk,
    minimax_rate,
    project_degree,
    universality,
)


def test_the_effective_dimension_does_not_turn_or_scale_with_the_data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6)) * [3, 2, 1, 1, 0.5, 0.1]
    turn, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    assert np.isclose(effective_dimension(X), effective_dimension(7 * X @ turn + 5))
    assert 1 <= effective_dimension(X) <= 6
    assert np.isclose(effective_dimension(X[:3]), effective_dimension(np.hstack([X[:3], np.zeros((3, 50))])))


@pytest.mark.parametrize("d", [2, 3, 7, 10, 30])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_the_degree_is_reached_at_the_power_and_not_before(d, k):
    assert degree_reached(d**k, d) == k
    assert degree_reached(d**k - 1, d) == k - 1


def test_no_kernel_learns_parities_from_fewer_rows_than_there_are():
    corners = 2 * ((np.arange(64)[:, None] >> np.arange(6)) & 1) - 1
    parities = [lambda x, s=s: np.prod(x[:, s], axis=1) for s in ([0, 1], [2, 3], [0, 5], [1, 2, 3], [4])]
    assert dimension_lower_bound(parities, 0.0, population=corners) == 5
    assert dimension_lower_bound(np.eye(5), 0.4) == 3


def test_the_bound_holds_for_a_kernel_that_knows_the_functions():
    """The best kernel for M orthonormal functions has error 1 - n/M on the average with n rows: the bound is tight."""
    M, n = 60, 24
    error = np.mean([krr_risk(np.ones(M), np.eye(M)[i], n, 0.0).risk for i in range(3)])
    assert dimension_lower_bound(np.eye(M), error) == n


def test_functions_that_are_not_of_norm_one_are_refused_as_a_gram_matrix():
    with pytest.raises(InputError, match="norm"):
        dimension_lower_bound(2 * np.eye(3), 0.1)


def test_rates_are_those_stated():
    assert minimax_rate(1, 1).exponent == 2 / 3
    assert minimax_rate(2, 6, "notes").exponent == 0.25
    assert minimax_rate(1, 20, "lipschitz").exponent == 0.05
    rate = minimax_rate(3, 5)
    assert np.isclose(rate(rate.rows_for(0.2)), 0.2)
    with pytest.raises(InputError, match="Lipschitz"):
        minimax_rate(2, 3, "lipschitz")


def test_dimensions_are_a_curse():
    rows = list(curse_of_dimensionality().values())
    assert rows == sorted(rows)
    assert rows[-1] > 1e50


def test_bias_and_variance_of_a_design_are_those_of_many_fits():
    rng = np.random.default_rng(0)
    X, grid = rng.uniform(-1, 1, (25, 1)), np.linspace(-1, 1, 200)[:, None]
    kernel, alpha, noise = Gaussian(0.4), 0.05, 0.3

    def target(x):
        return np.sin(4 * x[:, 0])

    found = exact_risk(kernel, X, target, grid, alpha, noise)
    A = np.linalg.inv(kernel(X) + alpha * np.eye(25))
    labels = target(X)[:, None] + np.sqrt(noise) * rng.standard_normal((25, 4000))
    fits = kernel(grid, X) @ A @ labels
    assert np.isclose(((fits.mean(1) - target(grid)) ** 2).mean(), found.bias, rtol=0.1)
    assert np.isclose(fits.var(1).mean(), found.variance, rtol=0.03)
    M, u = kernel(X, grid) @ kernel(grid, X) / 200, kernel(X, grid) @ target(grid) / 200
    f = target(X)
    assert np.isclose(found.bias, f @ A @ M @ A @ f - 2 * u @ A @ f + (target(grid) ** 2).mean(), atol=1e-8)
    assert np.isclose(found.variance, noise * np.trace(A @ M @ A))


def test_the_exact_risk_of_random_designs_is_what_is_expected():
    rng = np.random.default_rng(0)
    p, n = 150, 100
    population, v = rng.standard_normal((2000, p)), rng.standard_normal(p) / np.sqrt(p)
    found = [
        exact_risk(Linear(), rng.standard_normal((n, p)), lambda x: x @ v, population, 20.0, 0.5) for _ in range(30)
    ]
    expected = krr_risk(np.ones(p), v, n, 20.0, 0.5)
    assert np.isclose(np.mean([f.bias for f in found]), expected.bias, rtol=0.06)
    assert np.isclose(np.mean([f.variance for f in found]), expected.variance, rtol=0.06)


def test_data_behave_like_gaussian_features():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (600, 10))
    found = universality(Laplace(3.0), X, X[:, 0] + X[:, 1] * X[:, 2], n=[60, 120], alpha=1.0, repeats=20)
    assert (np.abs(found.difference) < 0.06).all()
    assert np.allclose(found.gaussian.mean(1), found.expected, rtol=0.05)


def test_pictures_show_the_target_and_the_part_of_a_degree():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (200, 1))
    found = KernelRidge("gaussian").fit(X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=200)).samples_needed(0.31)
    ax = found.plot()
    assert any(np.allclose(line.get_ydata(), 0.31) for line in ax.lines)
    assert "target" in [text.get_text() for text in ax.get_legend().get_texts()]
    line = project_degree(lambda Z: Z[:, 0], 1, 5, draws=2000, random_state=0).plot().lines[0]
    np.testing.assert_allclose(line.get_ydata(), np.cos(line.get_xdata()), atol=0.1)
