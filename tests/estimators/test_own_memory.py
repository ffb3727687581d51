"""What a caller writes into arrays after a fit changes no fitted model."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from mercer.core.arrays import Points, as_points
from mercer.core.errors import MemoryBudgetError
from mercer.estimators import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelClassifier,
    KernelPCA,
    KernelRegressor,
    KernelRidge,
    MercerDecomposition,
    NystromFeatures,
    RandomFourierFeatures,
    RandomNetworkFeatures,
    TaylorFeatures,
)
from mercer.functions import RKHSFunction
from mercer.kernels import Gaussian

N = 24
rng = np.random.default_rng(0)
X = rng.uniform(0.1, 1.0, size=(N, 3))
Y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=N)
LABELS = (np.median(Y) < Y).astype(float)
WEIGHTS = rng.uniform(0.5, 2.0, size=N)

GIVEN_LANDMARKS = {
    KernelRidge: {"solver": "nystrom"},
    KernelClassifier: {"solver": "nystrom"},
    KernelRegressor: {"solver": "nystrom"},
    KernelPCA: {"n_components": 2},
    NystromFeatures: {},
}

MODELS = [
    *(KernelRidge("gaussian", alpha=0.1, solver=s) for s in ("auto", "eigh", "pcg", "gd", "nystrom", "falkon")),
    KernelRidge("gaussian", alpha="loo"),
    KernelRidge("gaussian", solver="random_features", n_features=20, alpha=1.0),
    KernelClassifier("gaussian", loss="hinge", alpha=1.0),
    KernelClassifier("gaussian", solver="pcg", alpha=1.0),
    KernelClassifier("gaussian", solver="nystrom", alpha=1.0),
    KernelRegressor("gaussian", loss="huber", alpha=1.0),
    KernelRegressor("gaussian", loss="huber", alpha="auto"),
    *(GaussianProcessRegressor("gaussian", method=m, tune=False) for m in ("exact", "iterative", "sgpr")),
    GaussianProcessClassifier("gaussian", tune=False),
    KernelPCA(2),
    KernelPCA(2, n_landmarks=40),
    MercerDecomposition(3),
    NystromFeatures(40),
    RandomFourierFeatures(10),
    RandomNetworkFeatures(10),
    TaylorFeatures(3),
]

KINDS = {
    "array": np.array,
    "float32": lambda A: np.array(A, dtype=np.float32),
    "by columns": lambda A: np.array(A, order="F"),
    "every second row": lambda A: np.repeat(A, 2, axis=0)[::2],
    "backwards": lambda A: np.array(A[::-1])[::-1],
    "tensor": lambda A: torch.tensor(np.array(A)),
    "float32 tensor": lambda A: torch.tensor(np.array(A), dtype=torch.float32),
    "frame": lambda A: pd.DataFrame(np.array(A)) if np.ndim(A) == 2 else np.array(A),
}


def seen_of(model):
    """What the model says of other rows, and of its own."""
    at = X[:5] + 0.01
    found = []
    for name in ("predict", "decision_function", "predict_proba", "transform", "eigenfunctions"):
        if hasattr(model, name):
            found.append(getattr(model, name)(at))
    if isinstance(model, KernelPCA):
        found.append(model.inverse_transform(np.zeros((2, model.features_.n_features))))
    if isinstance(model, GaussianProcessRegressor):
        found.append(model.predict(at, return_std=True)[1])
        found.append(model.sample_y(at))
    if isinstance(model, KernelRidge) and model._fit.sample is not None and model.solver != "gd":
        found += [model.loo_predictions_, model.label_weights(at)]
    return [np.asarray(values) for values in found]


def written_into(array):
    """Spoil an array in place."""
    if isinstance(array, pd.DataFrame):
        array.iloc[:, :] = 7.0
    elif array is not None:
        array[...] = 7.0


def assert_own(make, *given):
    """A model says the same before and after the arrays it was made from are overwritten."""
    untouched = seen_of(make(*given))
    model = make(*given)
    for array in given:
        written_into(array)
    for before, after in zip(untouched, seen_of(model), strict=True):
        np.testing.assert_array_equal(before, after)


def fitted(model, rows, y, weights):
    from sklearn.base import clone

    labels = "Classifier" in type(model).__name__
    targets = y > 0.5 if labels else y
    if "sample_weight" in type(model).fit.__code__.co_varnames:
        return clone(model).fit(rows, targets, sample_weight=weights)
    return clone(model).fit(rows, targets)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_what_is_written_into_the_data_later_changes_no_model(model, kind):
    made = KINDS[kind]
    y = LABELS if "Classifier" in type(model).__name__ else Y
    assert_own(lambda *given: fitted(model, *given), made(X), made(y), made(WEIGHTS))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["array", "by columns", "tensor"])
@pytest.mark.parametrize("estimator", GIVEN_LANDMARKS, ids=lambda estimator: estimator.__name__)
def test_what_is_written_into_given_landmarks_later_changes_no_model(estimator, kind):
    y = LABELS if "Classifier" in estimator.__name__ else Y

    def make(landmarks):
        return estimator(kernel="gaussian", landmarks=landmarks, **GIVEN_LANDMARKS[estimator]).fit(X, y)

    assert_own(make, KINDS[kind](X[:10]))


@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_rows_added_later_and_their_noise_are_the_models_own(kind):
    made = KINDS[kind]

    def process(rows, y, noise, more, more_y, more_noise):
        model = GaussianProcessRegressor("gaussian", noise=noise, tune=False)
        return model.fit(rows, y).partial_fit(more, more_y, noise=more_noise)

    assert_own(process, *map(made, (X[:14], Y[:14], WEIGHTS[:14], X[14:], Y[14:], WEIGHTS[14:])))

    def sparse(rows, y, more, more_y):
        model = GaussianProcessRegressor("gaussian", method="sgpr", tune=False)
        return model.fit(rows, y).partial_fit(more, more_y)

    assert_own(sparse, *map(made, (X[:14], Y[:14], X[14:], Y[14:])))

    def ridge(rows, y, more, more_y):
        model = KernelRidge("gaussian", solver="nystrom", n_landmarks=14, alpha=1.0)
        return model.partial_fit(rows, y).partial_fit(more, more_y)

    assert_own(ridge, *map(made, (X[:14], Y[:14], X[14:], Y[14:])))


@pytest.mark.parametrize("kind", ["array", "tensor"])
def test_a_ready_gram_matrix_is_copied_too(kind):
    gram = Gaussian(0.5)(X)
    for model in (
        KernelRidge("precomputed", alpha=1.0),
        KernelClassifier("precomputed", alpha=1.0),
        KernelPCA(2, "precomputed"),
    ):
        given = KINDS[kind](gram)
        fit = model.fit(given, LABELS)
        before = fit.transform(gram) if isinstance(model, KernelPCA) else fit.predict(gram)
        written_into(given)
        assert np.array_equal(fit.X_fit_, gram)
        assert np.array_equal(before, fit.transform(gram) if isinstance(model, KernelPCA) else fit.predict(gram))


def test_arrays_among_objects_are_copied():
    rows = [np.array(row) for row in X]

    def similar(a, b):
        return float(np.exp(-np.square(np.asarray(a) - np.asarray(b)).sum()))

    model = KernelRidge(similar, alpha=1.0).fit(rows, Y)
    before = model.predict(list(X))
    for row in rows:
        row[...] = 7.0
    assert np.array_equal(before, model.predict(list(X)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_of_the_space_keeps_its_own_centres_and_coefficients(kind):
    centres, coef = KINDS[kind](X), KINDS[kind](Y)
    f = RKHSFunction(Gaussian(0.5), centres, coef)
    before = np.asarray(f(X))
    written_into(centres)
    written_into(coef)
    assert np.array_equal(before, np.asarray(f(X)))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_copied_once_at_most(kind):
    given = KINDS[kind](X)
    points = as_points(given)
    own = points.owned()
    shares = kind not in ("frame", "backwards")  # those are copied by their conversion
    assert points.borrowed == shares
    assert (own is points) != shares
    assert own.owned() is own
    assert not points.take(torch.arange(3)).borrowed


def test_what_a_conversion_has_copied_is_not_copied_again():
    for given in (X.tolist(), pl.DataFrame(X), pd.DataFrame(X), X.astype(int), torch.tensor(X).long()):
        assert not as_points(given).borrowed


def test_a_copy_of_the_rows_counts_in_the_memory_budget():
    rows = np.ones((20, 50_000))  # 7.6 MiB; making their Gram matrix takes 40 MiB
    rows[:, 0] = np.arange(20)
    with pytest.raises(MemoryBudgetError, match="a copy of the rows, which the model keeps, needs 7.6 MiB"):
        KernelRidge("gaussian", memory_budget="4MiB", alpha=1.0).fit(rows, np.arange(20.0))
    KernelRidge("gaussian", memory_budget="44MiB", alpha=1.0).fit(rows.astype(int), np.arange(20.0))
    with pytest.raises(MemoryBudgetError, match=r"the memory budget is 36\.4 MiB"):
        KernelRidge("gaussian", memory_budget="44MiB", alpha=1.0).fit(rows, np.arange(20.0))


def test_fits_that_keep_no_rows_need_no_room_for_a_copy():
    rows = np.random.default_rng(0).normal(size=(20_000, 40))  # 6.1 MiB
    for model in (
        KernelRidge("gaussian", solver="nystrom", alpha=1.0),
        KernelRegressor("gaussian", solver="nystrom", alpha=1.0),
    ):
        model.set_params(n_landmarks=20, memory_budget="4MiB").fit(rows, rows[:, 0])


def test_slices_of_what_is_borrowed_are_borrowed():
    points = Points(torch.ones(4, 2), borrowed=True)
    assert points.take(slice(0, 2)).borrowed
    assert points.borrowed_bytes == 4 * 2 * 4
    assert points.owned().borrowed_bytes == 0


def test_copied_rows_lie_in_memory_as_they_do_after_loading():
    by_columns = as_points(np.asfortranarray(X))
    assert not by_columns.values.is_contiguous()
    assert by_columns.owned().values.is_contiguous()
