"""Very large and very small data, weights and alphas: the right number, or an error that names the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
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
    MercerDecomposition,
    NystromFeatures,
    RandomFourierFeatures,
    TaylorFeatures,
    load,
)
from mercer.core.errors import InputError, InputTypeError, NotPositiveDefiniteError
from mercer.kernels import Gaussian, Kernel, Laplace, Matern, Polynomial, RationalQuadratic, resolve
from mercer.operators import gram
from mercer.rows import ArrayRows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
y = X[:, 0] + 0.1 * RNG.normal(size=40)
labels = y > 0
STEEP = Polynomial(6)
FAR = X.copy()
FAR[[7, 30]] *= 1e60

SOLVERS = ("cholesky", "eigh", "pcg", "nystrom", "falkon", "gd", "eigenpro")
EVALUATIONS: dict[str, Any] = {
    **{f"ridge {s}": lambda s=s: KernelRidge(STEEP, alpha=1.0, solver=s).fit(X, y).predict for s in SOLVERS},
    "label weights": lambda: KernelRidge(STEEP, alpha=1.0).fit(X, y).label_weights,
    "function": lambda: KernelRidge(STEEP, alpha=1.0).fit(X, y).function_,
    "bound": lambda: KernelRidge(STEEP, alpha=1.0).fit(X, y).function_.bound,
    "source": lambda: lambda Z: KernelRidge(STEEP, alpha=1.0).fit(X, y).predict(ArrayRows(Z, rows_at_once=20)),
    "classes": lambda: KernelClassifier(STEEP, alpha=1.0).fit(X, labels).predict,
    "probabilities": lambda: KernelClassifier(STEEP, alpha=1.0).fit(X, labels).predict_proba,
    "decisions": lambda: KernelClassifier(STEEP, loss="hinge", alpha=1.0).fit(X, labels).decision_function,
    "regressor": lambda: KernelRegressor(STEEP, alpha=1.0).fit(X, y).predict,
    "process": lambda: GaussianProcessRegressor(STEEP).fit(X, y).predict,
    "deviations": lambda: lambda Z: GaussianProcessRegressor(STEEP).fit(X, y).predict(Z, return_std=True),
    "covariances": lambda: lambda Z: GaussianProcessRegressor(STEEP).fit(X, y).predict(Z, return_cov=True),
    "process classes": lambda: GaussianProcessClassifier(STEEP).fit(X, labels).predict,
    "latent": lambda: GaussianProcessClassifier(STEEP).fit(X, labels).latent_mean_and_variance,
    "components": lambda: KernelPCA(2, kernel=STEEP).fit(X).transform,
    "eigenfunctions": lambda: MercerDecomposition(2, kernel=STEEP).fit(X).eigenfunctions,
    "Nystrom features": lambda: NystromFeatures(10, kernel=STEEP).fit(X).transform,
}


@pytest.mark.parametrize("name", EVALUATIONS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_where_the_kernel_overflows_are_named(name: str) -> None:
    evaluate = EVALUATIONS[name]()
    with pytest.raises(InputError, match=r"overflow float64 at \d+ of \d+ rows of X \(first: row 7\)"):
        evaluate(FAR)


@pytest.mark.parametrize("size", [1e-100, 1e100])
@pytest.mark.parametrize("name", ["array", "tensor", "source"])
def test_targets_that_predictions_in_the_type_of_x_cannot_hold_are_refused(name: str, size: float) -> None:
    single = X.astype(np.float32)
    given = {"array": (single, size * y), "tensor": (torch.from_numpy(single), torch.from_numpy(size * y))}
    with pytest.raises(InputError, match="X is float32"):
        KernelRidge("gaussian").fit(*given.get(name, [ArrayRows(single, size * y)]))
    with pytest.raises(InputError, match="dtype='float32'"):
        KernelRidge("gaussian", dtype="float32").fit(X, size * y)
    for small in (1e-37, 1e37):
        predicted = KernelRidge("gaussian", alpha=1e-3).fit(single, small * y).predict(single)
        np.testing.assert_allclose(predicted / small, y, atol=0.5)


def test_rows_of_a_source_are_counted_from_its_beginning() -> None:
    late = X.copy()
    late[33] *= 1e60
    with pytest.raises(InputError, match=r"first: row 33"):
        KernelRidge(STEEP, alpha=1.0).fit(X, y).predict(ArrayRows(late, rows_at_once=10))


@pytest.mark.parametrize(
    "model", [KernelRidge(STEEP, alpha=1.0), KernelRegressor(STEEP), GaussianProcessRegressor(STEEP)]
)
def test_numbers_too_large_for_float32_are_an_error_and_not_infinite(model: Any) -> None:
    single = X.astype(np.float32)
    model.fit(single, y)
    with pytest.raises(InputError, match="overflow float32 at 40 of 40 rows of X"):
        model.predict(single * np.float32(1e10))


FITS: dict[str, Any] = {
    **{f"ridge {s}": lambda Z, s=s: KernelRidge(STEEP, alpha=1.0, solver=s, **few(s)).fit(Z, y) for s in SOLVERS},
    "ridge loo": lambda Z: KernelRidge(STEEP, alpha="loo").fit(Z, y),
    "ridge tuned": lambda Z: KernelRidge(STEEP, alpha="loo", tune=True).fit(Z, y),
    "source": lambda Z: KernelRidge(STEEP, alpha=1.0, n_landmarks=5).fit(ArrayRows(Z, y, rows_at_once=5)),
    "classifier": lambda Z: KernelClassifier(STEEP, alpha=1.0).fit(Z, labels),
    "regressor": lambda Z: KernelRegressor(STEEP, solver="nystrom", n_landmarks=5, alpha=1.0).fit(Z, y),
    "process": lambda Z: GaussianProcessRegressor(STEEP).fit(Z, y),
    "inducing points": lambda Z: GaussianProcessRegressor(STEEP, method="sgpr").fit(Z, y),
    "process classes": lambda Z: GaussianProcessClassifier(STEEP).fit(Z, labels),
    "components": lambda Z: KernelPCA(2, kernel=STEEP).fit(Z),
    "landmark components": lambda Z: KernelPCA(2, kernel=STEEP, n_landmarks=5).fit(Z),
    "features": lambda Z: NystromFeatures(5, kernel=STEEP).fit(Z),
}


def few(solver: str) -> dict[str, int]:
    return {"n_landmarks": 5} if solver in ("nystrom", "falkon") else {}


@pytest.mark.parametrize("name", FITS)
def test_a_fit_names_the_rows_with_which_the_kernel_overflows(name: str) -> None:
    with pytest.raises(InputError, match=r"overflow float64 at \d+ of \d+ rows of X \(first: row 7\)"):
        FITS[name](FAR)


SCALED: dict[str, Any] = {
    "gaussian": lambda Z: KernelRidge(Gaussian("median"), alpha=0.01).fit(Z, y).predict(Z),
    "laplace": lambda Z: KernelRidge(Laplace("median"), alpha=0.01).fit(Z, y).predict(Z),
    "laplace l1": lambda Z: KernelRidge(Laplace("median", metric="l1"), alpha=0.01).fit(Z, y).predict(Z),
    "matern": lambda Z: KernelRidge(Matern(2.5, "median"), alpha=0.01, solver="pcg").fit(Z, y).predict(Z),
    "rational": lambda Z: KernelRidge(RationalQuadratic("median"), alpha=0.01).fit(Z, y).predict(Z),
    "random features": lambda Z: KernelRidge("gaussian", alpha=0.01, solver="random_features").fit(Z, y).predict(Z),
    "classifier": lambda Z: KernelClassifier(alpha=1.0).fit(Z, labels).decision_function(Z),
    "components": lambda Z: KernelPCA(2, kernel="gaussian").fit(Z).transform(Z),
    "Taylor features": lambda Z: TaylorFeatures(3).fit(Z).transform(Z),
    "Fourier features": lambda Z: RandomFourierFeatures(10).fit(Z).transform(Z),
}


@pytest.mark.parametrize("power", [-1000, -660, -500, 500, 1000])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("name", SCALED)
def test_units_of_the_data_do_not_matter_however_small_or_large(name: str, columns: int, power: int) -> None:
    Z = X[:, :columns]
    np.testing.assert_allclose(SCALED[name](Z * 2.0**power), SCALED[name](Z), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("power", [-1000, -500, 500])
def test_tuning_does_not_depend_on_units(power: int) -> None:
    tuned = [KernelRidge("gaussian", alpha="loo", tune=True).fit(X * s, y).kernel_ for s in (1.0, 2.0**power)]
    one, other = (np.asarray(kernel.length_scale) for kernel in tuned)
    np.testing.assert_allclose(other * 2.0**-power, one, rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e-160, 1e160, 1e300])
def test_the_median_distance_is_found_in_any_unit(scale: float) -> None:
    found = resolve(Gaussian("median"), X * scale).length_scale
    assert found / scale == pytest.approx(
        resolve(Gaussian("median"), X).length_scale, rel=1e-3 if scale < 1e-308 else 1e-12
    )


@pytest.mark.parametrize("kernel", [Gaussian(1e-160), Laplace(1e-200), Matern(1.5, 1e-300)])
@pytest.mark.parametrize("columns", [1, 2])
def test_tiny_length_scales_give_the_identity(kernel: Kernel, columns: int) -> None:
    assert np.array_equal(gram(kernel, X[:, :columns]).dense(), np.eye(40))
    fitted = KernelRidge(kernel, alpha=1.0).fit(X[:, :columns], y)
    np.testing.assert_allclose(fitted.predict(X[:, :columns]), y.mean() + (y - y.mean()) / 2)


@pytest.mark.parametrize("scale", [1e-36, 1e-39, 1e-50, 1e-160, 1e-300])
@pytest.mark.parametrize("size", [1.0, 1e10, 1e100])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
def test_length_scales_too_small_for_the_rows_give_the_identity_or_an_error(
    scale: float, size: float, columns: int, dtype: Any
) -> None:
    rows = (size * X[:10, :columns]).astype(dtype)
    if not np.isfinite(rows).all():
        return
    for kernel in (Gaussian(scale), Matern(1.5, scale), Laplace(scale, metric="l1"), Laplace((scale,) * columns, "l1")):
        for matrix in (lambda kernel=kernel: kernel(rows), lambda kernel=kernel: gram(kernel, rows).dense()):
            try:
                found, said = matrix(), ""
            except InputError as error:
                found, said = np.eye(10), str(error)
            assert np.array_equal(found, np.eye(10))
            assert not said or "a larger one" in said


@pytest.mark.parametrize("alpha", [5e-324, 1e-310, -1.0, float("inf")])
def test_alphas_that_are_no_numbers_to_divide_by_are_refused(alpha: float) -> None:
    for model in (
        KernelRidge(alpha=alpha),
        KernelRidge(alpha="loo", alphas=[alpha, 1.0]),
        KernelRidge(alpha="gcv", alphas=[alpha]),
        KernelRidge(alpha=alpha, solver="random_features"),
        KernelRegressor(alpha=alpha),
        KernelClassifier(alpha=alpha),
    ):
        with pytest.raises(InputError, match=r"at least 2\.2e-308"):
            model.fit(X, labels.astype(float))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["cholesky", "eigh", "random_features", "pcg"])
def test_the_smallest_alpha_gives_finite_numbers(solver: str) -> None:
    repeated, targets = np.concatenate([X, X[:3]]), np.concatenate([y, y[:3]])
    fitted = KernelRidge(Gaussian(), alpha=1e-307, solver=solver).fit(repeated, targets)
    assert np.isfinite(fitted.predict(X)).all()


def test_a_cubic_of_raw_columns_is_called_too_large() -> None:
    with pytest.raises(NotPositiveDefiniteError, match=r"kernel values reach 2e\+22.* Scale the columns of X"):
        KernelClassifier("poly", alpha=1.0).fit(*load_breast_cancer(return_X_y=True))


@pytest.mark.parametrize("weight", [1e-150, 1e150])
def test_extreme_weights_fit_or_say_so(weight: float) -> None:
    weights = np.full(40, weight)
    fitted = KernelRidge(Gaussian(), alpha=weight).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(fitted.predict(X), KernelRidge(Gaussian(), alpha=1.0).fit(X, y).predict(X), rtol=1e-8)


SINGLE = {
    "inner products": lambda A: (A @ A.T).astype(np.float32),
    "gaussian": lambda A: Gaussian(3.0)(A).astype(np.float32),
    "polynomial": lambda A: Polynomial(3)(A).astype(np.float32),
}


@pytest.mark.parametrize("name", SINGLE)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_gram_matrices_in_float32_are_allowed_their_rounding(name: str) -> None:
    A = np.random.default_rng(1).normal(size=(400, 3)).astype(np.float32)
    K, targets = SINGLE[name](A), A[:, 0] + A[:, 1]
    assert np.linalg.eigvalsh(K.astype(np.float64))[0] < 0
    exact = K.astype(np.float64)
    centred, mean = exact - exact.mean(0), targets.mean()
    centred -= centred.mean(1, keepdims=True)
    expected = mean + centred @ np.linalg.solve(centred + 0.1 * np.eye(400), targets - mean)
    for given in (K, torch.from_numpy(K)):
        for solver in ("auto", "eigh", "pcg"):
            found = KernelRidge("precomputed", alpha=0.1, solver=solver).fit(given, targets).predict(given)
            np.testing.assert_allclose(np.asarray(found), expected, atol=1e-3 * np.abs(targets).max())
        for loss in ("logistic", "hinge", "squared_hinge"):
            model = KernelClassifier("precomputed", alpha=0.1, loss=loss).fit(given, targets > 0)
            assert np.mean(np.asarray(model.predict(given)) == (targets > 0)) > 0.95
        KernelRegressor("precomputed", alpha=0.1).fit(given, targets)
        KernelPCA(2, kernel="precomputed").fit(given)


def test_a_float32_matrix_with_a_negative_eigenvalue_is_still_refused() -> None:
    K = np.eye(30, dtype=np.float32)
    K[0, 0] = -1e-3
    with pytest.raises(NotPositiveDefiniteError):
        KernelClassifier("precomputed").fit(K, np.arange(30) % 2)


@pytest.mark.parametrize(
    "settings", [{"alpha": 1.0}, {"alpha": 1.0, "solver": "pcg"}, {"alpha": "loo"}, {"n_landmarks": 10}]
)
def test_a_row_without_weight_where_the_kernel_overflows_is_named_where_it_is_predicted(
    settings: Any, tmp_path: Any
) -> None:
    idle = np.ones(40)
    idle[[7, 30]] = 0.0
    model = KernelRidge(STEEP, **settings).fit(FAR, y, sample_weight=idle)
    with pytest.raises(InputError, match=r"overflow float64 at 2 of 40 rows of X \(first: row 7\)"):
        _ = model.loo_predictions_
    model.report()
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert str(again.report()).splitlines()[:3] == str(model.report()).splitlines()[:3]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("weight", [1.0, 1e150])
def test_a_classifier_reports_where_curvature_is_lost_in_rounding(weight: float) -> None:
    rows, classes = RNG.normal(size=(40, 1)) + 1e6, np.arange(40) % 10
    model = KernelClassifier("poly").fit(rows, classes, sample_weight=np.full(40, weight))
    assert "accuracy" in str(model.report())


BEYOND = np.full(30, 10**400, dtype=object)
"""Integers that no float64 holds."""


@pytest.mark.parametrize(
    ("y", "weights", "words"),
    [
        (BEYOND, None, "y: int too large"),
        (None, BEYOND, "sample_weight: int too large"),
        (None, np.full(30, 5e-324), "sample_weight has values of at most 4.9e-324"),
        (None, np.full(30, 1e-300), "divide them by that"),
    ],
)
def test_numbers_that_float64_cannot_use_are_named(y, weights, words):
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(InputError, match=words):
        KernelRidge().fit(X, X[:, 0] if y is None else y, weights)


def test_labels_of_bytes_are_refused_in_our_words():
    X = np.random.default_rng(0).normal(size=(4, 2))
    with pytest.raises(InputError, match="use a regressor|bytes"):
        KernelClassifier().fit(X, np.array([b"a", b"b", b"a", b"b"]))


def test_a_transformer_is_not_fitted_to_rows_that_require_gradients():
    X = torch.randn(20, 2, requires_grad=True, generator=torch.Generator().manual_seed(0))
    for transformer in (NystromFeatures(5), KernelPCA(2), RandomFourierFeatures(6)):
        with pytest.raises(InputTypeError, match=r"X\.detach\(\)"):
            transformer.fit(X)
