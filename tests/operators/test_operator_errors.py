"""Bad input to operators gives an error that says what is wrong."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from mercer.core.errors import InputError, InputTypeError
from mercer.kernels import Gaussian, Laplace
from mercer.operators import GramOperator, Weighted, gram


@pytest.fixture
def operator() -> GramOperator:
    rng = np.random.default_rng(0)
    return gram(Gaussian(), rng.normal(size=(5, 2)), rng.normal(size=(4, 2)))


@pytest.mark.parametrize("shape", [(5,), (3, 2), (4, 2, 1), ()])
def test_a_factor_of_the_wrong_shape(operator: GramOperator, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"V has shape .* operator has shape \(5, 4\): expected \(4,\) or \(4, t\)"):
        operator @ np.ones(shape)


def test_a_left_factor_of_the_wrong_shape(operator: GramOperator) -> None:
    with pytest.raises(InputError, match=r"expected \(5,\)"):
        np.ones(4) @ operator


@pytest.mark.parametrize("V", [np.array(["a"] * 4), np.ones(4) * 1j, torch.ones(4, dtype=torch.complex64)])
def test_a_factor_that_is_not_real_numbers(operator: GramOperator, V: object) -> None:
    with pytest.raises(InputTypeError, match="V "):
        operator @ V


def test_integers_lists_and_float32_factors_are_converted(operator: GramOperator) -> None:
    expected = operator @ np.arange(4.0)
    for V in ([0, 1, 2, 3], np.arange(4), np.arange(4.0, dtype=np.float32), np.arange(8.0)[::2] / 2):
        product = operator @ V
        assert product.dtype == np.float64
        assert np.array_equal(product, expected)


def test_samples_with_different_columns() -> None:
    with pytest.raises(InputError, match="X has 2 columns but Z has 3"):
        gram(Gaussian(), np.ones((4, 2)), np.ones((4, 3)))
    with pytest.raises(InputError, match=r"columns of X are \['a'\] but those of Z are \['b'\]"):
        gram(Gaussian(), pd.DataFrame({"a": [1.0]}), pd.DataFrame({"b": [1.0]}))


def test_length_scales_of_the_wrong_length() -> None:
    with pytest.raises(InputError, match="3 entries but X has 2 columns"):
        gram(Gaussian((1.0, 2.0, 3.0)), np.ones((4, 2)))


def test_a_median_that_was_never_found() -> None:
    with pytest.raises(InputError, match="median"):
        gram(Gaussian("median"), np.ones((4, 2)))


def test_a_kernel_that_is_none() -> None:
    with pytest.raises(InputTypeError, match="gram needs a kernel"):
        gram("gaussian", np.ones((4, 2)))  # type: ignore[arg-type]


def test_nan_in_the_data() -> None:
    with pytest.raises(InputError, match="X contains NaN"):
        gram(Gaussian(), np.array([[np.nan]]))


def test_the_diagonal_of_two_samples(operator: GramOperator) -> None:
    with pytest.raises(InputError, match=r"diag\(\) needs one sample"):
        operator.diag()


@pytest.mark.parametrize("index", [5, -6, [0, 7]])
def test_rows_outside_the_operator(operator: GramOperator, index: object) -> None:
    with pytest.raises(InputError, match="the operator has 5 rows"):
        operator.rows(index)


def test_a_mask_of_the_wrong_length(operator: GramOperator) -> None:
    with pytest.raises(InputError, match=r"mask of rows has shape \(4,\)"):
        operator.rows(np.ones(4, dtype=bool))


@pytest.mark.parametrize("index", [1.5, "first", [[0, 1]]])
def test_rows_that_are_no_rows(operator: GramOperator, index: object) -> None:
    with pytest.raises(InputTypeError, match="rows"):
        operator.rows(index)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_cuda_asked_for_where_there_is_none() -> None:
    with pytest.raises(InputError, match="no CUDA device"):
        gram(Gaussian(), np.ones((3, 1)), device="cuda")


def test_weights_of_the_wrong_kind() -> None:
    operator = gram(Laplace(), np.ones((3, 1)))
    with pytest.raises(InputError, match=r"s has shape \(2,\)"):
        Weighted(operator, [1.0, 2.0])
    with pytest.raises(InputError, match="s contains NaN"):
        Weighted(operator, [1.0, float("nan"), 1.0])
    with pytest.raises(InputError, match="square"):
        Weighted(gram(Laplace(), np.ones((3, 1)), np.ones((2, 1))), [1.0, 1.0, 1.0])


def test_the_kind_of_array_follows_the_data(operator: GramOperator) -> None:
    assert isinstance(operator.dense(), np.ndarray)
    assert isinstance(operator.rows(0), np.ndarray)
    lazy = gram(Gaussian(), torch.ones(3, 2))
    assert isinstance(lazy.dense(), torch.Tensor)
    assert isinstance(lazy.diag(), torch.Tensor)
    assert isinstance(lazy @ np.ones(3), np.ndarray)
    assert lazy.dtype == torch.float32
    assert gram(Gaussian(), torch.ones(3, 2), dtype="float64").dtype == torch.float64
    mixed = gram(Gaussian(), np.ones((3, 2), dtype=np.float32), np.ones((2, 2)))
    assert mixed.dtype == torch.float64


def test_the_repr_says_what_the_operator_is(operator: GramOperator) -> None:
    how = "squared distances by matrix product, float64"
    assert repr(operator) == f"GramOperator(Gaussian(length_scale=1.0), 5 x 4, float64 on cpu; {how})"
    assert operator.T.T is operator
    assert operator.T.shape == (4, 5)
