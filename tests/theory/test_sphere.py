"""Eigenvalues on the sphere against closed forms and identities."""

import math

import numpy as np
import pytest

from mercer.core.errors import InputError
from mercer.kernels import (
    NNGP,
    NTK,
    ArcCosine,
    Constant,
    Gaussian,
    InverseMultiquadric,
    Laplace,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Subspace,
)
from mercer.theory import (
    degree_parts,
    multiple_descent,
    project_degree,
    sphere_harmonics_dimension,
    sphere_spectrum,
    staircase,
    taylor_coefficients,
)
from mercer.theory.degrees import sphere_points
from mercer.theory.harmonics import legendre, log_harmonics_dimensions
from mercer.theory.sphere import by_quadrature


def arc_cosine(t):
    t = np.clip(t, -1, 1)
    return (np.sqrt(1 - t**2) + (np.pi - np.arccos(t)) * t) / np.pi


@pytest.mark.parametrize("d", [2, 3, 7, 30])
def test_dimensions_of_harmonics_add_up_to_those_of_polynomials(d):
    """Polynomials of degree <= k on the sphere: C(d+k-1, k) + C(d+k-2, k-1)."""
    for k in range(1, 9):
        total = sum(sphere_harmonics_dimension(d, j) for j in range(k + 1))
        assert total == math.comb(d + k - 1, k) + math.comb(d + k - 2, k - 1)


@pytest.mark.parametrize("d", [2, 3, 10, 1000])
def test_logarithms_of_dimensions_are_those_of_the_exact_numbers(d):
    exact = [math.log(sphere_harmonics_dimension(d, k)) for k in range(51)]
    assert np.allclose(log_harmonics_dimensions(d, 50), exact, atol=1e-9)


def test_polynomials_on_the_circle_are_cosines():
    angle = np.linspace(0, np.pi, 20)
    assert np.allclose(legendre(2, 6, np.cos(angle)), np.cos(np.arange(7)[:, None] * angle))


@pytest.mark.parametrize("d", [3, 8, 1000])
def test_the_linear_kernel_has_one_eigenvalue(d):
    found = sphere_spectrum(Linear(bias=2.0), d, 4).eigenvalues
    assert np.allclose(found, [2.0, 1 / d, 0, 0, 0], atol=1e-14)


def test_the_square_of_the_inner_product_has_the_known_eigenvalues():
    """t^2 = 1/d + (1 - 1/d) P_2(t)."""
    d = 12
    found = sphere_spectrum(Polynomial(degree=2, scale=1.0, offset=0.0), d, 3).eigenvalues
    assert np.allclose(found, [1 / d, 0, (1 - 1 / d) / sphere_harmonics_dimension(d, 2), 0], rtol=1e-12, atol=1e-16)


def test_the_arc_cosine_kernel_has_its_closed_form_on_the_sphere_in_three_dimensions():
    """Degrees 0, 1, 2, 4 by exact integrals; odd degrees above 1 vanish."""
    found = sphere_spectrum(arc_cosine, 3, 5)
    exact = np.array([3 / 8, 1 / 6, 3 / 128, 0.0, 1 / 1536, 0.0])
    assert np.allclose(found.eigenvalues, exact, atol=1e-12)
    assert found.accuracy[3] >= 1  # says that a zero is all rounding


KERNELS = [Gaussian(0.8), Laplace(1.5), Matern(nu=1.5), Matern(nu=2.5), RationalQuadratic(), InverseMultiquadric(),
           Gaussian() + 2.0 * Laplace(), Linear() * Gaussian(), Polynomial(degree=2) ** 2]  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_taylor_series_sum_to_the_kernel(kernel):
    a = taylor_coefficients(kernel, 120)
    t = np.array([-0.5, 0.0, 0.3, 0.6])
    points = np.column_stack([t, np.sqrt(1 - t**2)])
    assert np.allclose(np.polynomial.polynomial.polyval(t, a), kernel([[1.0, 0.0]], points)[0], rtol=1e-9)


@pytest.mark.parametrize("d", [3, 6])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_series_and_quadrature_agree_within_what_they_state(kernel, d):
    found = sphere_spectrum(kernel, d, 8)

    def h(t):
        return kernel([[1.0, 0.0]], np.column_stack([t, np.sqrt(1 - t**2)]))[0]

    values, error = by_quadrature(h, d, 8)
    allowed = error + np.minimum(found.accuracy, 1) * found.eigenvalues + 1e-15
    assert (np.abs(values - found.eigenvalues) <= allowed).all()


@pytest.mark.parametrize(
    ("kernel", "d", "kmax"),
    [
        (Gaussian(), 1000, 50),
        (Gaussian(), 3, 30),
        (RationalQuadratic(), 100, 50),
        (Polynomial(degree=6), 1000, 50),
        (Gaussian(0.3), 5, 60),
    ],
)
def test_multiplicities_times_eigenvalues_sum_to_the_value_at_one(kernel, d, kmax):
    found = sphere_spectrum(kernel, d, kmax)
    assert np.isfinite(found.eigenvalues).all()
    assert abs(found.shares.sum() / found.trace - 1) < 1e-8


def test_every_eigenvalue_of_a_gaussian_is_positive_and_falls_in_a_thousand_dimensions():
    found = sphere_spectrum(Gaussian(), 1000, 50)
    assert (found.eigenvalues > 0).all()
    assert (np.diff(np.log(found.eigenvalues)) < 0).all()
    assert (found.accuracy < 1e-10).all()


