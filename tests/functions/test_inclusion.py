"""A Gaussian space lies in every narrower one; norms there against quadrature and dense interpolation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad

from mercer.core.errors import InputError, InputTypeError
from mercer.functions import RKHSFunction
from mercer.kernels import Gaussian, Laplace, Linear


def function(length_scale, d=1, n=4, seed=0):
    rng = np.random.default_rng(seed)
    return RKHSFunction(Gaussian(length_scale=length_scale), rng.normal(size=(n, d)), rng.normal(size=n))


def spectral_norm(f, width):
    """(2 pi)^-1 of the integral of |f^|^2 / q^ by quadrature, in one dimension."""
    s, x, c = f.kernel.length_scale, f.X[:, 0], f.coef

    def density(w):
        f_hat = np.sqrt(2 * np.pi) * s * np.exp(-((s * w) ** 2) / 2) * np.sum(c * np.exp(-1j * w * x))
        return np.abs(f_hat) ** 2 / (np.sqrt(2 * np.pi) * width * np.exp(-((width * w) ** 2) / 2))

    return np.sqrt(quad(density, -15, 15, limit=500)[0] / (2 * np.pi))


def interpolation_norm(f, target, spacing, reach):
    """The norm of the smoothest function in the target's space that agrees with f on a fine grid."""
    axes = [np.arange(-reach, reach + step / 2, step) for step in spacing]
    grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, len(axes))
    values = f(grid)
    return np.sqrt(values @ np.linalg.lstsq(target(grid), values, rcond=1e-13)[0])


@pytest.mark.parametrize("narrower", [0.2, 0.7, 1.1, 1.3])
def test_the_norm_in_a_narrower_space_equals_the_integral_over_frequencies(narrower):
    f = function(1.3)
    assert f.norm(kernel=Gaussian(length_scale=narrower)) == pytest.approx(spectral_norm(f, narrower), rel=1e-8)


@pytest.mark.parametrize("narrower", [0.8, 1.0])
def test_the_norm_in_a_narrower_space_is_the_limit_of_minimum_norm_interpolation(narrower):
    f, target = function(1.2), Gaussian(length_scale=narrower)
    assert f.norm(kernel=target) == pytest.approx(interpolation_norm(f, target, [0.45], 7.0), rel=1e-4)


def test_the_norm_with_a_width_for_each_column_is_the_limit_of_minimum_norm_interpolation():
    f, target = function((1.2, 1.5), d=2), Gaussian(length_scale=(1.0, 1.2))
    assert f.norm(kernel=target) == pytest.approx(interpolation_norm(f, target, [0.65, 0.8], 7.0), rel=1e-3)


def test_a_single_section_stays_in_spaces_up_to_sqrt_two_wider():
    f = function(1.0)
    assert f.norm(kernel=Gaussian(length_scale=1.3)) == pytest.approx(spectral_norm(f, 1.3), rel=1e-8)


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_the_inclusion_inequality_holds(d, seed):
    f = function(2.0, d=d, n=8, seed=seed)
    widths = [2.0, 1.5, 1.0, 0.5, 0.25]
    norms = [f.norm(kernel=Gaussian(length_scale=s)) for s in widths]
    assert norms[0] == pytest.approx(f.norm(), rel=1e-10)
    assert all(norm <= (2.0 / s) ** (d / 2) * f.norm() * (1 + 1e-12) for norm, s in zip(norms, widths, strict=True))


def test_the_inclusion_inequality_is_sharp_for_flat_functions():
    x = np.linspace(-300, 300, 601)[:, None]  # nearly constant: all its frequencies are near zero
    f = RKHSFunction(Gaussian(length_scale=2.0), x, np.ones(len(x)))
    assert f.norm(kernel=Gaussian(length_scale=0.5)) == pytest.approx(2.0 * f.norm(), rel=1e-2)


def test_one_width_and_equal_widths_for_each_column_agree():
    f, g = function(2.0, d=3), function((2.0, 2.0, 2.0), d=3)
    assert f.norm(kernel=Gaussian(length_scale=(1.0, 1.0, 1.0))) == pytest.approx(g.norm(kernel=Gaussian()), rel=1e-13)


@pytest.mark.parametrize("kernel", [Gaussian(length_scale=1.0), Laplace(length_scale=2.0)])
def test_the_space_of_a_multiple_has_the_norm_divided_by_its_root(kernel):
    f = RKHSFunction(kernel, [[0.0], [1.0]], [1.0, 2.0])
    assert f.norm(kernel=4.0 * kernel) == pytest.approx(f.norm() / 2, rel=1e-13)
    tripled = RKHSFunction(9.0 * kernel, [[0.0], [1.0]], [1 / 9, 2 / 9])  # the same function
    assert tripled.norm(kernel=kernel) == pytest.approx(f.norm(), rel=1e-13)
    assert tripled.norm() == pytest.approx(f.norm() / 3, rel=1e-13)


def test_factors_of_both_kernels_enter_a_narrower_norm():
    f = function(1.0)
    scaled = RKHSFunction(5.0 * f.kernel, f.X, f.coef)
    target = Gaussian(length_scale=0.5)
    assert scaled.norm(kernel=2.0 * target) == pytest.approx(5.0 / np.sqrt(2.0) * f.norm(kernel=target), rel=1e-13)


def test_each_output_has_its_own_norm_in_a_narrower_space():
    f, target = function(1.0), Gaussian(length_scale=0.4)
    both = RKHSFunction(f.kernel, f.X, np.column_stack([f.coef, 3 * f.coef]))
    np.testing.assert_allclose(both.norm(kernel=target), f.norm(kernel=target) * np.array([1.0, 3.0]), rtol=1e-13)


@pytest.mark.parametrize("width", [2.0, 1.0 * np.sqrt(2.0) + 1e-9, (0.5, 3.0)])
def test_a_much_wider_space_does_not_hold_the_function(width):
    with pytest.raises(InputError, match=r"not in the space of Gaussian.*narrower"):
        function(1.0, d=2).norm(kernel=Gaussian(length_scale=width))


@pytest.mark.parametrize("target", [Laplace(), Linear(), Gaussian() + Linear()])
def test_spaces_without_a_known_closed_form_are_refused(target):
    with pytest.raises(InputError, match="not known"):
        function(1.0).norm(kernel=target)


def test_bad_targets_are_named():
    f = function(1.0, d=2)
    with pytest.raises(InputTypeError, match="'rbf'"):
        f.norm(kernel="rbf")
    with pytest.raises(InputError, match="median"):
        f.norm(kernel=Gaussian(length_scale="median"))
    with pytest.raises(InputError, match="3 length scales"):
        f.norm(kernel=Gaussian(length_scale=(1.0, 1.0, 1.0)))
    with pytest.raises(InputError, match="overflows"):
        function(1.0, d=200).norm(kernel=Gaussian(length_scale=1e-5))
