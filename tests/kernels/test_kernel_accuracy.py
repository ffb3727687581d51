"""Where floating point is hard: near-duplicates, large offsets, tiny length scales, coincident points."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from mercer.core.arrays import Points
from mercer.kernels import (
    ExponentialPower,
    Gaussian,
    InverseMultiquadric,
    Laplace,
    Matern,
    Periodic,
    RationalQuadratic,
)
from mercer.kernels.distances import added_differences
from mercer.kernels.pair import DensePair
from mercer.operators import gram

ROUGH = [Laplace(0.5), Laplace(0.5, metric="l1"), Matern(0.5), Matern(0.8), ExponentialPower(1.0, power=0.7)]
SMOOTH = [
    Gaussian(0.5),
    Matern(1.5),
    Matern(2.5),
    Matern(3.3),
    RationalQuadratic(),
    InverseMultiquadric(),
    Periodic(period=0.3),
]
STATIONARY = ROUGH + SMOOTH


def rows(n, d=6, seed=0, dtype=torch.float64):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(n, d))).to(dtype)


@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_diagonal_of_one_sample_is_exactly_one(kernel, dtype):
    for x in (rows(30, dtype=dtype), rows(30, dtype=dtype) + 1e4, 1e3 * rows(30, dtype=dtype)):
        assert (kernel(x).diagonal() == 1).all()
        assert (kernel.diag(x) == 1).all()


@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_row_meets_itself_exactly_in_tiles_too(kernel, dtype):
    x, a, b = Points(1e3 * rows(30, dtype=dtype)), torch.arange(0, 20), torch.arange(10, 30)
    tile = kernel.on(DensePair(x.take(a), x.take(b), (a, b)))
    assert (tile[10:, :10].diagonal() == 1).all()


@pytest.mark.parametrize("kernel", ROUGH, ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_duplicates_are_at_distance_zero_though_the_kernel_is_rough_there(kernel, dtype):
    x = rows(20, dtype=dtype)
    twice = torch.cat([x, x])
    assert (kernel(twice).diagonal(20) == 1).all()
    assert (kernel(x, x).diagonal() == 1).all()


@pytest.mark.parametrize("gap", [1e-2, 1e-5, 1e-9, 1e-12])
def test_near_duplicates_keep_their_distance_in_float64(gap):
    x = rows(20)
    z = x + gap * rows(20, seed=1)
    distance = (x - z).norm(dim=1)
    found = -torch.log1p(Laplace(1.0)(x, z).diagonal() - 1)
    np.testing.assert_allclose(found, distance, rtol=1e-10, atol=2e-15)
    distance = (x - z).abs().sum(1)
    found = -torch.log1p(Laplace(1.0, metric="l1")(x, z).diagonal() - 1)
    np.testing.assert_allclose(found, distance, rtol=1e-10, atol=2e-15)


@pytest.mark.parametrize("shape", [(0, 5, 3), (7, 1, 1), (30, 20, 8), (31, 17, 9), (5, 40, 23)])
@pytest.mark.parametrize("at_once", [1, 500, 2**24])
def test_l1_distances_in_parts_as_on_a_gpu_equal_those_of_scipy(shape, at_once, monkeypatch):
    n, m, d = shape
    monkeypatch.setattr("mercer.kernels.distances.DIFFERENCES", at_once)
    x, z = rows(n, d=d), rows(m, d=d, seed=1)
    np.testing.assert_allclose(added_differences(x, z), cdist(x, z, "cityblock"), rtol=1e-14)
    found = added_differences(x.float(), z.float())
    assert found.dtype == torch.float32
    np.testing.assert_allclose(found, cdist(x, z, "cityblock"), rtol=1e-5)


@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
@pytest.mark.parametrize("offset", [0.0, 1e4, -3e5])
def test_float32_is_close_to_float64_whatever_the_offset(kernel, offset):
    x = (rows(60, d=5) + offset).to(torch.float32)
    x[30:] = x[:30] + 1e-3 * rows(30, d=5, seed=2).to(torch.float32)
    exact = kernel(x.double())
    found = kernel(x)
    assert found.dtype == torch.float32
    assert float((found.double() - exact).abs().max()) <= (2e-5 if kernel in ROUGH else 2e-6)


def test_thousands_of_periods_are_counted_exactly_in_float32():
    x = 1e4 * rows(40, d=1).to(torch.float32)
    kernel = Periodic(period=0.3)
    assert float((kernel(x).double() - kernel(x.double())).abs().max()) <= 2e-6


@pytest.mark.parametrize("kernel", SMOOTH, ids=repr)
def test_an_offset_changes_nothing_in_float64(kernel):
    x, shift = torch.round(rows(40) * 2**20) / 2**20, 2.0**20
    if isinstance(kernel, Periodic):
        kernel = Periodic(period=2.0)
    np.testing.assert_allclose(kernel(x + shift), kernel(x), rtol=0, atol=1e-13)


@pytest.mark.parametrize("width", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("cls", [Gaussian, Laplace, Matern, InverseMultiquadric])
def test_tiny_length_scales_see_tiny_distances(width, cls):
    x = rows(25)
    z = x + width * rows(25, seed=1)
    scaled = cdist(x, z).reshape(-1, 1) / width
    expected = cls(length_scale=1.0)(scaled, [[0.0]]).reshape(25, 25)
    rounding = 1e-10 + 10 * np.finfo(np.float64).eps / width
    np.testing.assert_allclose(cls(length_scale=width)(x, z), expected, rtol=0, atol=rounding)
    assert np.diagonal(expected).max() > 0.1


@pytest.mark.parametrize("kernel", [k for k in STATIONARY if not isinstance(k, Periodic)], ids=repr)
@pytest.mark.parametrize("far", [1e5, 1e10, 1e150, 1e200])
def test_distant_points_have_value_zero_or_small_and_never_nan(kernel, far):
    x = torch.tensor([[0.0, 0.0], [far, 0.0], [-1e3, 1e3]], dtype=torch.float64)
    K = kernel(x)
    assert K.isfinite().all()
    assert float(K[0, 1]) < 1e-2
    assert (K.diagonal() == 1).all()


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 3.5, 5.5, 6.5, 1.2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_matern_kernels_of_every_order_are_zero_far_away_on_every_way_there_is(nu, dtype):
    x = torch.tensor([[0.0], [0.5 * torch.finfo(dtype).max ** 0.9]], dtype=dtype)
    expected = torch.eye(2, dtype=dtype)
    assert torch.equal(Matern(nu)(x), expected)
    assert torch.equal(gram(Matern(nu), x).dense(), expected)
    assert torch.equal(gram(Matern(nu), x) @ torch.eye(2, dtype=dtype), expected)


@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_through_coincident_points_are_finite_and_fair(kernel, dtype):
    x = rows(6, dtype=dtype)
    x[3:] = x[:3]
    x.requires_grad_()
    for value in (kernel(x).sum(), kernel(x, x.detach().clone()).sum(), kernel.diag(x).sum()):
        if value.requires_grad:
            (gradient,) = torch.autograd.grad(value, x)
            assert gradient.isfinite().all()
    pair = torch.zeros(2, 3, dtype=dtype, requires_grad=True)
    (gradient,) = torch.autograd.grad(kernel(pair)[0, 1], pair)
    assert (gradient == 0).all()


@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
def test_gradients_with_respect_to_the_length_scale_are_finite_at_coincident_points(kernel):
    x = rows(6)
    x[3:] = x[:3]
    width = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(kernel.replace(length_scale=width)(x).sum(), width)
    assert gradient.isfinite()
    assert float(gradient) != 0


@pytest.mark.parametrize("nu", [0.8, 1.5, 2.2, 2.5, 4.0, 60.0])
def test_second_derivatives_of_matern_kernels_equal_differences(nu):
    x = rows(3, d=2).requires_grad_()
    z = rows(2, d=2, seed=1)
    assert torch.autograd.gradgradcheck(lambda x: Matern(nu)(x, z), (x,))


def test_the_derivative_of_a_gaussian_is_known():
    x, z = rows(1, d=3).requires_grad_(), rows(1, d=3, seed=1)
    value = Gaussian(1.7)(x, z)
    (gradient,) = torch.autograd.grad(value.sum(), x)
    np.testing.assert_allclose(gradient, (-(x - z) / 1.7**2 * value).detach(), rtol=1e-12)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplace(1.0), Laplace(1.0, metric="l1")], ids=repr)
def test_a_row_far_out_does_not_take_the_digits_of_the_others(kernel):
    X = np.random.default_rng(0).normal(size=(6, 2))
    far = np.concatenate([X, [[1e30, 0.0]]])
    np.testing.assert_allclose(kernel(X, far)[:, :6], kernel(X), atol=1e-12)
    np.testing.assert_allclose(kernel(far)[:6, :6], kernel(X), atol=1e-12)
