"""Sums, products, scalings and powers of kernels are kernels: laws on random expressions."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import mercer.kernels
from mercer.core.arrays import as_points
from mercer.core.errors import InputError, InputTypeError, NotTraceable
from mercer.kernels import (
    AllSubsets,
    Constant,
    ExponentialPower,
    Gaussian,
    InverseMultiquadric,
    Laplace,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Power,
    Product,
    RationalQuadratic,
    Scaled,
    Spectrum,
    Subspace,
    Sum,
    from_dict,
    resolve,
    to_dict,
)
from mercer.testing import run_program

positive = st.floats(0.2, 5.0)
scale = st.one_of(positive, st.tuples(positive, positive, positive))
leaf = st.one_of(
    st.builds(Gaussian, scale),
    st.builds(Laplace, scale, st.sampled_from(["l1", "l2"])),
    st.builds(ExponentialPower, scale, st.floats(0.2, 2.0)),
    st.builds(Matern, st.sampled_from([0.5, 0.8, 1.5, 2.5, float("inf")]), scale),
    st.builds(RationalQuadratic, scale, positive),
    st.builds(InverseMultiquadric, scale, positive),
    st.builds(Periodic, scale, scale),
    st.builds(Linear, st.floats(0.0, 2.0)),
    st.builds(Polynomial, st.integers(1, 3), positive, st.floats(0.0, 2.0)),
    st.builds(Constant, positive),
    st.just(AllSubsets()),
)
piece = st.one_of(leaf, st.builds(Subspace, st.builds(Gaussian, positive), st.sampled_from([(0,), (2, 1), (-1,)])))
kernels = st.recursive(
    piece,
    lambda inner: st.one_of(
        st.builds(Sum, inner, inner),
        st.builds(Product, inner, inner),
        st.builds(Scaled, inner, positive),
        st.builds(Power, inner, st.integers(1, 3)),
    ),
    max_leaves=5,
)
laws = settings(max_examples=60, deadline=None, derandomize=True)


def sample(seed, n=9):
    return np.random.default_rng(seed).normal(size=(n, 3))


def assert_close(a, b, tolerance=1e-11):
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(np.abs(a).max(), np.abs(b).max()))


@given(kernels, kernels, kernels, st.integers(0, 99))
@laws
def test_products_distribute_over_sums(k1, k2, k3, seed):
    X, Z = sample(seed), sample(seed + 100, 5)
    assert_close((k1 * (k2 + k3))(X, Z), (k1 * k2 + k1 * k3)(X, Z))


@given(kernels, st.integers(0, 99))
@laws
def test_gram_matrices_are_symmetric_and_positive_semi_definite(kernel, seed):
    X = sample(seed)
    X[1] = X[0]
    K = kernel(X)
    assert_close(K, K.T)
    eigenvalues = np.linalg.eigvalsh(K)
    assert eigenvalues[0] >= -1e-11 * eigenvalues[-1]


@given(kernels, st.integers(0, 99))
@laws
def test_the_diagonal_is_that_of_the_matrix_and_bounds_it(kernel, seed):
    X, Z = sample(seed), sample(seed + 100, 5)
    assert_close(kernel.diag(X), np.diagonal(kernel(X)))
    assert (kernel.diag(X) >= 0).all()
    assert (kernel(X, Z) ** 2 <= np.outer(kernel.diag(X), kernel.diag(Z)) * (1 + 1e-9)).all()


@given(kernels)
@laws
def test_repr_evaluates_back_to_an_equal_kernel_with_an_equal_hash(kernel):
    again = eval(repr(kernel), vars(mercer.kernels))
    assert again == kernel
    assert hash(again) == hash(kernel)
    assert repr(again) == repr(kernel)


@given(kernels)
@laws
def test_copies_pickles_saved_data_and_parameters_give_an_equal_kernel(kernel):
    for other in (
        copy.deepcopy(kernel),
        pickle.loads(pickle.dumps(kernel)),
        from_dict(to_dict(kernel)),
        kernel.replace(**kernel.get_params()),
        kernel.replace(),
    ):
        assert other == kernel
        assert hash(other) == hash(kernel)


@given(kernels, kernels)
@laws
def test_kernels_are_equal_exactly_when_they_print_alike(k1, k2):
    assert (k1 == k2) == (repr(k1) == repr(k2))


@given(kernels, st.integers(0, 99))
@laws
def test_the_traced_program_computes_the_formula(kernel, seed):
    x, z = as_points(sample(seed)), as_points(sample(seed + 100, 5))
    program = kernel.program(x.take(slice(0, 2)))
    assert_close(run_program(program, x).numpy(), kernel(x.values).numpy(), 1e-9)
    assert_close(run_program(program, x, z).numpy(), kernel(x.values, z.values).numpy(), 1e-9)


@given(kernels, st.integers(0, 99))
@laws
def test_derivatives_equal_differences(kernel, seed):
    x = torch.from_numpy(sample(seed, 4)).requires_grad_()
    z, direction = torch.from_numpy(sample(seed + 100, 3)), torch.from_numpy(sample(seed + 200, 4))
    value = kernel(x, z).sum()
    slope = torch.autograd.grad(value, x)[0] if value.requires_grad else torch.zeros_like(x)
    with torch.no_grad():
        ahead, behind = (kernel(x + h * direction, z).sum() for h in (1e-6, -1e-6))
    size = float((slope * direction).abs().sum()) + 1e-3 * abs(float(value.detach())) + 1e-6
    assert abs(float((slope * direction).sum()) - float(ahead - behind) / 2e-6) <= 1e-4 * size


def test_operators_build_the_classes_they_stand_for():
    a, b = Gaussian(2.0), Linear()
    assert a + b == Sum(a, b)
    assert a * b == Product(a, b)
    assert 3 * a == a * 3.0 == np.float64(3.0) * a == Scaled(a, 3.0)
    assert a**2 == Power(a, 2) == a**2.0
    assert a + 1 == Sum(a, Constant(1.0))
    assert 1 + a == Sum(Constant(1.0), a)
    assert sum([a, b, a]) == Sum(Sum(a, b), a)
    assert a + 0 is a


def test_sums_of_hundreds_of_kernels_work():
    kernel = sum(Subspace(Gaussian("median"), i) for i in range(300))
    X = np.random.default_rng(0).normal(size=(4, 300))
    found = resolve(kernel, X)
    np.testing.assert_allclose(found.diag(X), 300.0)
    assert eval(repr(found), vars(mercer.kernels)) == found.bind([str(i) for i in range(300)])
    assert len({found, pickle.loads(pickle.dumps(found))}) == 1


def test_repr_keeps_the_order_of_operations():
    a, b, c = Gaussian(2.0), Linear(), Constant(1.0)
    for kernel in (a + (b + c), (a + b) * c, a * (b * c), (a * b) ** 2, (a**2) ** 3, 2.0 * (a + b), 2.0 * (3.0 * a)):
        assert eval(repr(kernel), vars(mercer.kernels)) == kernel
    assert repr(a + (b + c)) != repr((a + b) + c)
    assert repr(2.0 * a + b**2) == "2.0 * Gaussian(length_scale=2.0) + Linear(bias=0.0) ** 2"


def test_equal_kernels_built_from_ints_and_arrays_are_equal():
    assert Gaussian(2) == Gaussian(2.0) == Gaussian(np.float32(2)) == Gaussian(np.array(2.0))
    assert Gaussian([1, 2]) == Gaussian(np.array([1.0, 2.0])) == Gaussian((1.0, 2.0))
    assert Gaussian(1.0) != Gaussian((1.0,))
    assert Gaussian(1.0) != Laplace(1.0)
    assert len({Gaussian(1.0), Gaussian(1), Laplace(1.0)}) == 2


@pytest.mark.parametrize("left", [np.ones(2), torch.ones(2), "k", None, [1.0]])
def test_products_with_arrays_and_other_things_are_type_errors(left):
    for operation in (lambda: left * Gaussian(), lambda: Gaussian() * left, lambda: left + Gaussian()):
        with pytest.raises(TypeError):
            operation()


@pytest.mark.parametrize("factor", [-1.0, 0.0, float("nan"), float("inf")])
def test_scaling_by_anything_but_a_positive_number_is_rejected(factor):
    with pytest.raises(InputError, match=rf"Scaled\(factor={factor!r}\): must be a number > 0"):
        factor * Gaussian()
    if factor != 0:
        with pytest.raises(InputError, match=rf"Constant\(constant_value={factor!r}\)"):
            Gaussian() + factor


@pytest.mark.parametrize("exponent", [2.5, 0, -1, float("nan"), float("inf")])
def test_powers_must_be_positive_integers(exponent):
    with pytest.raises(InputError, match=rf"Power\(exponent={exponent!r}\).*must be an integer > 0"):
        Gaussian() ** exponent


@pytest.mark.parametrize("value", [True, "2"])
def test_truth_values_and_text_are_not_numbers(value):
    with pytest.raises(TypeError):
        Gaussian() ** value
    with pytest.raises(TypeError):
        Gaussian() * value


def test_composite_kernels_hold_kernels_only():
    with pytest.raises(InputTypeError, match=r"Sum\(k2=3\): k2 must be a kernel"):
        Sum(Gaussian(), 3)
    with pytest.raises(InputTypeError, match=r"Scaled\(kernel='gaussian'\)"):
        Scaled("gaussian", 2.0)


def test_scaling_by_a_function_multiplies_both_sides():
    X, Z = sample(0), sample(1, 4)
    for kernel in ((lambda A: A[:, 0] ** 2) * Gaussian(), Gaussian() * (lambda A: A[:, 0] ** 2)):
        expected = X[:, :1] ** 2 * Gaussian()(X, Z) * Z[:, 0] ** 2
        np.testing.assert_allclose(kernel(X, Z), expected, rtol=1e-12)


def test_a_scaling_function_must_give_one_number_per_row():
    def both_columns(X):
        return X[:, :2]

    with pytest.raises(InputError, match=r"both_columns must map .* it gave shape \(9, 2\) for 9 rows"):
        (both_columns * Gaussian())(sample(0))
    with pytest.raises(InputTypeError, match="must return an array of numbers, got str"):
        ((lambda X: "text") * Gaussian())(sample(0))
    with pytest.raises(InputError, match="The result of <lambda> contains NaN"):
        ((lambda X: X[:, 0] * float("nan")) * Gaussian())(sample(0))


def test_kernels_of_strings_and_of_vectors_do_not_mix_on_strings():
    with pytest.raises(InputTypeError, match="kernel of rows of numbers was given other objects"):
        (Spectrum() + Gaussian())(["abc", "abd"])


def test_replace_reaches_inner_kernels_and_names_what_is_missing():
    kernel = 2.0 * (Gaussian(1.0) + Linear())
    changed = kernel.replace(kernel__k1__length_scale=3.0, factor=5.0)
    assert changed == 5.0 * (Gaussian(3.0) + Linear())
    assert kernel.get_params()["kernel__k1__length_scale"] == 1.0
    assert kernel.replace(kernel=Gaussian(), kernel__length_scale=4.0) == 2.0 * Gaussian(4.0)
    with pytest.raises(InputError, match=r"Scaled has no parameter 'gamma'; it has \['factor', 'kernel'"):
        kernel.replace(gamma=1.0)
    with pytest.raises(InputError, match="factor is not a kernel"):
        kernel.replace(factor__length_scale=1.0)


def test_tunable_parameters_are_the_positive_continuous_ones():
    kernel = 2.0 * Polynomial(2, offset=0.0) + Matern(1.5, (1.0, 2.0)) + Gaussian("median") ** 2
    assert kernel.tunable() == {
        "k1__k1__factor": 2.0,
        "k1__k1__kernel__scale": 1.0,
        "k1__k2__length_scale": (1.0, 2.0),
    }


def test_a_kernel_with_a_tensor_is_differentiated_not_traced():
    width = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    for kernel, path in (
        (Gaussian() + Linear(), "k1__length_scale"),
        (2.0 * Gaussian(), "factor"),
        (Periodic(), "period"),
    ):
        changed = kernel.replace(**{path: width})
        assert changed != kernel
        assert changed == kernel.replace(**{path: width})
        assert changed != kernel.replace(**{path: width.clone()})
        assert changed(torch.from_numpy(sample(0))).requires_grad
        with pytest.raises(NotTraceable):
            changed.program(as_points(sample(0)))
