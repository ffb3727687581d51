"""What goes in comes out: numpy, torch, pandas, polars, dtypes, memory layouts, empty samples."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

from mercer.core.arrays import as_points, column_names
from mercer.core.errors import InputError
from mercer.kernels import Callable, Constant, Gaussian, Laplace, Linear, Periodic, Spectrum, Subspace, WhiteNoise

rng = np.random.default_rng(0)
X, Z = rng.normal(size=(7, 3)), rng.normal(size=(4, 3))
KERNEL = Gaussian() + Laplace(metric="l1") * Linear() + Periodic() + WhiteNoise(0.1)
NAMES = ["a", "b", "c"]


def test_numpy_gives_numpy_and_torch_gives_torch():
    assert isinstance(KERNEL(X, Z), np.ndarray)
    assert isinstance(KERNEL(torch.from_numpy(X), torch.from_numpy(Z)), torch.Tensor)
    for mixed in (KERNEL(torch.from_numpy(X), Z), KERNEL(X, torch.from_numpy(Z))):
        assert isinstance(mixed, torch.Tensor)
        np.testing.assert_array_equal(mixed.numpy(), KERNEL(X, Z))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_dtype_is_kept(dtype):
    for result in (KERNEL(X.astype(dtype)), KERNEL(X.astype(dtype), Z.astype(dtype)), KERNEL.diag(X.astype(dtype))):
        assert result.dtype == dtype
    assert Constant()(X.astype(dtype)).dtype == dtype


def test_two_dtypes_meet_in_the_wider_one():
    single = X.astype(np.float32)
    assert KERNEL(single, Z).dtype == np.float64
    np.testing.assert_array_equal(KERNEL(single, Z), KERNEL(single.astype(np.float64), Z))
    assert KERNEL(torch.from_numpy(single), torch.from_numpy(Z)).dtype == torch.float64


@pytest.mark.parametrize("convert", [list, np.ndarray.tolist, lambda A: A.astype(int), lambda A: A > 0])
def test_lists_integers_and_truth_values_become_float64(convert):
    converted = convert(X)
    assert KERNEL(converted).dtype == np.float64
    np.testing.assert_array_equal(KERNEL(converted), KERNEL(np.asarray(converted, dtype=np.float64)))


def test_integer_tensors_become_float64():
    assert Linear()(torch.tensor([[1, 2]])).dtype == torch.float64


def read_only(A):
    A = A.copy()
    A.flags.writeable = False
    return A


LAYOUTS = {
    "fortran": np.asfortranarray,
    "read-only": read_only,
    "big-endian": lambda A: A.astype(A.dtype.newbyteorder(">")),
    "reversed": lambda A: A[::-1].copy()[::-1],
    "strided": lambda A: np.repeat(A, 2, axis=1)[:, ::2],
    "matrix": np.asmatrix,
}


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_layout_does_not_matter(layout, dtype):
    A = X.astype(dtype)
    result = KERNEL(LAYOUTS[layout](A))
    assert result.dtype == dtype
    np.testing.assert_allclose(result, KERNEL(A), rtol=1e-6 if dtype == np.float32 else 1e-14)


def test_inputs_are_never_changed():
    before = X.copy()
    for kernel in (KERNEL, Gaussian(1e-9), Laplace(), Linear()):
        kernel(X)
        kernel(X[:, :1])
        kernel.diag(X)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize(
    "frame",
    [pd.DataFrame(X, columns=NAMES), pl.DataFrame(X, schema=NAMES), pa.table(dict(zip(NAMES, X.T, strict=True)))],
    ids=["pandas", "polars", "arrow"],
)
def test_frames_equal_their_arrays_and_select_by_name(frame):
    assert column_names(frame) == ("a", "b", "c")
    np.testing.assert_array_equal(KERNEL(frame), KERNEL(X))
    by_name = Subspace(Gaussian(), ["c", "a"]) + Subspace(Linear(), "b")
    by_place = Subspace(Gaussian(), [2, 0]) + Subspace(Linear(), 1)
    np.testing.assert_array_equal(by_name(frame), by_place(X))
    np.testing.assert_array_equal(by_name.diag(frame), by_place.diag(X))
    np.testing.assert_array_equal(by_name(frame, frame), by_place(X, X))


def test_frames_of_mixed_numbers_become_float64_and_of_float32_stay():
    frame = pd.DataFrame({"a": [1.5, 2.5], "b": [1, 2], "c": [True, False]})
    for table in (frame, pl.from_pandas(frame)):
        np.testing.assert_array_equal(as_points(table).values, [[1.5, 1, 1], [2.5, 2, 0]])
    assert as_points(pl.DataFrame(X.astype(np.float32))).values.dtype == torch.float32
    assert as_points(pd.DataFrame(X)).names is None


def test_samples_whose_columns_have_different_names_are_not_compared():
    left, right = pd.DataFrame(X, columns=NAMES), pd.DataFrame(Z, columns=["a", "c", "b"])
    with pytest.raises(InputError, match=r"columns of X are \['a', 'b', 'c'\] but those of Z are \['a', 'c', 'b'\]"):
        KERNEL(left, right)
    np.testing.assert_array_equal(KERNEL(left, Z), KERNEL(X, Z))


def test_a_sample_of_no_rows_has_an_empty_matrix():
    none = np.empty((0, 3))
    for kernel in (KERNEL, Laplace(), Gaussian((1.0, 2.0, 3.0)), Constant(), Callable(lambda a, b: 1.0)):
        assert kernel(none).shape == (0, 0)
        assert kernel(none, Z).shape == (0, 4)
        assert kernel(X, none).shape == (7, 0)
        assert kernel.diag(none).shape == (0,)
    assert Spectrum()([]).shape == (0, 0)
    assert Spectrum()(["abc"], []).shape == (1, 0)


def test_one_row_and_one_column_work():
    np.testing.assert_allclose(Gaussian()([[3.0]]), [[1.0]])
    np.testing.assert_allclose(Gaussian()(X[:, :1], Z[:, :1]), np.exp(-0.5 * (X[:, :1] - Z[:, 0]) ** 2))


def test_constant_columns_and_duplicate_rows_work():
    A = np.column_stack([np.ones(4), [0.0, 0.0, 1.0, 1.0]])
    np.testing.assert_allclose(Laplace()(A), Laplace()(A[:, 1:]))


def test_gradients_reach_both_samples_and_parameters_survive_numpy():
    x, z = torch.from_numpy(X).requires_grad_(), torch.from_numpy(Z).requires_grad_()
    gradients = torch.autograd.grad(KERNEL(x, z).sum(), (x, z))
    assert all(bool(g.abs().sum() > 0) for g in gradients)
    (gradient,) = torch.autograd.grad(KERNEL(X, z).sum(), z)
    np.testing.assert_allclose(gradient, gradients[1])
    width = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    assert isinstance(Gaussian().replace(length_scale=width)(X), np.ndarray)


def test_parameters_in_another_precision_do_not_change_the_dtype_of_the_result():
    x = torch.from_numpy(X).float()
    for changed in (
        Gaussian().replace(length_scale=torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)),
        (2.0 * Gaussian()).replace(factor=torch.tensor(3.0, dtype=torch.float64)),
        Constant().replace(constant_value=torch.tensor(3.0, dtype=torch.float64)),
        Periodic().replace(period=torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)),
    ):
        assert changed(x).dtype == torch.float32


def test_points_take_rows_by_slice_and_by_index():
    table, objects = as_points(pd.DataFrame(X, columns=NAMES)), as_points(["a", "b", "c"], objects=True)
    assert table.take(slice(1, 3)).values.tolist() == X[1:3].tolist()
    assert table.take(torch.tensor([2, 0])).names == ("a", "b", "c")
    assert objects.take(slice(1, None)).values == ["b", "c"]
    assert objects.take(torch.tensor([2, 0])).values == ["c", "a"]
    assert as_points(table) is table


def test_no_rows_give_an_empty_matrix():
    for x, z in ((X, Z[:0]), (X[:0], Z), (X[:0], Z[:0])):
        assert Gaussian()(x, z).shape == (len(x), len(z))
