"""Kernels of objects: functions, ready matrices and strings."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel

from mercer.core.arrays import as_points
from mercer.core.errors import InputError, InputTypeError
from mercer.kernels import Callable, Gaussian, Linear, Precomputed, Spectrum, Subspace, WhiteNoise
from mercer.kernels.pair import DensePair

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(6, 2)), rng.normal(size=(4, 2))
SETS = [{1, 2}, {2, 3, 4}, set(), {1, 4}]


def overlap(a, b):
    return len(a & b)


def test_a_function_of_two_objects_is_a_kernel():
    expected = [[overlap(a, b) for b in SETS[:2]] for a in SETS]
    np.testing.assert_array_equal(Callable(overlap)(SETS, SETS[:2]), expected)
    np.testing.assert_array_equal(Callable(overlap).diag(SETS), [2, 3, 0, 2])
    objects = np.empty(4, dtype=object)
    objects[:] = SETS
    np.testing.assert_array_equal(Callable(overlap)(objects), Callable(overlap)(SETS))
    np.testing.assert_array_equal(Callable(overlap)(pd.Series(SETS)), Callable(overlap)(SETS))


@pytest.mark.parametrize(
    "table", [X, torch.from_numpy(X), pd.DataFrame(X, columns=["a", "b"])], ids=lambda t: type(t).__name__
)
def test_rows_of_a_table_arrive_as_one_dimensional_arrays(table):
    seen = []

    def dot(a, b):
        seen.append((type(a), a.shape, b.dtype))
        return a @ b

    result = Callable(dot)(table)
    np.testing.assert_allclose(result, X @ X.T)
    assert set(seen) == {(np.ndarray, (2,), np.dtype(np.float64))}
    assert isinstance(result, torch.Tensor) == isinstance(table, torch.Tensor)


def test_lists_and_other_collections_arrive_as_they_are():
    assert Callable(lambda a, b: float(a == b == [1, 2]))([[1, 2]]) == [[1.0]]
    assert Callable(lambda a, b: a * b)([3.0, 4.0]).tolist() == [[9.0, 12.0], [12.0, 16.0]]
    assert Callable(lambda a, b: a * b)(np.array([3.0, 4.0])).tolist() == [[9.0, 12.0], [12.0, 16.0]]
    mixed = pd.DataFrame({"town": ["Ulm", "Ulm"], "size": [1, 2]})
    assert Callable(lambda a, b: float(a[0] == b[0]))(mixed).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    images = np.ones((2, 3, 3))
    assert Callable(lambda a, b: float((a * b).sum()))(images).tolist() == [[9.0, 9.0], [9.0, 9.0]]


def test_a_vectorised_function_gives_the_whole_matrix():
    kernel = Callable(rbf_kernel, vectorised=True)
    np.testing.assert_allclose(kernel(X, Z), rbf_kernel(X, Z))
    np.testing.assert_allclose(kernel(X), rbf_kernel(X))
    np.testing.assert_allclose(kernel.diag(X), np.ones(6))
    on_lists = Callable(lambda A, B: [[overlap(a, b) for b in B] for a in A], vectorised=True)
    np.testing.assert_array_equal(on_lists(SETS), Callable(overlap)(SETS))


def test_functions_compose_with_kernels_of_vectors_on_a_table():
    kernel = 2.0 * Callable(lambda a, b: a @ b) ** 2 * Gaussian() + Subspace(Linear(), 0) + WhiteNoise(0.1)
    expected = 2.0 * (X @ X.T) ** 2 * Gaussian()(X) + X[:, :1] @ X[:, :1].T + 0.1 * np.eye(6)
    np.testing.assert_allclose(kernel(X), expected)
    assert Subspace(Callable(lambda a, b: a @ b), 1)(X, Z) == pytest.approx(X[:, 1:] @ Z[:, 1:].T)


def named(function):
    function.__name__ = "f"
    return function


@pytest.mark.parametrize("vectorised", [False, True])
def test_a_function_that_is_not_symmetric_is_rejected_with_the_pair_and_values(vectorised):
    f = named(lambda A, B: A[:, :1] + 0 * B[:, 0]) if vectorised else named(lambda a, b: a[0])
    with pytest.raises(InputError, match=r"symmetric, but f\(X\[0\], X\[1\]\) = 1 and f\(X\[1\], X\[0\]\) = 3"):
        Callable(f, vectorised)(np.array([[1.0], [3.0]]))


def test_asymmetry_is_noticed_on_the_diagonal_tiles_of_a_large_sample():
    x, places = as_points(X), torch.arange(6)
    kernel = Callable(named(lambda a, b: a[0]))
    with pytest.raises(InputError, match="must be symmetric"):
        kernel.on(DensePair(x, x, (places, places)))


def test_rounding_is_not_asymmetry():
    kernel = Callable(lambda a, b: float(a @ b) * (1 + 1e-13 * (a[0] > b[0])))
    np.testing.assert_allclose(kernel(X), X @ X.T)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda a, b: float("nan"), r"f(X[0], X[0]) is nan; a kernel gives finite numbers"),
        (lambda a, b: np.inf * (a[0] == 3.0), r"f(X[0], X[0]) is nan"),
        (lambda a, b: 1.0 if a[0] == b[0] else -np.inf, r"f(X[0], X[1]) is -inf"),
        (lambda a, b: "high", r"f(X[0], X[0]) is 'high'; a kernel gives one number"),
        (lambda a, b: None, r"f(X[0], X[0]) is None; a kernel gives one number"),
        (lambda a, b: np.ones(2), r"f(X[0], X[0]) is array([1., 1.]); a kernel gives one number"),
        (lambda a, b: 1j, r"f(X[0], X[0]) is 1j; a kernel gives one number"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_values_that_are_not_finite_numbers_are_rejected_with_their_place(f, message):
    with pytest.raises((InputError, InputTypeError), match=re.escape(message)):
        Callable(named(f))(np.array([[1.0], [3.0]]))


def test_two_samples_are_named_apart():
    with pytest.raises(InputError, match=re.escape("f(X[0], Z[1]) is nan")):
        Callable(named(lambda a, b: np.nan if b == 2 else 0.0))([1], [1, 2])


def test_a_vectorised_result_of_the_wrong_shape_or_kind_is_rejected():
    with pytest.raises(InputError, match=r"f must return a matrix of shape \(6, 4\), got shape \(6,\)"):
        Callable(named(lambda A, B: A[:, 0]), True)(X, Z)
    with pytest.raises(InputTypeError, match="f must return a matrix of numbers, got str"):
        Callable(named(lambda A, B: "text"), True)(X, Z)


def test_functions_refuse_gradients_rather_than_dropping_them():
    x = torch.from_numpy(X).requires_grad_()
    with pytest.raises(InputTypeError, match="X requires gradients, which Callable"):
        (Callable(lambda a, b: a @ b) + Gaussian())(x)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("abc", "X is one string, 'abc'; pass a list"),
        ({"a", "b"}, "X is a set, which has no order"),
        ({"a": 1}, "X is a dict, which has no order"),
        (3, "X must be a list of objects or a table, got int"),
    ],
)
def test_collections_without_order_are_not_samples(bad, message):
    for kernel in (Callable(overlap), Spectrum()):
        with pytest.raises(InputTypeError, match=message):
            kernel(bad)


# Ready matrices

K = X @ X.T


def test_a_ready_matrix_is_itself_and_a_copy():
    np.testing.assert_array_equal(Precomputed()(K), K)
    np.testing.assert_array_equal(Precomputed().diag(K), np.diagonal(K))
    np.testing.assert_array_equal(Precomputed()(Z @ X.T, K), Z @ X.T)
    assert not np.shares_memory(Precomputed()(K), K)
    assert not np.shares_memory(Precomputed()(Z @ X.T, K), K)
    assert Precomputed()(K.astype(np.float32)).dtype == np.float32


def test_ready_matrices_compose_with_each_other_and_with_noise():
    kernel = 2.0 * Precomputed() ** 2 + WhiteNoise(0.5) + 1.0
    np.testing.assert_allclose(kernel(K), 2 * K**2 + 0.5 * np.eye(6) + 1)
    test = Z @ X.T
    np.testing.assert_allclose(kernel(test, K), 2 * test**2 + 1)


@pytest.mark.parametrize(
    ("evaluate", "message"),
    [
        (lambda k: k(K[:, :4]), r"Gram matrix X must be square, got shape \(6, 4\)"),
        (lambda k: k.diag(K[:4]), r"Gram matrix X must be square, got shape \(4, 6\)"),
        (lambda k: k(K[:3, :4], K), r"one column per training point: shape \(3, 6\), got \(3, 4\)"),
        (lambda k: k(K[:3], K[:3]), r"Gram matrix Z must be square, got shape \(3, 6\)"),
        (lambda k: k(np.array([[1.0, 2.0], [5.0, 1.0]])), r"symmetric, but X\[0, 1\] = 2 and X\[1, 0\] = 5"),
        (lambda k: k(np.array([[1.0, np.nan], [0.0, 1.0]])), r"X contains NaN \(first: row 0, column 1\)"),
    ],
)
def test_matrices_of_the_wrong_shape_or_not_symmetric_are_rejected(evaluate, message):
    with pytest.raises(InputError, match=message):
        evaluate(Precomputed())


# Strings

words = st.lists(st.text(alphabet="abc", max_size=8), min_size=1, max_size=6)


@given(words, words, st.integers(1, 4))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_spectrum_equals_the_sum_over_all_substrings(left, right, k):
    def counts(s):
        return Counter(s[i : i + k] for i in range(len(s) - k + 1))

    expected = [[sum(c * counts(t)[w] for w, c in counts(s).items()) for t in right] for s in left]
    np.testing.assert_array_equal(Spectrum(k, normalised=False)(left, right), expected)
    normalised = Spectrum(k)(left)
    np.testing.assert_array_equal(np.diagonal(normalised), [float(len(s) >= k) for s in left])
    np.testing.assert_array_equal(np.diagonal(normalised), Spectrum(k).diag(left))
    assert np.linalg.eigvalsh(normalised)[0] > -1e-12


def test_strings_shorter_than_k_have_no_features():
    assert Spectrum(3)(["ab", ""]).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert Spectrum(3)(["ab", "abc"]).tolist() == [[0.0, 0.0], [0.0, 1.0]]


def test_strings_come_in_lists_arrays_and_series():
    strings = ["kernel", "method", "kernels"]
    expected = Spectrum()(strings)
    for sample in (np.array(strings), np.array(strings, dtype=object), pd.Series(strings), tuple(strings)):
        np.testing.assert_array_equal(Spectrum()(sample), expected)
    np.testing.assert_array_equal((Spectrum() * Callable(lambda a, b: float(len(a) * len(b))))(strings)[0, 0], 36.0)


@pytest.mark.parametrize(
    ("evaluate", "message"),
    [
        (lambda k: k(["a", 5]), r"Spectrum takes strings, but X\[1\] is 5 \(int\)"),
        (lambda k: k(["a"], ["b", None]), r"Spectrum takes strings, but Z\[1\] is None \(NoneType\)"),
        (lambda k: k([b"abc"]), r"X\[0\] is b'abc' \(bytes\)"),
        (lambda k: k(X), "Spectrum takes strings, but X is a table of numbers"),
        (lambda k: k.diag(["a", 2.0]), r"X\[1\] is 2.0 \(float\)"),
    ],
)
def test_what_is_not_a_string_is_rejected_with_its_place(evaluate, message):
    with pytest.raises(InputTypeError, match=message):
        evaluate(Spectrum())
