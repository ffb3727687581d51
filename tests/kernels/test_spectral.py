"""Laws of spectral measures: the mean of cosines over random frequencies is the kernel."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from mercer.core.errors import InputError
from mercer.kernels import (
    Brownian,
    Callable,
    Constant,
    ExponentialPower,
    FeatureMap,
    Gaussian,
    InverseMultiquadric,
    Laplace,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Spectrum,
    Subspace,
    WhiteNoise,
)
from mercer.kernels.spectral import Draws
from mercer.testing.compositions import random_kernel
from mercer.testing.samples import leaves

SHIFTS = torch.tensor(
    [[0.1, 0.0, 0.0], [0.3, -0.2, 0.1], [0.0, 1.0, 0.0], [1.0, 1.0, -1.0], [-2.0, 0.5, 0.7], [4.0, -3.0, 6.0]]
).double()

SHIFT_INVARIANT = (
    Gaussian(0.8),
    Gaussian((0.5, 1.0, 3.0)),
    Laplace(1.5),
    Laplace((1.0, 2.0, 0.5)),
    Laplace(2.0, metric="l1"),
    Laplace((0.5, 2.0, 1.0), metric="l1"),
    ExponentialPower(1.2, power=0.3),
    ExponentialPower(1.2, power=1.0),
    ExponentialPower((1.0, 0.4, 2.0), power=1.7),
    ExponentialPower(1.2, power=2.0),
    Matern(0.1),
    Matern(0.5, 2.0),
    Matern(1.5),
    Matern(2.5, (1.0, 0.3, 2.0)),
    Matern(3.3, 1.7),
    Matern(200.0),
    Matern(math.inf, 1.1),
    RationalQuadratic(0.9, alpha=0.1),
    RationalQuadratic((0.9, 2.0, 1.0), alpha=4.0),
    InverseMultiquadric(1.3, power=0.7),
    InverseMultiquadric((1.0, 2.0, 3.0), power=3.0),
    Periodic(0.8, period=2.5),
    Periodic((1.0, 0.7, 0.2), period=(2.0, 3.0, 7.0)),
    Constant(2.0),
    Subspace(Laplace(), (0, -1)),
    Subspace(Gaussian((1.0, 2.0)), (1, 1)),
    2.5 * Matern(1.5),
    Gaussian(0.5) + Laplace(2.0),
    0.1 * Gaussian(0.5) + 30.0 * Gaussian(5.0) + Matern(1.5),
    Gaussian(2.0) * Periodic(1.0, period=3.0),
    Gaussian() + 10.0,
    (Gaussian() + 1.0) * (Periodic() + 0.5 * Laplace()),
    (0.5 * Laplace() + 2.0 * Gaussian(3.0)) * (Matern(2.5) + 0.3 * Laplace(9.0)),
    Laplace(3.0) ** 5,
    (Gaussian() + 0.7 * Laplace() + 0.2) ** 3,
    Subspace(Subspace(Gaussian(), 1) + Periodic(), (2, 0)) * Subspace(Laplace(), 1),
)


def check_bochner(kernel, shifts, count=40_000, seed=0):
    """The mean of c + a cos(w.shift) is k(shift), within five standard errors."""
    measure = kernel.spectral_measure(shifts.shape[1])
    frequencies = measure.draw(count, torch.Generator().manual_seed(seed))
    assert frequencies.shape == (count, shifts.shape[1])
    assert frequencies.dtype == torch.float64
    exact = torch.as_tensor(kernel(shifts, torch.zeros_like(shifts[:1]))).squeeze(1)
    values = measure.constant + measure.amplitude * torch.cos(frequencies @ shifts.T)
    error = (values.mean(0) - exact).abs()
    assert bool((error <= 5 * values.std(0) / math.sqrt(count) + 1e-10 * exact.max()).all()), error
    peak = float(torch.as_tensor(kernel.diag(shifts[:1])))
    assert measure.amplitude + measure.constant == pytest.approx(peak, rel=1e-12)


@pytest.mark.parametrize("kernel", SHIFT_INVARIANT, ids=repr)
def test_the_mean_of_cosines_is_the_kernel(kernel):
    check_bochner(kernel, SHIFTS)


@pytest.mark.parametrize("seed", range(25))
def test_the_mean_of_cosines_is_the_kernel_for_random_compositions(seed):
    rng = np.random.default_rng(seed)
    kernel = random_kernel(rng, 3, size=4)
    while any(isinstance(leaf, Linear | Polynomial) for leaf in leaves(kernel)):
        kernel = random_kernel(rng, 3, size=4)
    check_bochner(kernel, SHIFTS, seed=seed)


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Laplace(), Laplace(metric="l1"), Periodic(), Gaussian() + 1.0])
def test_one_column_is_enough(kernel):
    check_bochner(kernel, torch.tensor([[0.2], [1.0], [-3.0]]).double())


def test_every_row_of_a_sum_has_the_law_of_the_sum():
    measure = (Gaussian(10.0) + 3.0 * Gaussian(0.1)).spectral_measure(1)
    wide = torch.stack([measure.draw(4, torch.Generator().manual_seed(s)).abs() > 1.0 for s in range(2000)])
    np.testing.assert_allclose(wide.double().mean(0).squeeze(1), 0.75 * 2 * stats.norm.sf(0.1), atol=0.05)


def test_a_sum_shares_its_draw_out_in_proportion():
    frequencies = (Gaussian(1e6) + 3.0 * Gaussian(1e-6)).spectral_measure(2).draw(100, torch.Generator().manual_seed(1))
    assert int((frequencies[:, 0].abs() < 1.0).sum()) in (25, 26)


def test_a_product_of_sums_mixes_all_their_terms():
    """Shared draws must not be paired in order: every pair of terms occurs, as often as its amplitude says."""
    slow, fast = Gaussian(1e9), Gaussian(1e-3)
    first, second = (Subspace(slow + fast, j).spectral_measure(2) for j in (0, 1))
    frequencies = (first * second).draw(4000, torch.Generator().manual_seed(2)).abs() > 1.0
    counts = torch.bincount(frequencies[:, 0] + 2 * frequencies[:, 1], minlength=4)
    assert bool(((counts - 1000).abs() < 150).all()), counts


def test_constants_are_split_off_exactly():
    measure = ((Gaussian() + 2.0) * (Laplace() + 3.0) ** 2).spectral_measure(2)
    assert measure.constant == pytest.approx(18.0)
    assert measure.amplitude == pytest.approx(3.0 * 16.0 - 18.0)
    assert bool((measure.draw(2000, torch.Generator().manual_seed(0)) != 0).all())


def test_a_product_over_many_columns_of_one_plus_a_kernel_is_quick_to_draw():
    kernel = Subspace(Gaussian(), 0) + 1.0
    for j in range(1, 24):
        kernel = kernel * (Subspace(Gaussian(), j) + 1.0)
    check_bochner(kernel, torch.linspace(-1, 1, 24).double().expand(1, 24), count=300)


def test_a_high_power_needs_no_deep_recursion():
    check_bochner(Gaussian(50.0) ** 2000, SHIFTS, count=2000)


@pytest.mark.parametrize("shape", [0.3, 1.0, 7.0])
def test_gamma_numbers_have_the_gamma_distribution(shape):
    values = Draws(5000, torch.Generator().manual_seed(0)).gamma(shape).squeeze(1)
    assert stats.kstest(values.numpy(), stats.gamma(shape).cdf).pvalue > 1e-3


@pytest.mark.parametrize("index", [0.1, 0.5, 0.9, 1.0])
def test_stable_numbers_have_their_laplace_transform(index):
    values = Draws(50_000, torch.Generator().manual_seed(0)).stable(index)
    for s in (0.1, 1.0, 4.0):
        terms = torch.exp(-s * values)
        assert float(terms.mean()) == pytest.approx(math.exp(-(s**index)), abs=0.023 * float(terms.std()) + 1e-12)


@pytest.mark.parametrize(
    "kernel",
    [
        Matern(1e-3, 1e-6),
        Matern(1e6),
        ExponentialPower(1.0, power=1e-3),
        RationalQuadratic(alpha=1e-3),
        RationalQuadratic(alpha=1e12),
        Periodic(1e-12),
        Periodic(1e12),
        Gaussian(1e-150),
        Gaussian(1e150),
    ],
    ids=repr,
)
def test_extreme_parameters_give_finite_frequencies(kernel):
    frequencies = kernel.spectral_measure(2).draw(5000, torch.Generator().manual_seed(0))
    assert bool(torch.isfinite(frequencies).all())
    assert bool(torch.isfinite(frequencies.cos()).all())


def test_a_seed_repeats_its_frequencies_and_leaves_the_global_generator_alone():
    kernel = Gaussian() * (Periodic() + Laplace()) + ExponentialPower() * Matern(1.5)
    state = torch.get_rng_state()
    one, same, other = (kernel.spectral_measure(3).draw(50, torch.Generator().manual_seed(s)) for s in (4, 4, 5))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("kernel", "part"),
    [
        (Linear(), "Linear"),
        (Gaussian() + Linear(bias=0.5), r"Linear\(bias=0.5\) is not shift-invariant"),
        (Gaussian() * Polynomial(2), "Polynomial"),
        (Brownian(), "Brownian"),
        (2.0 * (Laplace() + WhiteNoise(0.5)), r"WhiteNoise\(noise_level=0.5\) has no known spectral measure"),
        (Callable(lambda x, z: 1.0) ** 2, "Callable"),
        (Gaussian() + FeatureMap(np.cos), "FeatureMap"),
        ((lambda X: X[:, 0]) * Gaussian(), r"<lambda> \* Gaussian"),
        (Spectrum(2), "Spectrum"),
    ],
)
def test_a_kernel_without_a_spectral_measure_is_named_with_what_to_do(kernel, part):
    with pytest.raises(InputError, match=part) as error:
        kernel.spectral_measure(3)
    assert 'solver="nystrom"' in str(error.value)


def test_parameters_that_do_not_fit_the_columns_are_named():
    with pytest.raises(InputError, match="length_scale has 3 entries but X has 2 columns"):
        (Gaussian() + 1e-9 * Gaussian((1.0, 2.0, 3.0))).spectral_measure(2)
    with pytest.raises(InputError, match="period has 2 entries but X has 1 columns"):
        Periodic(period=(1.0, 2.0)).spectral_measure(1)
    with pytest.raises(InputError, match="median"):
        Laplace("median").spectral_measure(2)
    with pytest.raises(InputError, match="by name"):
        Subspace(Gaussian(), "age").spectral_measure(2)
    with pytest.raises(InputError, match="Column 5"):
        Subspace(Gaussian(), 5).spectral_measure(2)
