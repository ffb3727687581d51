"""The median heuristic: it is a median, and integer weights are repeated rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from mercer.core.errors import InputError, InputTypeError
from mercer.kernels import Callable, Constant, Gaussian, Laplace, Linear, Matern, Periodic, Spectrum, Subspace, resolve
from mercer.kernels.median import weighted_median

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))


def width(kernel, *args, **kwargs):
    return resolve(kernel, *args, **kwargs).length_scale


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12), st.data())
@settings(max_examples=80, deadline=None, derandomize=True)
def test_integer_weights_of_a_median_are_repetitions(values, data):
    weights = data.draw(st.lists(st.integers(1, 4), min_size=len(values), max_size=len(values)))
    repeated = np.repeat(values, weights)
    assert weighted_median(np.array(values), np.array(weights, dtype=float)) == np.median(repeated)
    assert weighted_median(repeated, np.ones(len(repeated))) == np.median(repeated)
    for factor in (0.1, 0.7, 1.1e-9):
        assert weighted_median(np.array(values), factor * np.array(weights)) == np.median(repeated)


def test_the_length_scale_is_the_median_distance_in_the_metric_of_the_kernel():
    assert width(Gaussian("median"), X) == pytest.approx(np.median(pdist(X)), rel=1e-14)
    assert width(Laplace("median", metric="l1"), X) == pytest.approx(np.median(pdist(X, "cityblock")), rel=1e-14)


def test_distances_of_zero_do_not_count():
    twice = np.repeat(X, 2, axis=0)
    distances = pdist(twice)
    assert width(Gaussian("median"), twice) == pytest.approx(np.median(distances[distances > 0]), rel=1e-14)


def test_every_median_of_an_expression_is_taken_on_its_own_columns():
    kernel = (
        Subspace(Gaussian("median"), (0, 2)) * 2.0 + Subspace(Subspace(Laplace("median", metric="l1"), 0), 1) + Linear()
    )
    expected = (
        Subspace(Gaussian(np.median(pdist(X[:, [0, 2]]))), (0, 2)) * 2.0
        + Subspace(Subspace(Laplace(np.median(pdist(X[:, [1]])), metric="l1"), 0), 1)
        + Linear()
    )
    found = resolve(kernel, X)
    for path, value in expected.get_params().items():
        if path.endswith("length_scale"):
            assert found.get_params()[path] == pytest.approx(value, rel=1e-14)
    frame = pd.DataFrame(X, columns=list("abc"))
    assert resolve(Subspace(Gaussian("median"), ["c", "b"]), frame).kernel == resolve(Gaussian("median"), X[:, [2, 1]])


def test_a_periodic_median_is_one_of_distances_on_the_circle():
    angle = 2 * np.pi * X[:, :1] / 1.5
    expected = np.median(pdist(np.hstack([np.cos(angle), np.sin(angle)])))
    assert width(Periodic("median", period=1.5), X[:, :1]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("max_rows", [1000, 15, 2])
@pytest.mark.parametrize(
    "kernel",
    [Gaussian("median"), Laplace("median", metric="l1"), Subspace(Matern(1.5, "median"), 1), Periodic("median")],
    ids=repr,
)
def test_integer_weights_equal_repeated_rows_exactly_at_any_size(kernel, max_rows):
    for seed in range(5):
        draw = np.random.default_rng(seed)
        A = np.round(draw.normal(size=(40, 2)), 1)  # some equal rows and many equal distances
        weights = draw.integers(0, 5, size=40)
        order = draw.permutation(weights.sum())
        repeated = np.repeat(A, weights, axis=0)[order]
        assert resolve(kernel, A, weights, max_rows=max_rows) == resolve(kernel, repeated, max_rows=max_rows)
        assert resolve(kernel, A, 1.0 * weights, max_rows=max_rows) == resolve(
            kernel, A, 3 * weights, max_rows=max_rows
        )


@pytest.mark.parametrize("factor", [1e-250, 1e-3, 0.1, 7.7, 1e250])
def test_only_the_ratio_of_weights_matters(factor):
    weights = rng.integers(1, 4, size=30).astype(float)
    assert width(Gaussian("median"), X, factor * weights) == pytest.approx(
        width(Gaussian("median"), X, weights), rel=1e-12
    )


def test_weights_move_the_median():
    line = np.array([[0.0], [1.0], [10.0]])
    assert width(Gaussian("median"), line) == 9.0
    assert width(Gaussian("median"), line, [5, 5, 1]) == 1.0
    assert width(Gaussian("median"), line, [1, 0, 1]) == 10.0


def test_a_large_sample_is_drawn_with_the_seed():
    A = rng.normal(size=(300, 2))
    full = width(Gaussian("median"), A)
    draws = [width(Gaussian("median"), A, max_rows=100, seed=seed) for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]
    assert draws == pytest.approx([full] * 3, rel=0.2)
    assert width(Gaussian("median"), A[::-1], max_rows=100) == draws[0]


def test_a_rare_value_of_a_column_is_not_lost_when_rows_are_drawn():
    A = np.column_stack([np.zeros(200), rng.normal(size=200)])
    A[17, 0] = 5.0
    assert resolve(Subspace(Gaussian("median"), 0), A, max_rows=5).kernel == Gaussian(5.0)


def test_equal_rows_give_the_length_scale_one():
    assert width(Gaussian("median"), np.ones((5, 2))) == 1.0
    assert width(Gaussian("median"), [[3.0]]) == 1.0
    assert resolve(Subspace(Gaussian("median"), 0) + Gaussian("median"), [[0.0, 1.0], [0.0, 3.0]]) == (
        Subspace(Gaussian(1.0), 0) + Gaussian(2.0)
    )


def test_large_offsets_in_float32_do_not_spoil_the_median():
    single = (X + 1e4).astype(np.float32)
    assert width(Gaussian("median"), single) == pytest.approx(np.median(pdist(single.astype(np.float64))), rel=1e-12)
    assert width(Gaussian("median"), torch.from_numpy(single)) == width(Gaussian("median"), single)


def test_kernels_without_a_median_are_left_alone_and_the_data_not_looked_at():
    for kernel in (Gaussian(2.0) + Linear(), Spectrum(), Constant()):
        assert resolve(kernel, None) is kernel or resolve(kernel, None) == kernel


def test_a_median_inside_a_kernel_of_objects_is_found_on_tables_only():
    kernel = Callable(lambda a, b: 1.0) + Gaussian("median")
    assert resolve(kernel, X).k2 == resolve(Gaussian("median"), X)
    with pytest.raises(InputTypeError, match="was given other objects"):
        resolve(kernel, ["a", "b"])


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], r"sample_weight has shape \(2,\) but X has 30 rows"),
        (np.r_[np.ones(29), -1.0], r"sample_weight\[29\] is -1; weights must be >= 0"),
        (np.r_[np.ones(29), np.nan], "sample_weight contains NaN"),
        (np.zeros(30), "X has no rows of positive weight"),
    ],
)
def test_bad_weights_are_rejected(weights, message):
    with pytest.raises(InputError, match=message):
        resolve(Gaussian("median"), X, weights)


def test_other_bad_input_is_rejected():
    with pytest.raises(InputError, match="X has no rows"):
        resolve(Gaussian("median"), np.empty((0, 2)))
    with pytest.raises(InputError, match=r"max_rows=1\): at least two rows"):
        resolve(Gaussian("median"), X, max_rows=1)
    with pytest.raises(InputError, match="X contains NaN"):
        resolve(Gaussian("median"), [[np.nan]])