def test_the_empirical_spectrum_is_near():
    X = sphere_points(1500, 4, 0)
    empirical = np.linalg.eigvalsh(Laplace()(X))[::-1] / len(X)
    found = sphere_spectrum(Laplace(), 4, 2)
    expected = np.repeat(found.eigenvalues, found.multiplicities.astype(int))
    assert np.allclose(empirical[: len(expected)], expected, rtol=0.12)


def test_the_radius_is_a_length_scale():
    one, two = sphere_spectrum(Gaussian(0.5), 6, 5), sphere_spectrum(Gaussian(1.0), 6, 5, radius=2.0)
    assert np.allclose(one.eigenvalues, two.eigenvalues, rtol=1e-10)


def test_the_arc_cosine_kernel_has_the_spectrum_of_its_function():
    found, expected = sphere_spectrum(ArcCosine(), 3, 5), sphere_spectrum(arc_cosine, 3, 5)
    assert np.allclose(found.eigenvalues / found.eigenvalues[0], expected.eigenvalues / (3 / 8), atol=1e-10)


@pytest.mark.parametrize("kernel", [NTK(depth=2), NNGP(depth=1, activation="gelu")], ids=["ntk", "nngp"])
@pytest.mark.parametrize("d", [4, 7])
def test_kernels_of_networks_sum_to_their_value_on_the_diagonal(kernel, d):
    found = sphere_spectrum(kernel, d, 60)
    trace = float(kernel(np.eye(d)[:1])[0, 0])
    assert np.isclose(found.trace, trace, rtol=1e-10)
    X = sphere_points(700, d, 0)
    largest = np.linalg.eigvalsh(kernel(X))[::-1][: 1 + d] / 700
    assert np.allclose(largest, np.repeat(found.eigenvalues[:2], [1, d]), rtol=0.15)


def test_a_network_and_the_laplace_kernel_fall_alike():
    """Eigenvalues fall like k^-d for both: Geifman et al., 2020; Chen and Xu, 2021."""
    d = 4
    for kernel in (NTK(depth=3), Laplace(2.0)):
        found = sphere_spectrum(kernel, d, 40)
        slope = np.log(found.eigenvalues[40] / found.eigenvalues[20]) / np.log(2)
        assert abs(slope + d) < 0.5


@pytest.mark.parametrize("kernel", [Periodic(), Subspace(Gaussian(), (0,)), Gaussian((1.0, 2.0)), Laplace(metric="l1")])
def test_kernels_that_are_not_of_the_angle_are_refused(kernel):
    with pytest.raises((InputError, ValueError)):
        sphere_spectrum(kernel, 3, 4)


def test_a_constant_has_degree_zero_alone():
    assert np.allclose(sphere_spectrum(Constant(3.0), 5, 2).eigenvalues, [3, 0, 0])


def test_parts_of_a_kernel_matrix_add_up_and_its_tail_is_a_ridge():
    X = sphere_points(100, 60, 0)
    found = degree_parts(Gaussian(), X, kmax=2)
    assert np.allclose(found.parts.sum(0) + found.rest, Gaussian()(X))
    assert found.distance_from_ridge < 0.1
    assert found.ridge == pytest.approx(found.spectrum.tail, rel=1e-6)
    assert np.linalg.matrix_rank(found.parts[1], tol=1e-8) == 60


def test_points_of_different_lengths_are_refused():
    with pytest.raises(InputError, match="Row 2"):
        degree_parts(Gaussian(), [[1.0, 0.0], [0.0, 1.0], [0.0, 2.0]])


def test_projections_find_the_parts_of_a_polynomial():
    """x1^2 + x1 + 1 in d dimensions: 1 + 1/d, x1, x1^2 - 1/d."""
    d, x = 4, sphere_points(5, 4, 1)
    parts = [1 + 1 / d + 0 * x[:, 0], x[:, 0], x[:, 0] ** 2 - 1 / d]
    for degree, wanted in enumerate(parts):
        part = project_degree(lambda z: z[:, 0] ** 2 + z[:, 0] + 1, degree, d, draws=40_000)
        assert (np.abs(part(x) - wanted) <= 4.5 * part.standard_error(x) + 1e-12).all()


def test_degrees_are_learned_one_after_the_other():
    found = staircase(Gaussian(), d=1000, powers=(0, 1, 1), exponents=[0.5, 1.5, 2.5]).expected
    assert np.allclose(found.risk, [2, 1, 0], atol=0.15)


def test_the_risk_peaks_at_the_number_of_harmonics():
    d = 20
    B = sphere_harmonics_dimension(d, 2)
    found = multiple_descent([1.0, 1.0, 1.0, 0.01], d=d, n=np.arange(60, 600))
    peak = found.n[found.expected.risk.argmax()]
    assert abs(peak / (B + d + 1) - 1) < 0.1


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_simulations_lie_on_the_curve(noise):
    found = staircase(Gaussian(), 12, (0, 1, 1), alpha=1e-2, noise=noise, simulate=[30, 150], repeats=20)
    expected = np.exp(np.interp(np.log(found.simulated_n), np.log(found.n), np.log(found.expected.risk)))
    assert (np.abs(found.simulated - expected) < 4 * found.standard_errors + 0.02 * expected).all()
