"""Every mistake gets an error that names the argument and the value."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch

from mercer.core.errors import InputError, InputTypeError, NotPositiveDefiniteError
from mercer.kernels import (
    Brownian,
    Callable,
    Constant,
    ExponentialPower,
    FeatureMap,
    FunctionScaled,
    Gaussian,
    InverseMultiquadric,
    Kernel,
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

X = np.random.default_rng(0).normal(size=(5, 3))
nan, inf = float("nan"), float("inf")


@pytest.mark.parametrize(
    "cls", [Gaussian, Laplace, ExponentialPower, Matern, RationalQuadratic, InverseMultiquadric, Periodic]
)
@pytest.mark.parametrize("value", [0, -1.5, nan, inf, 10**400])
def test_length_scales_must_be_positive_numbers(cls, value):
    shown = re.escape(repr(value)[:20])
    with pytest.raises(InputError, match=rf"{cls.__name__}\(length_scale={shown}.*must be a number > 0"):
        cls(length_scale=value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ((1.0, 0.0, 2.0), "entry 1 is 0; must be a number > 0"),
        ([1.0, nan], "entry 1 is nan"),
        (np.array([1.0, -3.0]), "entry 1 is -3"),
        (torch.tensor([1.0, -3.0]), "entry 1 is -3"),
        (torch.tensor(-3.0), "must be a number > 0"),
    ],
)
def test_a_bad_entry_of_a_vector_is_pointed_at(value, message):
    with pytest.raises(InputError, match=message):
        Gaussian(length_scale=value)


@pytest.mark.parametrize(
    "value", ["wide", True, None, 1j, [], [[1.0]], ["a"], [1.0, [2.0]], (1.0, None), {}, torch.tensor(1), Gaussian()]
)
def test_length_scales_of_another_type_are_rejected(value):
    with pytest.raises((InputTypeError, InputError), match=r"Gaussian\(length_scale="):
        Gaussian(length_scale=value)


@pytest.mark.parametrize("shape", [(2, 2), (0,)])
def test_tensors_of_a_wrong_shape_are_rejected(shape):
    with pytest.raises(InputError, match=rf"length_scale must be .* got shape {re.escape(str(shape))}"):
        Gaussian(length_scale=torch.ones(shape))
    with pytest.raises(InputError, match=r"Constant\(constant_value=.*got shape"):
        Constant(torch.ones(2))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ExponentialPower(power=0.0), r"ExponentialPower\(power=0.0\): must be a number > 0 and <= 2"),
        (lambda: ExponentialPower(power=2.1), r"ExponentialPower\(power=2.1\): must be a number > 0 and <= 2"),
        (lambda: ExponentialPower(power=-1), r"ExponentialPower\(power=-1\)"),
        (lambda: Matern(nu=0), r"Matern\(nu=0\): must be a number > 0"),
        (lambda: Matern(nu=nan), r"Matern\(nu=nan\)"),
        (lambda: InverseMultiquadric(power=0), r"InverseMultiquadric\(power=0\)"),
        (lambda: RationalQuadratic(alpha=-1), r"RationalQuadratic\(alpha=-1\)"),
        (lambda: Periodic(period=0), r"Periodic\(period=0\): must be a number > 0"),
        (lambda: Polynomial(degree=2.5), r"Polynomial\(degree=2.5\): degree must be an integer > 0"),
        (lambda: Polynomial(degree=0), r"Polynomial\(degree=0\): must be an integer > 0"),
        (lambda: Polynomial(degree=nan), r"Polynomial\(degree=nan\)"),
        (lambda: Polynomial(offset=-1), r"Polynomial\(offset=-1\): must be a number >= 0"),
        (lambda: Linear(bias=-0.1), r"Linear\(bias=-0.1\): must be a number >= 0"),
        (lambda: Constant(0), r"Constant\(constant_value=0\)"),
        (lambda: WhiteNoise(-2), r"WhiteNoise\(noise_level=-2\)"),
        (lambda: Gaussian.from_gamma(0), r"Gaussian.from_gamma\(gamma=0\): must be a number > 0"),
        (lambda: Gaussian.from_gamma(nan), r"Gaussian.from_gamma\(gamma=nan\)"),
        (lambda: Laplace(metric="l3"), r"Laplace\(metric='l3'\): metric must be"),
        (lambda: Matern.from_sobolev(1, 2), r"order=1, dimension=2.*order > dimension / 2 = 1"),
        (lambda: Matern.from_sobolev(nan, 2), r"order=nan"),
        (lambda: Spectrum(k=0), r"Spectrum\(k=0\): must be an integer > 0"),
        (lambda: FeatureMap(np.sin, metric=[[1.0, 2.0]]), r"must be a square matrix, got shape \(1, 2\)"),
        (lambda: FeatureMap(np.sin, metric=[[1.0, 2.0], [0.0, 1.0]]), r"symmetric, but entry 0, 1 is 2 and 1, 0 is 0"),
        (lambda: FeatureMap(np.sin, metric=[[nan]]), r"metric\) contains NaN"),
        (lambda: Subspace(Gaussian(), []), r"Subspace\(columns=\[\]\): at least one column"),
    ],
)
def test_parameters_out_of_range_are_named_with_their_value(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Polynomial(degree="2"), r"Polynomial\(degree='2'\): degree must be an integer"),
        (lambda: Matern(nu=[0.5, 1.5]), r"Matern\(nu=\[0.5, 1.5\]\): nu must be a number > 0"),
        (lambda: Gaussian.from_gamma("auto"), r"gamma='auto'"),
        (lambda: Subspace(Gaussian(), 1.5), r"Subspace\(columns=1.5\): columns must be positions or names"),
        (lambda: Subspace(Gaussian(), [True]), "True is neither a position nor a name"),
        (lambda: Subspace(Gaussian(), {0, 1}), "columns must be positions or names"),
        (lambda: Subspace("gaussian", 0), r"Subspace\(kernel='gaussian'\): kernel must be a kernel"),
        (lambda: Subspace(Precomputed(), 0), "has no columns to select"),
        (lambda: FeatureMap(3), r"FeatureMap\(phi=3\): phi must be a function"),
        (lambda: FeatureMap(np.sin, metric="identity"), "must be a square matrix of numbers, got str"),
        (lambda: Callable("f"), r"Callable\(function='f'\): function must be a function"),
        (lambda: Callable(min, vectorised=1), r"Callable\(vectorised=1\)"),
        (lambda: Spectrum(normalised="yes"), r"Spectrum\(normalised='yes'\)"),
        (lambda: FunctionScaled(Gaussian(), 3), r"FunctionScaled\(function=3\): function must be a function"),
        (lambda: (lambda X: X[:, 0]) * Precomputed(), "a function of points cannot scale it"),
        (lambda: Precomputed() + Gaussian(), "one reads a precomputed Gram matrix, the other points"),
        (lambda: Spectrum() * Precomputed(), "one reads a precomputed Gram matrix, the other points"),
    ],
)
def test_parameters_of_a_wrong_type_are_named_with_their_value(make, message):
    with pytest.raises(InputTypeError, match=message):
        make()


def test_a_function_that_cannot_be_hashed_is_rejected():
    class Unhashable:
        __hash__ = None

        def __call__(self, X):
            return X[:, 0]

    with pytest.raises(InputTypeError, match="must be hashable"):
        Unhashable() * Gaussian()


def test_a_metric_with_a_negative_eigenvalue_is_rejected():
    with pytest.raises(NotPositiveDefiniteError, match="positive semi-definite, but has eigenvalue -1"):
        FeatureMap(np.sin, metric=[[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    "kernel", [Gaussian((1.0, 2.0)), Laplace((1.0, 2.0), metric="l1"), Periodic((1.0, 2.0))], ids=repr
)
def test_a_vector_length_scale_of_the_wrong_length_is_rejected(kernel):
    for evaluate in (kernel, kernel.diag, lambda X: kernel.program(kernel.points(X)), lambda X: kernel(X, X)):
        with pytest.raises(InputError, match="length_scale has 2 entries but X has 3 columns"):
            evaluate(X)


def test_a_period_of_the_wrong_length_is_rejected():
    with pytest.raises(InputError, match="period has 2 entries but X has 3 columns"):
        Periodic(period=(1.0, 2.0))(X)


def test_a_median_that_was_not_resolved_says_how_to():
    with pytest.raises(InputError, match="length_scale='median' is found from data: .*resolve"):
        Gaussian("median")(X)


def test_samples_with_different_numbers_of_columns_are_rejected():
    for kernel in (Gaussian(), Laplace(metric="l1"), Linear()):
        with pytest.raises(InputError, match="X has 3 columns but Z has 2"):
            kernel(X, X[:, :2])


@pytest.mark.parametrize(
    ("column", "message"),
    [(3, "Column 3 is asked for but the data have 3 columns"), (-4, "Column -4"), ("a", "data have no column names")],
)
def test_columns_that_do_not_exist_are_rejected(column, message):
    with pytest.raises(InputError, match=message):
        Subspace(Gaussian(), column)(X)


def test_a_name_that_is_not_in_the_frame_is_rejected():
    with pytest.raises(InputError, match=r"Column 'z' is not in the data; its columns are \['a', 'b', 'c'\]"):
        Subspace(Gaussian(), "z")(pd.DataFrame(X, columns=list("abc")))


def with_entry(value, row=2, column=1):
    A = X.copy()
    A[row, column] = value
    return A


@pytest.mark.parametrize(("value", "word"), [(nan, "NaN"), (inf, "infinity"), (-inf, "infinity")])
@pytest.mark.parametrize("convert", [np.asarray, torch.from_numpy, pd.DataFrame, np.ndarray.tolist])
def test_nan_and_infinity_are_rejected_with_their_place(value, word, convert):
    with pytest.raises(InputError, match=rf"X contains {word} \(first: row 2, column 1\)"):
        Gaussian()(convert(with_entry(value)))
    with pytest.raises(InputError, match=rf"Z contains {word}"):
        Gaussian()(X, convert(with_entry(value)))


def test_missing_values_of_frames_are_rejected_with_their_place():
    for frame in (pl.DataFrame({"a": [1, None]}), pd.DataFrame({"a": pd.array([1, None], dtype="Int64")})):
        with pytest.raises(InputError, match=r"X contains NaN \(first: row 1, column 'a'\)"):
            Gaussian()(frame)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (X + 1j, r"X is complex \(complex128\)"),
        (torch.ones(2, 2, dtype=torch.complex64), r"X is complex \(torch.complex64\)"),
        (np.array([["a", "b"]]), "X has dtype <U1; expected numbers"),
        (X.astype(object), "X has dtype object"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "X has dtype datetime64"),
        (X.astype(np.float16), "X has dtype float16; convert it to float32 or float64"),
        (torch.ones(2, 2, dtype=torch.float16), "X has dtype torch.float16"),
        (torch.ones(2, 2, dtype=torch.bfloat16), "X has dtype torch.bfloat16"),
        (scipy.sparse.eye(3, format="csr"), r"X is a sparse matrix; .*pass X.toarray\(\)"),
        (torch.eye(3).to_sparse(), r"X is a sparse tensor; .*pass X.to_dense\(\)"),
        (pd.DataFrame({"a": [1.0], "town": ["Ulm"]}), "X has a column 'town' of type String"),
        (pl.DataFrame({"day": ["x"]}), "X has a column 'day' of type String"),
        (np.ma.masked_array(X, mask=X > 0), "X is an array with masked entries"),
        (None, "X has dtype object"),
        ("text", "X has dtype <U4"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_types_that_are_not_tables_of_real_numbers_are_rejected(bad, message):
    with pytest.raises(InputTypeError, match=message):
        Gaussian()(bad)
    with pytest.raises(InputTypeError, match=message):
        Gaussian().diag(bad)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (X[:, 0], r"X must be a matrix .* got shape \(5,\). Reshape it with X.reshape\(-1, 1\)"),
        (X[None], r"got shape \(1, 5, 3\)"),
        (3.0, r"got shape \(\)"),
        (torch.ones(3), r"got shape \(3,\)"),
        (np.empty((4, 0)), "X has no columns"),
        (pl.DataFrame(), "X has no columns"),
        ([[1.0, 2.0], [3.0]], "its rows differ in length"),
        (pd.DataFrame(X, columns=["a", "b", "a"]), "more than one column named 'a'"),
    ],
)
def test_shapes_that_are_not_tables_are_rejected(bad, message):
    with pytest.raises(InputError, match=message):
        Gaussian()(bad)


def test_negative_inputs_of_brownian_are_rejected_with_value_and_place():
    A = np.abs(X)
    A[3, 2] = -0.25
    for evaluate in (Brownian(), Brownian().diag, lambda X: Brownian()(np.abs(X), X)):
        with pytest.raises(InputError, match=r"inputs >= 0, but row 3, column 2 is -0.25"):
            evaluate(A)


def test_a_kernel_without_a_formula_says_so():
    class Empty(Kernel):
        pass

    with pytest.raises(InputTypeError, match=r"Empty does not define of\(pair\)"):
        Empty()(X)


def test_unknown_attributes_are_attribute_errors():
    with pytest.raises(AttributeError, match="Gaussian has no attribute 'gamma'"):
        _ = Gaussian().gamma


def test_orders_that_lose_digits_are_refused() -> None:
    assert Matern(1e6)([[0.0], [1.0]])[0, 1] == pytest.approx(np.exp(-0.5), rel=1e-6)
    with pytest.raises(InputError, match=r"orders above 1e\+06 lose digits"):
        Matern(2.0**63)
