"""Facts about kernels, as data, and how they pass through algebra."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from mercer import RKHSFunction
from mercer.kernels import (
    AllSubsets,
    Brownian,
    Categorical,
    ChiSquared,
    Constant,
    Cosine,
    ExponentialPower,
    FeatureMap,
    Gaussian,
    InverseMultiquadric,
    Laplace,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Spectrum,
    Subspace,
    WhiteNoise,
)
from mercer.testing.examples import EXAMPLES, FUNCTION_KERNELS, VECTOR_KERNELS
from mercer.testing.samples import sample_for

yes, no = True, False
TABLE = [
    # kernel, stationary, characteristic, universal, bounded, smoothness, constants, controls, normalised
    (Gaussian(), yes, yes, yes, yes, math.inf, no, no, yes),
    (Laplace(), yes, yes, yes, yes, 0.5, no, None, yes),
    (Laplace(metric="l1"), yes, yes, yes, yes, None, no, None, yes),
    (ExponentialPower(power=1.4), yes, yes, yes, yes, 0.7, no, None, yes),
    (ExponentialPower(power=2), yes, yes, yes, yes, math.inf, no, None, yes),
    (Matern(0.5), yes, yes, yes, yes, 0.5, no, None, yes),
    (Matern(2.5), yes, yes, yes, yes, 2.5, no, no, yes),
    (Matern(math.inf), yes, yes, yes, yes, math.inf, no, no, yes),
    (RationalQuadratic(alpha=2.0), yes, yes, yes, yes, math.inf, no, no, yes),
    (RationalQuadratic(alpha=0.5), yes, yes, yes, yes, math.inf, no, yes, yes),
    (InverseMultiquadric(power=0.5), yes, yes, yes, yes, math.inf, no, yes, yes),
    (InverseMultiquadric(power=1), yes, yes, yes, yes, math.inf, no, None, yes),
    (InverseMultiquadric(power=1.5), yes, yes, yes, yes, math.inf, no, no, yes),
    (Periodic(), yes, no, no, yes, math.inf, yes, no, yes),
    (Linear(), no, no, no, no, math.inf, no, no, no),
    (Linear(bias=1.0), no, no, no, no, math.inf, yes, no, no),
    (Polynomial(), no, no, no, no, math.inf, yes, no, no),
    (Polynomial(offset=0.0), no, no, no, no, math.inf, no, no, no),
    (AllSubsets(), no, no, no, no, math.inf, yes, no, no),
    (Constant(), yes, no, no, yes, math.inf, yes, no, yes),
    (Constant(2.0), yes, no, no, yes, math.inf, yes, no, no),
    (Brownian(), no, None, no, no, None, no, None, no),
    (Categorical(3), no, None, None, yes, None, None, None, yes),
    (Cosine(), no, no, no, yes, None, no, no, None),
    (ChiSquared(), no, None, None, yes, None, None, no, yes),
    (WhiteNoise(2.0), None, None, None, yes, 0.0, no, None, no),
    (FeatureMap(abs), None, no, no, None, None, None, None, None),
    (Spectrum(), no, None, None, yes, None, None, None, no),
    (Precomputed(), None, None, None, None, None, None, None, None),
    (Gaussian() + Linear(), no, None, yes, no, math.inf, None, None, None),
    (Gaussian() + Laplace(), yes, yes, yes, yes, 0.5, None, None, no),
    (Gaussian() + 1.0, yes, yes, yes, yes, math.inf, yes, None, no),
    (Linear() + Polynomial(), None, None, None, no, math.inf, yes, None, None),
    (Gaussian() * Matern(1.5), yes, yes, yes, yes, 1.5, None, None, yes),
    (Gaussian() * Periodic(), yes, yes, yes, yes, math.inf, None, None, yes),
    (Periodic() * Periodic(2.0), yes, None, None, yes, math.inf, yes, None, yes),
    (Gaussian() * Linear(), no, None, None, no, math.inf, None, None, no),
    (Gaussian() * Constant(2.0), yes, yes, yes, yes, math.inf, None, None, no),
    (2.0 * Gaussian(), yes, yes, yes, yes, math.inf, no, no, no),
    (1.0 * Gaussian(), yes, yes, yes, yes, math.inf, no, no, yes),
    (2.0 * Linear(), no, no, no, no, math.inf, no, no, None),
    (Gaussian() ** 2, yes, yes, yes, yes, math.inf, None, None, yes),
    (Linear() ** 2, None, None, None, no, math.inf, None, None, no),
    (Gaussian() ** 1, yes, yes, yes, yes, math.inf, no, no, yes),
    (Subspace(Gaussian(), 0), yes, None, None, yes, math.inf, no, None, yes),
    (Subspace(Matern(1.5), 0), yes, None, None, yes, None, no, None, yes),
    (Subspace(Linear(), 0), no, no, no, no, math.inf, no, None, no),
    ((lambda X: X[:, 0]) * Gaussian(), None, None, None, None, None, None, None, None),
]
NAMES = (
    "stationary",
    "characteristic",
    "universal",
    "bounded",
    "smoothness",
    "contains_constants",
    "controls_convergence",
    "is_normalised",
)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: repr(row[0]))
def test_the_table_of_properties(row):
    kernel, *expected = row
    found = {name: getattr(kernel, name) for name in NAMES}
    assert found == dict(zip(NAMES, expected, strict=True))
    assert {name: getattr(kernel.properties, name) for name in NAMES} == found


def rows_for(kernel):
    return sample_for(kernel, 12, np.random.default_rng(0))


def claiming(fact, kernels):
    """The kernels of which the fact is said to hold or not to hold."""
    chosen = [k for k in kernels if getattr(k, fact) is not None and "median" not in repr(k)]
    return pytest.mark.parametrize("kernel", chosen, ids=repr)


@claiming("stationary", VECTOR_KERNELS + FUNCTION_KERNELS)
def test_what_is_called_stationary_does_not_change_under_a_shift_and_what_is_not_does(kernel):
    X = rows_for(kernel)
    moved = np.abs(kernel(X + 1.5) - kernel(X)).max()
    assert (moved < 1e-9) == kernel.stationary


@claiming("is_normalised", EXAMPLES)
def test_what_is_called_normalised_has_a_diagonal_of_ones_and_what_is_not_has_another(kernel):
    gap = np.abs(kernel.diag(rows_for(kernel)) - 1).max()
    assert (gap < 1e-12) == kernel.is_normalised


@claiming("bounded", VECTOR_KERNELS)
def test_what_is_called_bounded_is_bounded_far_away_and_what_is_not_grows(kernel):
    near = 1.0 + np.abs(rows_for(kernel))
    grows = bool((kernel.diag(1e3 * near) > 10 * kernel.diag(near)).any())
    assert grows == (not kernel.bounded)


@pytest.mark.parametrize("nu", [0.5, 0.8])
def test_the_smoothness_is_the_order_of_the_drop_at_zero(nu):
    h = 1e-5
    for kernel in (Matern(nu), ExponentialPower(power=2 * nu), Matern(nu) + Matern(2.5), Matern(nu) * Gaussian()):
        drops = [1 - kernel([[0.0]], [[step]])[0, 0] / kernel([[0.0]])[0, 0] for step in (h, 2 * h)]
        assert math.log2(drops[1] / drops[0]) == pytest.approx(2 * kernel.smoothness, abs=0.02)


def squared_norm_of_one(kernel, n):
    """The squared norm of the smallest function near 1 on n points of an interval of length n / 5: at most that of 1.

    |f|^2 + |f(X) - 1|^2 / e is smallest at 1^T (K + e I)^-1 1; e is far above what rounding does to K, unlike 1e-12.
    """
    X, ones = np.linspace(0.0, 4.0 * n / 20, n)[:, None], np.ones(n)
    return float(ones @ np.linalg.solve(kernel(X) + 1e-6 * np.eye(n), ones))


def test_the_norm_of_the_constant_stays_bounded_exactly_when_the_space_contains_it():
    for kernel in (Periodic(period=3.0), Gaussian() + 1.0, Linear(bias=1.0)):
        assert kernel.contains_constants
        assert squared_norm_of_one(kernel, 80) < 1.2 * squared_norm_of_one(kernel, 40)
    for kernel in (Laplace(), Gaussian(), Linear()):
        assert kernel.contains_constants is False
        assert squared_norm_of_one(kernel, 80) > 1.5 * squared_norm_of_one(kernel, 40)


def test_a_characteristic_kernel_tells_apart_what_a_polynomial_cannot():
    def squared_distance_of_means(kernel, x, p, q):
        K = kernel(torch.tensor(x, dtype=torch.float64)[:, None])
        difference = torch.tensor(p, dtype=torch.float64) - torch.tensor(q, dtype=torch.float64)
        return float(difference @ K @ difference)

    x = [-math.sqrt(2.0), -1.0, 0.0, 1.0, math.sqrt(2.0)]
    p, q = [0.25, 0.0, 0.5, 0.0, 0.25], [0.0, 0.5, 0.0, 0.5, 0.0]  # equal moments up to three
    assert squared_distance_of_means(Polynomial(3), x, p, q) == pytest.approx(0.0, abs=1e-12)
    assert squared_distance_of_means(Polynomial(4), x, p, q) > 0.1
    for kernel in (Gaussian(), Laplace(), Matern(), InverseMultiquadric(), RationalQuadratic()):
        assert kernel.characteristic
        assert squared_distance_of_means(kernel, x, p, q) > 1e-3


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [(Laplace(), 0), (Matern(1.5), 1), (Matern(2.0), 1), (Matern(2.5), 2), (Gaussian(), math.inf)],
)
def test_paths_of_a_matern_process_have_fewer_derivatives_than_its_order(kernel, expected):
    assert kernel.path_smoothness == expected


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [(Gaussian(), True), (Laplace(), True), (Gaussian() + 1.0, True), (Linear(), False), (Gaussian() * Linear(), None)],
)
def test_bounded_characteristic_kernels_of_differences_metrize_weak_convergence(kernel, expected):
    assert kernel.metrizes_weak_convergence is expected


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (Linear(), 3),
        (Linear(1.0), 4),
        (Linear() + 2.0 * Linear(), 3),
        (Polynomial(2, offset=1.0), 10),
        (Polynomial(2, offset=0.0), 6),
        (AllSubsets(), 8),
        (Constant(), 1),
        (Gaussian(), math.inf),
        (Brownian(), None),
    ],
)
def test_the_dimension_is_the_number_of_independent_functions(kernel, expected):
    assert kernel.dimension(3) == expected


@pytest.mark.parametrize("kernel", [Gaussian(0.7), Linear(), Polynomial(2), Matern(1.5) + 3.0 * Linear()], ids=repr)
def test_the_distance_of_features_is_the_norm_of_the_difference_of_sections(kernel):
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(5, 2)), rng.normal(size=(4, 2))
    expected = [[RKHSFunction(kernel, [x, z], [1.0, -1.0]).norm() for z in Z] for x in X]
    np.testing.assert_allclose(kernel.distance(X, Z), expected, rtol=1e-7)
    assert not np.diag(kernel.distance(X)).any()
    np.testing.assert_allclose(kernel.distance(X), kernel.distance(X, X), atol=1e-6)
    assert isinstance(kernel.distance(torch.tensor(X), torch.tensor(Z)), torch.Tensor)
