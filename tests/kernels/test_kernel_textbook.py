"""Textbook facts: explicit features, reproducing kernels of spans, and what is not positive definite."""

from __future__ import annotations

from itertools import combinations
from math import comb, sqrt

import numpy as np
import pytest
import torch

from mercer.core.errors import InputTypeError
from mercer.kernels import (
    AllSubsets,
    Brownian,
    Categorical,
    ExponentialPower,
    FeatureMap,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Spectrum,
    WhiteNoise,
)
from mercer.operators import gram

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(8, 4)), rng.normal(size=(5, 4))


def test_all_subsets_equals_the_products_of_all_sets_of_coordinates():
    def features(A):
        subsets = [s for size in range(5) for s in combinations(range(4), size)]
        return np.column_stack([A[:, list(s)].prod(1) for s in subsets])

    assert features(X).shape == (8, 16)
    np.testing.assert_allclose(AllSubsets()(X, Z), features(X) @ features(Z).T, rtol=1e-10)


def test_a_polynomial_equals_its_explicit_features():
    def features(x):
        return torch.stack([sqrt(comb(3, j) * 0.5**j * 2.0 ** (3 - j)) * x[:, 0] ** j for j in range(4)], dim=1)

    explicit = FeatureMap(features)
    np.testing.assert_allclose(
        explicit(X[:, :1], Z[:, :1]), Polynomial(3, scale=0.5, offset=2.0)(X[:, :1], Z[:, :1]), rtol=1e-12, atol=1e-12
    )


def test_a_quadratic_in_two_variables_equals_its_explicit_features():
    def features(x):
        a, b = x[:, 0], x[:, 1]
        return torch.stack([a * a, b * b, sqrt(2) * a * b, sqrt(2) * a, sqrt(2) * b, torch.ones_like(a)], dim=1)

    np.testing.assert_allclose(FeatureMap(features)(X[:, :2]), Polynomial(2)(X[:, :2]), rtol=1e-12)


def test_the_inverse_gram_matrix_gives_the_reproducing_kernel_of_a_span():
    nodes, weights = np.polynomial.legendre.leggauss(20)

    def monomials(x):
        return x[:, :1] ** torch.arange(4, dtype=x.dtype)

    features = monomials(torch.from_numpy(nodes)[:, None]).numpy()
    G = features.T @ (weights[:, None] * features)  # inner products in L2(-1, 1)
    kernel = FeatureMap(monomials, metric=np.linalg.inv(G))
    points = np.array([[-0.7], [0.1], [0.9]])
    cubic = np.polynomial.Polynomial([0.3, -1.0, 2.0, 0.5])
    reproduced = kernel(points, nodes[:, None]) @ (weights * cubic(nodes))
    np.testing.assert_allclose(reproduced, cubic(points[:, 0]), rtol=1e-10)
    quartic = nodes**4
    assert np.abs(kernel(points, nodes[:, None]) @ (weights * quartic) - points[:, 0] ** 4).max() > 1e-2


def test_a_feature_map_has_the_rank_of_its_features():
    kernel = FeatureMap(lambda x: torch.stack([x[:, 0], x[:, 1], x[:, 0] + x[:, 1]], dim=1))
    assert np.linalg.matrix_rank(kernel(X)) == 2


def test_the_radius_feature_separates_concentric_circles():
    angle = np.linspace(0, 6, 20)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    radius = FeatureMap(lambda x: x.square().sum(1))
    K = radius(np.vstack([circle, 3 * circle]))
    assert np.linalg.matrix_rank(K) == 1
    assert K[:20, :20].max() < K[20:, 20:].min()


def test_periodic_is_positive_semi_definite_in_several_columns_where_the_distance_form_is_not():
    grid = np.stack(np.meshgrid(np.arange(6), np.arange(6)), axis=-1).reshape(-1, 2) / 3.0
    r = np.linalg.norm(grid[:, None] - grid[None], axis=2)
    of_distance = np.exp(-2 * np.sin(np.pi * r / 2.0) ** 2)
    assert np.linalg.eigvalsh(of_distance)[0] < -0.01
    assert np.linalg.eigvalsh(Periodic(period=2.0)(grid))[0] > -1e-12


