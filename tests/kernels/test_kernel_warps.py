"""Kernels of some columns and of features."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import torch

from mercer.core.arrays import as_points
from mercer.core.errors import InputError, InputTypeError
from mercer.kernels import FeatureMap, Gaussian, Laplace, Linear, Subspace
from mercer.testing.examples import METRIC, monomials

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(7, 3)), rng.normal(size=(4, 3))


@pytest.mark.parametrize("columns", [1, [1], (1,), np.int64(1), np.array([1]), range(1, 2), -2])
def test_a_subspace_sees_its_columns_only(columns):
    kernel = Subspace(Gaussian(), columns)
    np.testing.assert_array_equal(kernel(X, Z), Gaussian()(X[:, [1]], Z[:, [1]]))
    assert isinstance(kernel.columns, tuple)
    assert all(type(c) is int for c in kernel.columns)


def test_columns_keep_their_order_which_matters_for_one_length_scale_per_column():
    kernel = Subspace(Gaussian((1.0, 3.0)), (2, 0))
    np.testing.assert_allclose(kernel(X), Gaussian((1.0, 3.0))(X[:, [2, 0]]))


def test_subspaces_of_subspaces_count_within():
    inner = Subspace(Subspace(Linear(), 1), (2, 0))
    np.testing.assert_allclose(inner(X), X[:, :1] @ X[:, :1].T)


def test_an_additive_model_is_a_sum_over_columns():
    kernel = sum(Subspace(Laplace(), j) for j in range(3))
    np.testing.assert_allclose(kernel(X), sum(Laplace()(X[:, [j]]) for j in range(3)))


def test_binding_turns_names_into_positions_so_that_plain_arrays_work():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    kernel = 2.0 * Subspace(Gaussian(), ["c", "a"]) + Subspace(Subspace(Linear(), "c"), ["b", "c"]) ** 2
    bound = kernel.bind(["a", "b", "c"])
    assert bound == 2.0 * Subspace(Gaussian(), (2, 0)) + Subspace(Subspace(Linear(), 1), (1, 2)) ** 2
    np.testing.assert_array_equal(bound(X), kernel(frame))
    assert bound.bind(["a", "b", "c"]) == bound
    assert kernel.bind(None) == kernel
    assert Gaussian().bind(["a"]) == Gaussian()
    with pytest.raises(InputError, match=r"Column 'c' is not in the data; its columns are \['a', 'b'\]"):
        kernel.bind(["a", "b"])
    with pytest.raises(InputError, match="Column 'b' is not in the data"):
        Subspace(Subspace(Linear(), "b"), "a").bind(["a", "b"])


def test_columns_cannot_be_taken_from_objects():
    from mercer.kernels import Callable

    with pytest.raises(InputTypeError, match="Columns can be selected from a table of numbers only"):
        Subspace(Callable(lambda a, b: 1.0), 0)(["a", "b"])


@pytest.mark.parametrize("metric", [METRIC, np.array(METRIC), torch.tensor(METRIC), [list(row) for row in METRIC]])
def test_a_feature_map_is_the_inner_product_of_features_in_its_metric(metric):
    kernel = FeatureMap(monomials, metric)
    features_x, features_z = (monomials(torch.from_numpy(A)).numpy() for A in (X, Z))
    np.testing.assert_allclose(kernel(X, Z), features_x @ np.array(METRIC) @ features_z.T, rtol=1e-9, atol=1e-12)
    assert kernel == FeatureMap(monomials, METRIC)
    assert hash(kernel) == hash(FeatureMap(monomials, METRIC))
    assert kernel != FeatureMap(monomials)
    assert pickle.loads(pickle.dumps(kernel)) == kernel


def test_one_number_per_row_is_one_feature():
    expected = (X**2).sum(1)[:, None] * (Z**2).sum(1)
    for phi in (
        lambda x: x.square().sum(1),
        lambda x: (np.asarray(x) ** 2).sum(1),
        lambda x: (x**2).sum(1, keepdim=True),
    ):
        np.testing.assert_allclose(FeatureMap(phi)(X, Z), expected)


def test_features_keep_the_dtype_of_the_rows():
    single = FeatureMap(lambda x: np.asarray(x, dtype=np.float64))(X.astype(np.float32))
    assert single.dtype == np.float32


def wrong(result):
    def phi(x):
        return result(x)

    return phi


@pytest.mark.parametrize(
    ("phi", "message"),
    [
        (lambda x: x[:3], r"phi must map 7 rows to a matrix of 7 rows of features; it gave shape \(3, 3\)"),
        (lambda x: x[:, :, None], r"it gave shape \(7, 3, 1\)"),
        (lambda x: torch.ones(()), r"it gave shape \(\)"),
        (lambda x: x / 0.0, "The result of phi contains infinity"),
        (lambda x: "text", "phi must return an array of numbers, got str"),
        (lambda x: None, "phi must return an array of numbers, got NoneType"),
    ],
)
def test_features_of_the_wrong_shape_are_rejected(phi, message):
    with pytest.raises((InputError, InputTypeError), match=message):
        FeatureMap(wrong(phi))(X)


def test_a_metric_of_the_wrong_size_is_rejected():
    with pytest.raises(InputError, match="metric is 3 x 3 but phi gives 2 features"):
        FeatureMap(wrong(lambda x: x[:, :2]), METRIC)(X)


def test_numpy_features_refuse_gradients_rather_than_dropping_them():
    x = torch.from_numpy(X).requires_grad_()
    for phi in (np.sin, lambda x: x.detach().numpy()):
        with pytest.raises(InputTypeError, match="has no gradient, but X requires one"):
            FeatureMap(phi)(x)
        with pytest.raises(InputTypeError, match="has no gradient"):
            ((lambda x: phi(x)[:, 0]) * Gaussian())(x)  # noqa: B023
    with pytest.raises(RuntimeError, match="out of order"):
        FeatureMap(wrong(broken))(x)


def broken(x):
    raise RuntimeError("out of order")


def test_gradients_pass_through_features():
    x = torch.from_numpy(X).requires_grad_()
    (gradient,) = torch.autograd.grad(FeatureMap(monomials, METRIC)(x, torch.from_numpy(Z)).sum(), x)
    assert gradient.abs().sum() > 0


def test_warps_are_traced_as_inputs_of_one_program():
    kernel = Subspace(Gaussian(), 0) + Subspace(Gaussian(), (0,)) * FeatureMap(monomials)
    program = kernel.program(as_points(X))
    assert sorted(statistic.kind for statistic in program.inputs) == ["inner", "squared_distance"]
