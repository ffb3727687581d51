"""Gram matrices equal those of scikit-learn and SciPy's special functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

from mercer.kernels import (
    ChiSquared,
    Constant,
    Cosine,
    ExponentialPower,
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Subspace,
    WhiteNoise,
)

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(40, 4)), rng.normal(size=(25, 4))
ARD = (0.5, 1.0, 2.0, 4.0)


def equal(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("kernel", "reference"),
    [
        (Gaussian.from_gamma(0.3), lambda A, B: pairwise.rbf_kernel(A, B, gamma=0.3)),
        (Laplace(2.0, metric="l1"), lambda A, B: pairwise.laplacian_kernel(A, B, gamma=0.5)),
        (Linear(), pairwise.linear_kernel),
        (Cosine(), pairwise.cosine_similarity),
        (
            Polynomial(3, scale=0.7, offset=1.5),
            lambda A, B: pairwise.polynomial_kernel(A, B, degree=3, gamma=0.7, coef0=1.5),
        ),
        (
            Polynomial(2, scale=1.0, offset=0.0),
            lambda A, B: pairwise.polynomial_kernel(A, B, degree=2, gamma=1, coef0=0),
        ),
    ],
    ids=lambda value: None if callable(value) and not isinstance(value, Kernel) else repr(value),
)
def test_gram_matrices_equal_scikit_learns_pairwise_kernels(kernel, reference):
    equal(kernel(X, Z), reference(X, Z))
    equal(kernel(X), reference(X, X))


def test_the_chi_squared_kernel_of_histograms_is_scikit_learns_also_where_bins_are_empty():
    A, B = np.where(np.abs(X) < 0.5, 0.0, np.abs(X)), np.where(np.abs(Z) < 0.5, 0.0, np.abs(Z))
    A[3] = B[2] = 0.0
    equal(ChiSquared(0.4)(A, B), pairwise.chi2_kernel(A, B, gamma=0.4))
    equal(ChiSquared(0.4)(A), pairwise.chi2_kernel(A, gamma=0.4))


def test_the_cosine_of_rows_of_any_length_is_the_same_and_that_of_zeros_is_zero():
    equal(Cosine()(1e200 * X, 1e-200 * Z), pairwise.cosine_similarity(X, Z))
    assert not Cosine()(np.zeros((1, 4)), Z).any()


@pytest.mark.parametrize(
    ("kernel", "reference"),
    [
        (Gaussian(0.8), gp.RBF(0.8)),
        (Gaussian(ARD), gp.RBF(ARD)),
        *((Matern(nu, 1.3), gp.Matern(1.3, nu=nu)) for nu in (0.5, 0.7, 1.0, 1.5, 2.5, 3.3, 7.0, math.inf)),
        (Matern(1.5, ARD), gp.Matern(ARD, nu=1.5)),
        (Matern(0.9, ARD), gp.Matern(ARD, nu=0.9)),
        (RationalQuadratic(0.9, alpha=0.6), gp.RationalQuadratic(length_scale=0.9, alpha=0.6)),
        (Constant(2.5), gp.ConstantKernel(2.5)),
        (WhiteNoise(0.4), gp.WhiteKernel(0.4)),
        (Linear(bias=2.25), gp.DotProduct(sigma_0=1.5)),
        (2.0 * Gaussian() + Linear() ** 2, 2.0 * gp.RBF() + gp.DotProduct(sigma_0=0.0) ** 2),
        (
            Matern(2.5) * RationalQuadratic() + WhiteNoise(0.1),
            gp.Matern(nu=2.5) * gp.RationalQuadratic() + gp.WhiteKernel(0.1),
        ),
    ],
    ids=repr,
)
def test_gram_matrices_equal_scikit_learns_gaussian_process_kernels(kernel, reference):
    equal(kernel(X), reference(X))
    equal(kernel(X, Z), reference(X, Z))
    equal(kernel.diag(X), reference.diag(X))


def test_periodic_equals_exp_sine_squared_for_one_column():
    reference = gp.ExpSineSquared(length_scale=0.7, periodicity=2.3)
    equal(Periodic(0.7, 2.3)(X[:, :1], Z[:, :1]), reference(X[:, :1], Z[:, :1]))


def test_periodic_is_a_product_over_columns():
    l, p = (0.7, 1.1, 2.0, 0.5), (2.3, 1.0, 0.7, 5.0)
    one_by_one = np.prod([Subspace(Periodic(l[j], p[j]), j)(X, Z) for j in range(4)], axis=0)
    equal(Periodic(l, p)(X, Z), one_by_one)
    equal(Periodic(0.7, p)(X, Z), Periodic((0.7,) * 4, p)(X, Z))


@pytest.mark.parametrize("nu", [0.1, 0.4, 0.8, 1.0, 1.7, 4.0, 12.5, 33.3])
def test_general_matern_equals_the_bessel_form(nu):
    u = math.sqrt(2 * nu) * cdist(X, Z) / 1.7
    reference = 2 ** (1 - nu) / scipy.special.gamma(nu) * u**nu * scipy.special.kv(nu, u)
    equal(Matern(nu, 1.7)(X, Z), reference)


@pytest.mark.parametrize("nu", [60.0, 1e3, 1e5])
def test_matern_of_large_order_comes_close_to_its_gaussian_limit(nu):
    gap = np.abs(Matern(nu)(X, Z) - Gaussian()(X, Z)).max()
    assert 1e-3 / nu < gap < 1 / nu


def test_matern_is_continuous_where_its_large_order_expansion_starts():
    from mercer.formula.bessel import LARGE_ORDER

    below, above = Matern(LARGE_ORDER - 1e-9)(X, Z), Matern(LARGE_ORDER + 1e-9)(X, Z)
    np.testing.assert_allclose(below, above, rtol=0, atol=1e-10)


def test_half_integer_matern_equals_its_bessel_form():
    for nu in (0.5, 1.5, 2.5):
        equal(Matern(nu)(X, Z), Matern(nu + 1e-13)(X, Z))


def test_formulas_of_the_remaining_stationary_kernels():
    r = cdist(X, Z)
    equal(Laplace(1.7)(X, Z), np.exp(-r / 1.7))
    equal(ExponentialPower(1.7, power=1.3)(X, Z), np.exp(-((r / 1.7) ** 1.3)))
    equal(InverseMultiquadric(1.7, power=0.3)(X, Z), (1 + (r / 1.7) ** 2) ** -0.3)
    equal(ExponentialPower(1.7, power=2.0)(X, Z), Gaussian(1.7 / math.sqrt(2))(X, Z))
    equal(ExponentialPower(1.7, power=1.0)(X, Z), Laplace(1.7)(X, Z))
    equal(Laplace(1.7)(X, Z), Matern(0.5, 1.7)(X, Z))


def test_a_vector_length_scale_is_the_scalar_kernel_on_scaled_columns():
    for cls in (Gaussian, Laplace, Matern, RationalQuadratic, InverseMultiquadric, ExponentialPower):
        equal(cls(length_scale=ARD)(X, Z), cls(length_scale=1.0)(X / np.array(ARD), Z / np.array(ARD)))