def test_periodic_repeats_after_each_period_also_far_away():
    kernel = Periodic(0.7, period=(0.1, 2.0, 3.0, 0.25))
    moved = X + np.array([3 * 0.1, -2.0, 300.0, 0.25])
    np.testing.assert_allclose(kernel(moved, Z), kernel(X, Z), rtol=0, atol=1e-13)
    single = torch.tensor([[0.25], [0.5], [1e4 + 0.25]], dtype=torch.float32)
    np.testing.assert_allclose(Periodic(period=1.0)(single)[2], Periodic(period=1.0)(single)[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("power", [2.2, 3.0])
def test_powers_above_two_are_not_positive_definite_which_is_why_they_are_rejected(power):
    x = np.linspace(0, 3, 30)[:, None]
    assert np.linalg.eigvalsh(np.exp(-(np.abs(x - x.T) ** power)))[0] < -1e-8
    assert np.linalg.eigvalsh(ExponentialPower(power=2.0)(x))[0] > -1e-10


def test_brownian_is_the_covariance_of_sums_of_independent_steps():
    times = np.array([0.0, 0.5, 2.0, 3.0])[:, None]
    steps = np.diff(times[:, 0], prepend=0.0)
    sums = np.tril(np.ones((4, 4)))
    np.testing.assert_allclose(Brownian()(times), sums @ np.diag(steps) @ sums.T)


def test_the_brownian_sheet_is_a_product_over_columns():
    A, B = np.abs(X[:, :2]), np.abs(Z[:, :2])
    expected = np.minimum(A[:, None, 0], B[None, :, 0]) * np.minimum(A[:, None, 1], B[None, :, 1])
    np.testing.assert_allclose(Brownian()(A, B), expected)


def test_white_noise_is_on_rows_of_one_sample_not_on_equal_rows():
    same = np.zeros((3, 2))
    np.testing.assert_array_equal(WhiteNoise(0.5)(same), 0.5 * np.eye(3))
    np.testing.assert_array_equal(WhiteNoise(0.5)(same, same), np.zeros((3, 3)))
    np.testing.assert_array_equal(WhiteNoise(0.5).diag(same), np.full(3, 0.5))


def test_laplace_in_one_dimension_has_a_tridiagonal_inverse():
    x = np.sort(rng.uniform(0, 5, 8))[:, None]
    inverse = np.linalg.inv(Laplace()(x))
    far = np.abs(np.subtract.outer(np.arange(8), np.arange(8))) > 1
    assert np.abs(inverse[far]).max() < 1e-9 * np.abs(inverse).max()


def test_from_sobolev_has_the_order_asked_for():
    assert Matern.from_sobolev(3, 2) == Matern(nu=2.0)
    assert Matern.from_sobolev(2.5, 3, length_scale=0.5) == Matern(nu=1.0, length_scale=0.5)


def test_gaussian_taylor_features_converge_to_the_kernel():
    from math import factorial

    gamma = 0.5

    def features(x):
        return torch.stack(
            [
                torch.exp(-gamma * x[:, 0] ** 2) * x[:, 0] ** j * sqrt((2 * gamma) ** j / factorial(j))
                for j in range(40)
            ],
            dim=1,
        )

    np.testing.assert_allclose(FeatureMap(features)(X[:, :1]), Gaussian.from_gamma(gamma)(X[:, :1]), rtol=0, atol=1e-10)


def test_the_linear_kernel_is_the_inner_product():
    np.testing.assert_allclose(Linear(bias=2.0)(X, Z), X @ Z.T + 2.0)


def test_spectrum_counts_shared_substrings():
    # bigrams: "abab" has ab twice and ba once, "aba" has ab and ba once
    np.testing.assert_array_equal(Spectrum(2, normalised=False)(["abab", "aba"]), [[5.0, 3.0], [3.0, 2.0]])
    np.testing.assert_allclose(Spectrum(2)(["abab"], ["aba"]), [[3 / sqrt(10)]])


def test_categorical_counts_the_columns_that_differ():
    rng = np.random.default_rng(0)
    X, Z = rng.integers(0, 5, (7, 2)).astype(float), rng.integers(0, 5, (6, 2)).astype(float)
    scales = np.array([0.5, 2.0])
    codes = [np.where(A < [3, 4], A, -1) for A in (X, Z)]  # all unknown codes are one level
    differ = codes[0][:, None] != codes[1][None]
    kernel = Categorical((3, 4), tuple(scales))
    np.testing.assert_allclose(kernel(X, Z), np.exp(-(differ / scales).sum(2)), rtol=1e-12)
    np.testing.assert_allclose(gram(kernel, X, Z).dense(), kernel(X, Z), rtol=1e-12)
    slopes = torch.tensor(scales, requires_grad=True)
    kernel.replace(length_scale=slopes)(torch.tensor(X)).sum().backward()
    step = 1e-6 * np.eye(2)
    found = [
        (Categorical((3, 4), tuple(scales + s))(X).sum() - Categorical((3, 4), tuple(scales - s))(X).sum()) / 2e-6
        for s in step
    ]
    np.testing.assert_allclose(slopes.grad.numpy(), found, rtol=1e-6)


@pytest.mark.parametrize("levels", [0, 1.5, (), (2, 0), True, "many"])
def test_categorical_needs_whole_numbers_of_levels(levels):
    with pytest.raises(InputTypeError, match="n_levels"):
        Categorical(levels)
