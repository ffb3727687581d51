"""Functions of a kernel: the laws of their space, on vectors and on strings, in numpy and torch."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import torch

import mercer.functions.products
from mercer.core.errors import InputError, InputTypeError, NotPositiveDefiniteError
from mercer.functions import RKHSFunction, inner
from mercer.kernels import (
    Callable,
    Constant,
    Gaussian,
    InverseMultiquadric,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    Precomputed,
    RationalQuadratic,
    Spectrum,
    Subspace,
    WhiteNoise,
)

D = 3
KERNELS = [
    Gaussian(length_scale=1.5),
    Gaussian(length_scale=(0.7, 1.0, 2.0)),
    Laplace(length_scale=2.0),
    Matern(nu=2.5, length_scale=1.0),
    Polynomial(degree=3, offset=1.0),
    RationalQuadratic() * Linear(bias=0.5),
    0.5 * InverseMultiquadric() + Constant(2.0),
]
SMOOTH = [k for k in KERNELS if not isinstance(k, Laplace)]

every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)
smooth_kernel = pytest.mark.parametrize("kernel", SMOOTH, ids=repr)


@dataclass(frozen=True, eq=False, repr=False)
class Indefinite(Kernel):
    """-x.z: symmetric, but not a kernel."""

    def of(self, pair):
        return -1.0 * pair.inner()


def shared(a, b):
    return float(len(a & b))


def sample(n, seed=0, d=D):
    return np.random.default_rng(seed).normal(size=(n, d))


def function(kernel, n=7, seed=0, outputs=None):
    rng = np.random.default_rng(seed + 100)
    return RKHSFunction(kernel, sample(n, seed), rng.normal(size=n if outputs is None else (n, outputs)))


# Values


@every_kernel
def test_values_are_the_kernel_expansion(kernel):
    f, x = function(kernel), sample(5, seed=9)
    np.testing.assert_allclose(f(x), kernel(x, f.X) @ f.coef, rtol=1e-10, atol=1e-12)


@every_kernel
def test_several_outputs_are_several_functions(kernel):
    f, x = function(kernel, outputs=2), sample(5, seed=9)
    for j in range(2):
        column = RKHSFunction(kernel, f.X, f.coef[:, j])
        np.testing.assert_allclose(f(x)[:, j], column(x), rtol=1e-12, atol=1e-13)
        assert f.norm()[j] == pytest.approx(column.norm(), rel=1e-10)
        np.testing.assert_allclose(f.gradient(x)[:, j], column.gradient(x), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(f.bound(x)[:, j], column.bound(x), rtol=1e-10)
    assert f.n_outputs == 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_keep_the_precision_and_the_kind_of_array(dtype):
    f = RKHSFunction(Gaussian(), sample(4).astype(dtype), np.ones(4, dtype=dtype))
    x = sample(3, seed=1).astype(dtype)
    for result in (f(x), f.gradient(x), f.bound(x)):
        assert isinstance(result, np.ndarray)
        assert result.dtype == dtype
    tensors = (f(torch.tensor(x)), f.gradient(torch.tensor(x)), f.bound(torch.tensor(x)))
    assert all(isinstance(t, torch.Tensor) and t.numpy().dtype == dtype for t in tensors)


def test_a_small_memory_budget_changes_nothing_but_the_tiles(monkeypatch):
    f, x = function(Laplace(), n=50), sample(500, seed=2)
    values, gradients = f(x), f.gradient(x)
    np.testing.assert_allclose(f(x, memory_budget="200KiB"), values, rtol=1e-12)
    np.testing.assert_allclose(f.gradient(x, memory_budget="100KiB"), gradients, rtol=1e-12, atol=1e-15)
    monkeypatch.setattr(mercer.functions.products, "GRADIENT_TILE", 50 * 8 * 7)  # seven rows
    np.testing.assert_allclose(f.gradient(x), gradients, rtol=1e-12, atol=1e-15)


def test_no_rows_give_no_values():
    f = function(Gaussian(), outputs=2)
    empty = np.zeros((0, D))
    assert f.gradient(empty).shape == (0, 2, D)
    assert f.bound(empty).shape == (0, 2)


@every_kernel
def test_the_reproducing_property(kernel):
    f = function(kernel)
    for x in sample(4, seed=5):
        section = RKHSFunction(kernel, x[None], [1.0])
        assert inner(f, section) == pytest.approx(f(x[None])[0], rel=1e-9, abs=1e-12)


# The vector space


@every_kernel
def test_arithmetic_is_pointwise(kernel):
    f, g, x = function(kernel), function(kernel, n=4, seed=1), sample(6, seed=2)
    same = {"rtol": 1e-9, "atol": 1e-11}
    np.testing.assert_allclose((f + g)(x), f(x) + g(x), **same)
    np.testing.assert_allclose((f - g)(x), f(x) - g(x), **same)
    np.testing.assert_allclose((2 * f)(x), 2 * f(x), **same)
    np.testing.assert_allclose((f * np.float64(0.3))(x), 0.3 * f(x), **same)
    np.testing.assert_allclose((np.float64(0.3) * f)(x), 0.3 * f(x), **same)
    np.testing.assert_allclose((-f)(x), -f(x), **same)
    np.testing.assert_allclose((f / 4)(x), f(x) / 4, **same)
    np.testing.assert_allclose(sum([f, g, f])(x), 2 * f(x) + g(x), **same)
    assert (f + g).n_centres == 11


@every_kernel
def test_the_inner_product_is_bilinear_and_symmetric(kernel):
    f, g, h = function(kernel), function(kernel, n=4, seed=1), function(kernel, n=3, seed=2)
    assert f.inner(g) == pytest.approx(g.inner(f), rel=1e-10, abs=1e-12)
    expected = 2 * f.inner(h) - 3 * g.inner(h)
    assert (2 * f - 3 * g).inner(h) == pytest.approx(expected, rel=1e-8, abs=1e-10)


@every_kernel
def test_the_squared_norm_is_the_quadratic_form_of_the_gram_matrix(kernel):
    f = function(kernel)
    assert f.norm() ** 2 == pytest.approx(f.coef @ kernel(f.X) @ f.coef, rel=1e-9)
    assert isinstance(f.norm(), float)


@every_kernel
@pytest.mark.parametrize("seed", range(3))
def test_cauchy_schwarz_and_the_triangle_inequality(kernel, seed):
    f, g = function(kernel, seed=seed), function(kernel, n=5, seed=seed + 50)
    assert abs(f.inner(g)) <= f.norm() * g.norm() * (1 + 1e-10)
    assert (f + g).norm() <= (f.norm() + g.norm()) * (1 + 1e-10)
    assert f.distance(g) == pytest.approx((f - g).norm(), rel=1e-8)


@every_kernel
def test_the_pointwise_bound_holds_and_is_attained_by_sections(kernel):
    f, g, x = function(kernel), function(kernel, n=4, seed=1), sample(200, seed=3)
    assert np.all(np.abs(f(x)) <= f.bound(x) * (1 + 1e-10))
    assert np.all(np.abs(f(x) - g(x)) <= f.bound(x, g) * (1 + 1e-10))
    section = RKHSFunction(kernel, x[:1], [1.0])
    assert section(x[:1])[0] == pytest.approx(section.bound(x[:1])[0], rel=1e-9)


# Two ways to write one function


def test_equal_centres_merge_in_order_of_appearance():
    f = RKHSFunction(Gaussian(), [[1.0], [0.0], [1.0], [-0.0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [1.0, 1.0]])
    merged = f.simplify()
    np.testing.assert_array_equal(merged.X, [[1.0], [0.0]])
    np.testing.assert_array_equal(merged.coef, [[6.0, 8.0], [4.0, 5.0]])
    assert merged.simplify() is merged


@every_kernel
def test_two_representations_of_one_function_have_distance_zero(kernel):
    f = function(kernel)
    twice = RKHSFunction(kernel, np.vstack([f.X, f.X])[::-1], np.concatenate([0.25 * f.coef, 0.75 * f.coef])[::-1])
    assert f.distance(twice) <= 1e-15 * f.norm()
    assert (f - f).simplify().norm() == 0.0
    assert f.distance(f + function(kernel, seed=1) - function(kernel, seed=1)) == 0.0


def test_representations_with_different_centres_agree_to_rounding():
    for seed in range(30):  # the squared distance is rounding, of either sign
        x = sample(2, seed)
        f, g = RKHSFunction(Linear(), x, [1.0, 1.0]), RKHSFunction(Linear(), x.sum(0, keepdims=True), [1.0])
        assert 0.0 <= f.distance(g) <= 1e-7 * f.norm()


def test_norms_of_float32_functions_are_computed_in_float64():
    rng = np.random.default_rng(0)
    x, c = rng.normal(size=(40, D)).astype(np.float32) / 30, rng.normal(size=40).astype(np.float32)
    f = RKHSFunction(Gaussian(), x, c - c.mean())
    assert f.norm() == pytest.approx(RKHSFunction(Gaussian(), np.float64(x), np.float64(f.coef)).norm(), rel=1e-12)


def test_norms_that_overflow_are_refused():
    with pytest.raises(InputError, match="overflows"):
        RKHSFunction(Gaussian(), [[0.0], [1.0]], [1e200, -1e200]).norm()


def test_norms_of_cancelling_sums_are_never_nan():
    x = sample(30) * 1e-4
    for seed in range(20):
        c = np.random.default_rng(seed).normal(size=30) * 1e6
        f = RKHSFunction(Gaussian(), x, c - c.mean())
        assert np.isfinite(f.norm())


def test_a_function_that_is_not_a_kernel_is_found_out_by_its_norm():
    with pytest.raises(NotPositiveDefiniteError, match=r"Indefinite.*squared norm"):
        RKHSFunction(Indefinite(), [[1.0]], [2.0]).norm()


def test_row_noise_takes_no_part():
    noisy, plain = Gaussian() + WhiteNoise(0.5), Gaussian()
    f, g = function(noisy), function(plain)
    assert f.norm() == pytest.approx(g.norm(), rel=1e-12)
    np.testing.assert_allclose(f(f.X), g(f.X), rtol=1e-12)
    words = ["kernel", "kernels"]
    noisy, plain = (RKHSFunction(k, words, [1.0, 2.0]) for k in (Spectrum() + WhiteNoise(0.5), Spectrum()))
    assert noisy.norm() == pytest.approx(plain.norm(), rel=1e-12)


# Derivatives


@smooth_kernel
def test_gradients_equal_finite_differences(kernel):
    f, x, h = function(kernel, outputs=2), sample(4, seed=8), 1e-5
    steps = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(D)]
    np.testing.assert_allclose(f.gradient(x), np.stack(steps, axis=2), rtol=1e-6, atol=1e-7)


def test_gradients_are_finite_at_kinks_and_right_beside_them():
    f = RKHSFunction(Laplace(), [[0.0], [1.0]], [1.0, 1.0])
    np.testing.assert_allclose(f.gradient([[0.0], [0.5], [1.0]])[:, 0], [np.exp(-1), 0.0, -np.exp(-1)], atol=1e-12)


def test_a_constant_has_gradient_zero():
    f = RKHSFunction(Constant(2.0), [[0.0, 0.0]], [1.0])
    np.testing.assert_array_equal(f.gradient(sample(3, d=2)), np.zeros((3, 2)))
    level = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    g = RKHSFunction(Constant().replace(constant_value=level), [[0.0, 0.0]], [1.0])
    np.testing.assert_array_equal(g.gradient(sample(3, d=2)), np.zeros((3, 2)))


def test_gradients_flow_to_inputs_centres_coefficients_and_parameters():
    x, z = torch.tensor(sample(3), requires_grad=True), torch.tensor(sample(4, 1), requires_grad=True)
    c = torch.ones(4, dtype=torch.float64, requires_grad=True)
    width = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)

    def values(x, z, c, width):
        return RKHSFunction(Gaussian().replace(length_scale=width), z, c)(x)

    def norms(z, c, width):
        return RKHSFunction(Gaussian().replace(length_scale=width), z, c).norm()

    assert torch.autograd.gradcheck(values, (x, z, c, width))
    assert torch.autograd.gradcheck(norms, (z, c, width))
    f = RKHSFunction(Gaussian(), z.detach(), c.detach())
    torch.testing.assert_close(torch.autograd.grad(f(x).sum(), x)[0], f.gradient(x))
    assert not f.gradient(x).requires_grad


def test_the_norm_of_the_zero_function_has_a_finite_gradient():
    c = torch.zeros(2, requires_grad=True)
    RKHSFunction(Gaussian(), torch.ones(2, 1), c).norm().backward()
    assert torch.isfinite(c.grad).all()


def test_torch_coefficients_give_tensors_and_scale_by_tensors():
    f = RKHSFunction(Gaussian(), torch.eye(2), torch.ones(2))
    assert isinstance(f.norm(), torch.Tensor)
    assert f.norm().dtype == torch.float32
    assert isinstance(f.coef, torch.Tensor)
    assert isinstance(f.X, torch.Tensor)
    for scaled in (f * torch.tensor(3.0), torch.tensor(3.0) * f, f / torch.tensor(1 / 3)):
        torch.testing.assert_close(scaled.coef, torch.full((2,), 3.0))
    assert isinstance((f + RKHSFunction(Gaussian(), np.eye(2), np.ones(2))).norm(), torch.Tensor)
    assert isinstance(RKHSFunction(Gaussian(), torch.eye(2), [1.0, 1.0]).norm(), float)


# Objects and names


def test_functions_of_strings_follow_the_same_laws():
    letters = Spectrum(k=1, normalised=False)
    f = RKHSFunction(letters, ["abc", "aab", "".join("abc")], [1.0, 2.0, 0.5])
    np.testing.assert_allclose(f(["a", "dd"]), [1.0 + 4.0 + 0.5, 0.0])
    assert f.simplify().X == ["abc", "aab"]
    assert f.distance(f.simplify()) == 0.0
    assert f.norm() ** 2 == pytest.approx(f.inner(f))
    assert f.inner(RKHSFunction(letters, ["b"], [1.0])) == pytest.approx(f(["b"])[0])
    assert np.all(np.abs(f(["abcd", "b"])) <= f.bound(["abcd", "b"]))
    assert (f + f).n_centres == 6
    assert repr(f) == "RKHSFunction(3 centres, kernel=Spectrum(k=1, normalised=False))"
    with pytest.raises(InputTypeError, match="no gradient"):
        f.gradient(["a"])


def test_objects_that_cannot_be_hashed_merge_with_themselves_only():
    word, other = {"a", "b"}, {"a", "b"}
    f = RKHSFunction(Callable(shared), [word, other, word], [1.0, 2.0, 3.0]).simplify()
    np.testing.assert_array_equal(f([{"a", "b"}, {"b"}]), [12.0, 6.0])
    np.testing.assert_array_equal(f.coef, [4.0, 2.0])
    with pytest.raises(InputTypeError, match="rows of numbers, the other objects"):
        f(np.ones((2, 2)))


def test_functions_of_a_ready_gram_matrix_share_it():
    points, K = sample(6), Gaussian()(sample(6))
    f, g = RKHSFunction(Precomputed(), K, np.ones(6)), RKHSFunction(Precomputed(), K, np.arange(6.0))
    twin_f, twin_g = RKHSFunction(Gaussian(), points, f.coef), RKHSFunction(Gaussian(), points, g.coef)
    assert f.norm() == pytest.approx(twin_f.norm())
    assert f.inner(g) == pytest.approx(twin_f.inner(twin_g))
    assert f.distance(g) == pytest.approx(twin_f.distance(twin_g))
    assert f.distance(f) == 0.0
    x = sample(3, seed=1)
    np.testing.assert_allclose((f - 2 * g)(Gaussian()(x, points)), (twin_f - 2 * twin_g)(x), rtol=1e-9)
    with pytest.raises(InputError, match="different Gram matrices"):
        f + RKHSFunction(Precomputed(), 2 * K, np.ones(6))
    with pytest.raises(InputTypeError, match="no gradient"):
        f.gradient(K)
    with pytest.raises(InputError, match="square"):
        RKHSFunction(Precomputed(), K[:3], np.ones(3))


def test_columns_chosen_by_name_are_found_in_frames_and_arrays():
    frame = pd.DataFrame(sample(3, d=2), columns=["a", "b"])
    f = RKHSFunction(Subspace(Gaussian(), ["b"]), frame, np.ones(3))
    g = RKHSFunction(Gaussian(), frame[["b"]], np.ones(3))
    np.testing.assert_allclose(f(frame), g(frame[["b"]]))
    np.testing.assert_allclose(f(frame.to_numpy()), g(frame[["b"]]))
    np.testing.assert_allclose(f.gradient(frame)[:, [1]], g.gradient(frame[["b"]]))
    assert not f.gradient(frame)[:, 0].any()
    assert f.norm() == pytest.approx(g.norm())


def test_column_names_must_agree():
    frame = pd.DataFrame(sample(3, d=2), columns=["a", "b"])
    f = RKHSFunction(Gaussian(), frame, np.ones(3))
    np.testing.assert_allclose(f(frame), f(frame.to_numpy()))
    with pytest.raises(InputError, match=r"\['b', 'a'\].*\['a', 'b'\]"):
        f(frame[["b", "a"]])
    with pytest.raises(InputError, match="columns"):
        f + RKHSFunction(Gaussian(), frame[["b", "a"]], np.ones(3))


def test_the_repr_says_what_it_is():
    assert repr(function(Linear())) == "RKHSFunction(7 centres in R^3, kernel=Linear(bias=0.0))"
    assert "1 centre in R^1, 2 outputs" in repr(RKHSFunction(Linear(), [[1.0]], [[1.0, 2.0]]))


def test_a_pickle_is_the_same_function_and_holds_no_more_than_it_needs():
    rows = torch.randn(100_000, 2, generator=torch.Generator().manual_seed(0))
    f = RKHSFunction(Gaussian(), rows[:5], rows[:5, 0])
    data = pickle.dumps(f)
    assert len(data) < 10_000
    assert pickle.loads(data).distance(f) == 0.0
    frame = pd.DataFrame(sample(3, d=2), columns=["a", "b"])
    g = pickle.loads(pickle.dumps(RKHSFunction(Gaussian(), frame, np.ones(3))))
    assert isinstance(g.coef, np.ndarray)
    with pytest.raises(InputError, match="columns"):
        g(frame[["b", "a"]])


# Bad input


@pytest.mark.parametrize(
    ("X", "coef", "message"),
    [
        (np.ones((3, 2)), np.ones(2), "coef has 2 rows but X has 3"),
        (np.ones((3, 2)), np.ones((3, 1, 1)), r"coef must have shape.*\(3, 1, 1\)"),
        (np.ones((3, 2)), 1.0, r"coef must have shape.*got shape \(\)"),
        (np.ones((3, 2)), [1.0, np.nan, 1.0], "coef contains NaN"),
        (np.ones((3, 2)), [1.0, np.inf, 1.0], "coef contains infinity"),
        (np.ones((3, 2)), np.ones((3, 0)), "coef has no columns"),
        (np.ones((3, 2)), np.ones(3) * 1j, "coef is complex"),
        (np.ones((3, 2)), ["a", "b", "c"], "coef has dtype"),
        (np.ones((0, 2)), np.ones(0), "X has no rows"),
        (np.ones(3), np.ones(3), "X must be a matrix"),
        ([[np.nan]], [1.0], "X contains NaN"),
    ],
)
def test_bad_centres_and_coefficients_are_named(X, coef, message):
    with pytest.raises((InputError, InputTypeError), match=message):
        RKHSFunction(Gaussian(), X, coef)


def test_bad_kernels_are_named():
    with pytest.raises(InputTypeError, match="kernel='rbf'"):
        RKHSFunction("rbf", [[1.0]], [1.0])
    with pytest.raises(InputError, match="median"):
        RKHSFunction(Gaussian(length_scale="median"), [[1.0]], [1.0])
    with pytest.raises(InputError, match="length_scale has 2 entries"):
        RKHSFunction(Gaussian(length_scale=(1.0, 2.0)), [[1.0]], [1.0])


def test_functions_of_different_spaces_do_not_mix():
    f = function(Gaussian(length_scale=1.0))
    other = function(Gaussian(length_scale=2.0))
    for mix in (lambda: f + other, lambda: f - other, lambda: f.inner(other), lambda: f.distance(other)):
        with pytest.raises(InputError, match=r"different kernels.*length_scale=1.0.*length_scale=2.0"):
            mix()
    with pytest.raises(InputError, match="1 and 2 outputs"):
        f + function(Gaussian(length_scale=1.0), outputs=2)
    with pytest.raises(InputError, match="2 columns but the function takes 3"):
        f(sample(4, d=2))
    with pytest.raises(InputError, match="2 columns but the function takes 3"):
        f.inner(RKHSFunction(Gaussian(length_scale=1.0), sample(4, d=2), np.ones(4)))


@pytest.mark.parametrize("number", [0, np.inf, np.nan])
def test_a_function_is_not_divided_by_zero_or_infinity(number):
    with pytest.raises(InputError, match="cannot be divided"):
        function(Gaussian()) / number


def test_what_is_no_number_and_no_function_is_refused():
    f = function(Gaussian())
    for mix in (lambda: f + 1, lambda: f - 1, lambda: f * "a", lambda: f / "a", lambda: np.ones(2) * f, lambda: f * f):
        with pytest.raises(TypeError):
            mix()
    with pytest.raises(InputError, match="multiplied by nan"):
        f * np.nan
    with pytest.raises(InputTypeError, match="got int"):
        f.inner(3)
    with pytest.raises(InputTypeError, match="got int"):
        inner(3, f)


def test_attributes_cannot_be_reassigned():
    f = function(Gaussian())
    for name in ("kernel", "X", "coef", "n_centres"):
        with pytest.raises(AttributeError):
            setattr(f, name, None)
