"""What users reported, one after the other: the right number, or an error of ours. Laws behind them are elsewhere."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from sklearn.datasets import load_breast_cancer

from mercer import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelClassifier,
    KernelPCA,
    KernelRegressor,
    KernelRidge,
    gram,
    load,
)
from mercer.core.errors import InputError, MercerError
from mercer.kernels import Gaussian, Kernel, Polynomial
from mercer.rows import ParquetRows

X = np.random.default_rng(0).normal(size=(40, 2))
Y = np.sin(X[:, 0]) + 0.1 * X[:, 1]


@dataclass(frozen=True)
class Inner(Kernel):
    def of(self, pair):
        f, g = pair.ends(lambda rows: rows.square().sum(-1))
        return f + g - pair.squared_distance()


def test_a_squared_distance_with_a_negative_factor_keeps_its_sign():
    rows = np.array([[1.0], [3.0]])
    np.testing.assert_allclose(Inner()(rows), [[2, 6], [6, 18]])
    np.testing.assert_allclose(gram(Inner(), rows).dense(), [[2, 6], [6, 18]])


@pytest.mark.parametrize("model", [KernelRidge, KernelRegressor, GaussianProcessRegressor, KernelPCA])
def test_a_fitted_model_does_not_follow_the_rows_of_the_caller(model):
    rows = X.copy()
    fitted = model().fit(rows, Y)
    call = fitted.transform if model is KernelPCA else fitted.predict
    before = np.array(call(X[:5]))
    rows *= 100.0
    np.testing.assert_array_equal(before, call(X[:5]))


@pytest.mark.parametrize("factor", [1e60, 1e160])
def test_predictions_that_overflow_are_errors_that_name_rows(factor):
    model = KernelRidge(Polynomial(6), alpha=1.0).fit(X, Y)
    with pytest.raises(MercerError, match="row"):
        model.predict(X * factor)


def test_landmark_solvers_that_are_far_off_do_not_say_converged():
    rows = np.r_[np.random.default_rng(1).normal(size=(20, 2)), [[0.5, 0.5], [0.5 + 1e-9, 0.5]]]
    y = np.r_[np.zeros(20), 1.0, -1.0]
    exact = KernelRidge(Polynomial(4), alpha=1e-10, solver="cholesky").fit(rows, y).predict(rows)
    for solver in ("nystrom", "falkon"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = KernelRidge(Polynomial(4), alpha=1e-10, solver=solver, n_landmarks=22).fit(rows, y)
        assert not model.solver_report_.converged or np.abs(model.predict(rows) - exact).max() < 1e-2


@pytest.mark.parametrize("seed", range(3))
def test_sparse_processes_learn_from_a_sine(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, size=(400, 1))
    model = GaussianProcessRegressor("gaussian", method="sgpr", n_restarts=0, max_iter=15)
    mean, std = model.fit(x, np.sin(x[:, 0]) + 0.1 * rng.normal(size=400)).predict(x, return_std=True)
    assert np.abs(mean - np.sin(x[:, 0])).max() < 0.5
    assert np.isfinite(std).all()


@pytest.mark.parametrize("method", ["exact", "iterative", "sgpr"])
def test_a_process_with_nothing_left_to_learn_is_fitted(method):
    model = GaussianProcessRegressor(Gaussian(1.0), noise=0.1, method=method, bounds={"length_scale": "fixed"})
    assert np.isfinite(model.fit(X, Y).predict(X)).all()
    labels = GaussianProcessClassifier(Gaussian(1.0), bounds={"length_scale": "fixed"}).fit(X, Y > 0)
    assert np.isfinite(labels.predict_proba(X)).all()


def test_a_gram_matrix_in_float32_is_not_called_indefinite():
    K = Gaussian(3.0)(np.random.default_rng(0).normal(size=(300, 2))).astype(np.float32)
    model = KernelRidge("precomputed", alpha=1.0).fit(K, K[:, 0])
    assert np.isfinite(model.predict(K)).all()


def test_huge_values_of_a_polynomial_are_named_or_fitted():
    rows, y = load_breast_cancer(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = KernelClassifier("poly").fit(rows, y)
        except InputError as error:
            assert "scale" in str(error)  # noqa: PT017
        else:
            assert model.score(rows, y) > 0.9


@pytest.mark.parametrize(
    "fit",
    [
        lambda: KernelRidge(Gaussian(1e-160)).fit(X, Y),
        lambda: KernelRidge("gaussian", alpha=1.0).fit(X, Y, np.full(40, 1e150)),
        lambda: KernelRidge("gaussian", alpha=5e-324).fit(X, Y),
        lambda: KernelRidge("gaussian").fit(X * 1e-200, Y),
        lambda: GaussianProcessRegressor("gaussian", method="sgpr").fit(X[:1], [1e100]),
        lambda: KernelClassifier().fit(X, ["a", 1] * 20),
        lambda: GaussianProcessRegressor(n_landmarks="x").fit(X, Y),
        lambda: KernelPCA(tol="x").fit(X),
        lambda: KernelRidge(device="mps").fit(X, Y),
        lambda: KernelRidge(device=torch.device("mps")).fit(X, Y),
    ],
)
def test_what_failed_in_foreign_words_gives_numbers_or_an_error_of_ours(fit):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = fit()
    except MercerError:
        return
    assert np.isfinite(model.predict(X[:3] * (1e-200 if float(np.abs(model.X_fit_).max()) < 1e-100 else 1.0))).all()


def test_parquet_rows_take_a_list_of_files(tmp_path):
    paths = [tmp_path / f"{part}.parquet" for part in range(2)]
    for path, rows, y in zip(paths, np.split(X, 2), np.split(Y, 2), strict=True):
        pq.write_table(pa.table({"a": rows[:, 0], "b": rows[:, 1], "y": y}), path)
    source = ParquetRows([str(path) for path in paths], target="y")
    found = KernelRidge("gaussian", n_landmarks=10, alpha=0.1).fit(source).predict(X)
    assert found.shape == (40,)
    assert np.isfinite(found).all()


def test_descent_in_many_columns_on_two_rows_ends():
    wide = np.random.default_rng(0).normal(size=(2, 500))
    assert np.isfinite(KernelRidge(solver="gd").fit(wide, [0.0, 1.0]).predict(wide)).all()


def test_huber_follows_its_targets_up_and_down():
    for loss in ("huber", "epsilon_insensitive"):
        up, down, moved = (
            KernelRegressor(loss=loss, alpha=1.0, fit_intercept=True, tol=1e-9).fit(X, y).predict(X)
            for y in (Y, -Y, Y + 7.0)
        )
        np.testing.assert_allclose(up, -down, atol=1e-5)
        np.testing.assert_allclose(up + 7.0, moved, atol=1e-5)


def test_a_file_names_no_cluster(tmp_path):
    model = KernelRidge("gaussian", alpha=1.0, client="tcp://127.0.0.1:9", device="cpu", verbose=True)
    path = tmp_path / "model.safetensors"
    model.set_params(client=None).fit(X, Y).set_params(client="tcp://127.0.0.1:9").save(path)
    assert b"tcp://" not in path.read_bytes()
    assert load(path).client is None


def test_a_fit_to_one_row_is_saved(tmp_path):
    model = KernelRidge().fit(X[:1], Y[:1])
    model.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(load(tmp_path / "model.safetensors").predict(X), model.predict(X))


def test_a_noise_that_no_file_takes_is_refused_before_the_fit():
    with pytest.raises(InputError, match="noise=5e-324: must be"):
        GaussianProcessRegressor(noise=5e-324).fit(X, Y)


@pytest.mark.parametrize("rows", [1, 2, 9])
@pytest.mark.parametrize(("loss", "expected"), [("quantile", np.median), ("epsilon_insensitive", np.median)])
def test_losses_with_kinks_find_the_intercept_where_all_rows_are_equal(loss, expected, rows):
    y = np.linspace(-1.0, 2.0, rows) ** 3
    found = KernelRegressor(loss=loss, epsilon=0.0).fit(np.ones((rows, 2)), y).predict(np.ones((1, 2)))
    np.testing.assert_allclose(found, expected(y), atol=1e-4)
