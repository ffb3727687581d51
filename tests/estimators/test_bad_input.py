"""Bad input gets a clear error with the offending name and value."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
import torch
from sklearn.base import clone

from mercer import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelClassifier,
    KernelPCA,
    KernelRegressor,
    KernelRidge,
    RFMRegressor,
    load,
    tabular,
)
from mercer.core.errors import InputError, InputTypeError, MemoryBudgetError, ModelFileError, NotPositiveDefiniteError
from mercer.kernels import Gaussian, Matern
from mercer.rows import ArrayRows

X = np.random.default_rng(0).normal(size=(12, 3))
y = X[:, 0].copy()


def spoiled(values, value):
    copy = np.array(values, dtype=float)
    copy.reshape(-1)[4] = value
    return copy


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["X", "y", "sample_weight"])
def test_nan_and_infinity_are_named(name, value):
    arguments = {"X": X, "y": y, "sample_weight": np.ones(12)}
    arguments[name] = spoiled(arguments[name], value)
    with pytest.raises(ValueError, match=f"(?i){name}.*contains (NaN|infinity)"):
        KernelRidge().fit(**arguments)
    with pytest.raises(ValueError, match=f"(?i){name}.*contains (NaN|infinity)"):
        KernelRidge().fit(**{key: torch.tensor(given) for key, given in arguments.items()})


@pytest.mark.parametrize("model", [KernelRidge(), KernelRegressor(), GaussianProcessRegressor()], ids=repr)
def test_fit_says_where_the_first_nan_or_infinity_is(model):
    with pytest.raises(InputError, match="X contains NaN .first: row 1, column 1.; impute it, for example"):
        model.fit(spoiled(X, np.nan), y)
    with pytest.raises(InputError, match="y contains infinity .first: position 4.; replace it"):
        model.fit(X, spoiled(y, np.inf))
    with pytest.raises(InputError, match="y contains NaN .first: row 2, column 0."):
        model.fit(X, spoiled(X[:, :2], np.nan))


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", 2.0 * Matern(1.5, "median")])
def test_rows_too_far_apart_for_a_median_distance_are_to_be_rescaled(kernel):
    with pytest.raises(InputError, match="distances between the rows of X overflow .*2e.308.*: rescale"):
        KernelRidge(kernel).fit(X / np.abs(X).max() * 1.7e308, y)


def test_nan_in_test_rows_is_named():
    with pytest.raises(ValueError, match="X contains NaN"):
        KernelRidge().fit(X, y).predict(spoiled(X, np.nan))


SHAPES = {
    "one dimension": (X[:, 0], "Expected 2D array, got 1D .*X has shape .12,.*reshape.-1, 1."),
    "no rows": (X[:0], "0 sample.*shape .n, d."),
    "no columns": (X[:, :0], "0 feature.*shape .n, d."),
    "three dimensions": (X[:, :, None], "dim 3.*shape .n, d."),
    "complex": (X + 1j, "Complex data not supported: .*real and imaginary"),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(
    "model", [KernelRidge(), KernelRegressor(), KernelPCA(), RFMRegressor("laplace", max_iter=1, n_folds=2)], ids=repr
)
def test_wrong_shapes_are_errors_of_ours_without_the_numbers(name, model):
    wrong, words = SHAPES[name]
    targets = y[: len(wrong)]
    with pytest.raises(InputError, match=words) as caught:
        model.fit(wrong, targets)
    assert len(str(caught.value)) < 300
    fitted = clone(model).fit(X, y)
    with pytest.raises(InputError, match=words):
        (fitted.predict if hasattr(fitted, "predict") else fitted.transform)(wrong)


def test_what_does_not_belong_to_the_rows_is_an_error_of_ours():
    with pytest.raises(InputError, match="X has 12 rows but y has 11"):
        KernelRidge().fit(X, y[:-1])
    with pytest.raises(InputError, match="sample_weight.shape == .3,., expected .12,."):
        KernelRidge().fit(X, y, np.ones(3))
    with pytest.raises(InputError, match="y contains text .'a'.* use KernelClassifier"):
        KernelRidge().fit(X, ["a"] * len(y))
    with pytest.raises(InputError, match="X has 1 features, but KernelRidge is expecting 3 features"):
        KernelRidge().fit(X, y).predict(X[:, :1])


def test_empty_data():
    with pytest.raises(ValueError, match="0 sample"):
        KernelRidge().fit(np.empty((0, 3)), np.empty(0))
    with pytest.raises(ValueError, match="0 feature"):
        KernelRidge().fit(np.empty((3, 0)), np.ones(3))
    with pytest.raises(ValueError, match=r"shape \(0, 3\)"):
        KernelRidge().fit(torch.empty(0, 3), torch.empty(0))


def test_mismatched_rows_and_features():
    with pytest.raises(ValueError, match="12"):
        KernelRidge().fit(X, y[:-1])
    with pytest.raises(ValueError, match=r"y has shape \(11,\) but X has 12 rows"):
        KernelRidge().fit(torch.tensor(X), torch.tensor(y[:-1]))
    model = KernelRidge().fit(X, y)
    with pytest.raises(ValueError, match="2 features, but KernelRidge is expecting 3"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match="2 features, but KernelRidge is expecting 3"):
        model.predict(torch.tensor(X[:, :2]))


def test_one_dimensional_rows():
    with pytest.raises(ValueError, match="reshape"):
        KernelRidge().fit(y, y)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (X + 1j, "(?i)complex"),
        (np.array([["a", "b", "c"]] * 12), "(?i)convert string|dtype|numbers only"),
        (np.array([[{}, 1, 2]] * 12, dtype=object), "(?i)float|argument"),
        (torch.tensor(X, dtype=torch.bfloat16), "bfloat16"),
        (torch.tensor(X, dtype=torch.complex64), "complex"),
        (torch.tensor(X, requires_grad=True), r"X requires grad.*X.detach\(\)"),
        (scipy.sparse.csr_matrix(X), "(?i)sparse"),
        (torch.tensor(X).to_sparse(), "sparse"),
    ],
    ids=["complex", "strings", "objects", "bfloat16", "complex tensor", "grad", "sparse", "sparse tensor"],
)
def test_rows_of_a_kind_that_cannot_be_used(data, message):
    with pytest.raises((ValueError, TypeError), match=message):
        KernelRidge().fit(data, torch.tensor(y) if isinstance(data, torch.Tensor) else y)


def test_targets_of_a_kind_that_cannot_be_used():
    with pytest.raises((ValueError, TypeError), match="(?i)complex"):
        KernelRidge().fit(X, y + 1j)
    with pytest.raises((ValueError, TypeError), match="y contains text .'a'.*KernelClassifier"):
        KernelRidge().fit(X, np.array(["a"] * 12))
    with pytest.raises(TypeError, match="y requires grad"):
        KernelRidge().fit(torch.tensor(X), torch.tensor(y, requires_grad=True))


@pytest.mark.parametrize("alpha", [-1.0, np.nan, np.inf, "cv", None, [1.0, 2.0], [[1.0]], True, "1.0", {}])
def test_alpha_out_of_range_is_quoted(alpha):
    with pytest.raises((ValueError, TypeError), match="alpha="):
        KernelRidge(alpha=alpha).fit(X, y)


@pytest.mark.parametrize("alphas", [[], [-1.0, 1.0], [np.nan], "abc"])
def test_alphas_out_of_range_are_quoted(alphas):
    with pytest.raises((ValueError, TypeError), match="alphas="):
        KernelRidge(alpha="loo", alphas=alphas).fit(X, y)


def test_sample_weights_out_of_range():
    with pytest.raises(ValueError, match="(?i)negative"):
        KernelRidge().fit(X, y, sample_weight=-np.ones(12))
    with pytest.raises(ValueError, match="(?i)zero"):
        KernelRidge().fit(X, y, sample_weight=np.zeros(12))
    with pytest.raises(ValueError, match="shape"):
        KernelRidge().fit(X, y, sample_weight=np.ones(5))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": "gausian"}, "gaussian"),
        ({"kernel": "laplacian"}, "laplace_l1"),
        ({"kernel": 3}, "kernel"),
        ({"solver": "magic"}, "solver='magic'.*cholesky"),
        ({"device": "tpu"}, "device='tpu'"),
        ({"dtype": "float16"}, "dtype='float16'"),
        ({"memory_budget": "many"}, "memory_budget='many'"),
        ({"random_state": "seed"}, "random_state='seed'"),
        ({"kernel": Gaussian((1.0, 2.0))}, "length_scale has 2 entries but X has 3 columns"),
    ],
)
def test_settings_out_of_range_are_quoted(settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        KernelRidge(**settings).fit(X, y)


def test_a_function_that_is_not_symmetric_is_not_a_kernel():
    with pytest.raises(ValueError, match="(?i)symmetric"):
        KernelRidge(lambda a, b: float(a[0] - b[0] + 5)).fit(X, y)


@pytest.mark.parametrize("alpha", [1e-3, 100.0, "loo", 0.0])
def test_a_function_that_is_not_positive_definite_is_not_a_kernel(alpha):
    with pytest.raises(NotPositiveDefiniteError, match="(?i)eigenvalue"):
        KernelRidge(lambda a, b: float(-((a - b) ** 2).sum()), alpha=alpha).fit(X, y)


def test_precomputed_matrices_of_the_wrong_shape_or_not_kernels():
    K = Gaussian(1.0)(X)
    with pytest.raises(ValueError, match=r"\(12, 3\)"):
        KernelRidge("precomputed").fit(X, y)
    model = KernelRidge("precomputed").fit(K, y)
    with pytest.raises(ValueError, match="5 features, but KernelRidge is expecting 12"):
        model.predict(K[:, :5])
    with pytest.raises(ValueError, match="(?i)symmetric"):
        KernelRidge("precomputed").fit(K + np.triu(np.ones((12, 12)), 1), y)
    with pytest.raises(NotPositiveDefiniteError, match="(?i)eigenvalue"):
        KernelRidge("precomputed", alpha=50.0).fit(-K, y)


def test_a_gram_matrix_that_cannot_fit_the_budget_says_what_would():
    with pytest.raises(MemoryBudgetError, match=r"memory budget is 992\.8 KiB.*[Aa]t most \d+ rows"):  # beside a copy
        KernelRidge(solver="cholesky", memory_budget="1MiB").fit(np.ones((2000, 2)), np.ones(2000))
    with pytest.raises(MemoryBudgetError, match="solver='pcg' needs no matrix"):
        KernelRidge(alpha="loo", solver="eigh", memory_budget="1MiB").fit(np.ones((2000, 2)), np.ones(2000))


def test_predict_before_fit():
    from sklearn.exceptions import NotFittedError

    for use in (lambda m: m.predict(X), lambda m: m.loo_predictions_, lambda m: m.function_, lambda m: m.save("x")):
        with pytest.raises(NotFittedError):
            use(KernelRidge())


def test_model_files_that_are_not(tmp_path):
    model = KernelRidge(alpha=0.1).fit(X, y)
    path = tmp_path / "model.safetensors"
    model.save(path)
    whole = path.read_bytes()
    for damaged in (b"", b"garbage", whole[:40], whole[:-9], whole[: len(whole) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError, match="model.safetensors"):
            load(path)
    with pytest.raises(ModelFileError, match="does not exist"):
        load(tmp_path / "nothing.safetensors")


def test_a_missing_value_in_a_table_is_named_by_its_column():
    table = pd.DataFrame(spoiled(X, np.nan)).rename(columns=lambda i: f"column {i}")
    for model in (KernelRidge(), KernelRegressor(), GaussianProcessRegressor()):
        with pytest.raises(InputError, match=r"X contains NaN \(first: row 1, column 'column 1'\); impute it, for"):
            model.fit(table, y)


def test_numbers_beyond_float64_are_infinite_without_a_foreign_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(InputError, match="X contains infinity"):
            KernelRidge().fit(X.astype(np.longdouble) * np.longdouble("1e4000"), y)


@pytest.mark.parametrize("options", [{"n_features": 10}, {"n_landmarks": 10}])
@pytest.mark.parametrize("tune", [False, True])
def test_a_stream_without_any_weight_is_refused(options, tune):
    source = ArrayRows(X, y, np.zeros(len(y)))
    with pytest.raises(InputError, match="no rows to"):
        KernelRidge(Gaussian(1.0), tune=tune, **options).fit(source)


def test_any_seed_that_numpy_takes_is_one():
    for data in ((X, y), (ArrayRows(X, y),)):
        KernelRidge(Gaussian(1.0), n_landmarks=4, random_state=10**30).fit(*data)


def test_a_kernel_that_vanishes_at_all_landmarks_leaves_the_intercept():
    model = KernelClassifier("linear", n_landmarks=5).fit(X * 1e-200, np.arange(len(X)) % 3 == 0)
    assert not model.predict(X).any()


def test_targets_beyond_1e154_are_reported_and_fitted_without_foreign_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        small, huge = (KernelRidge("gaussian", alpha="gcv").fit(X, y * size) for size in (1.0, 1e200))
        one, other = (float(str(model.report()).split("  error")[1].split()[0]) for model in (small, huge))
        assert other / 1e200 == pytest.approx(one, rel=1e-3)
        assert huge.score(X, y * 1e200) == pytest.approx(small.score(X, y))
        KernelRegressor("laplace", loss="quantile", alpha=1.0).fit(X, y * 1e200)


def test_probabilities_know_no_unit_of_weights():
    one, many = (
        KernelClassifier(Gaussian(1.0), loss="squared", alpha=size).fit(X, y > np.median(y), np.full(len(y), size))
        for size in (1.0, 1e150)
    )
    assert np.isfinite(many.predict_proba(X)).all()
    assert np.isfinite(one.predict_proba(X)).all()


def test_the_only_row_cannot_be_left_out_beside_an_intercept():
    model = KernelRidge(Gaussian(1.0), alpha=1.0).fit(X[:1], y[:1])
    with pytest.raises(InputError, match="at least two rows"):
        _ = model.loo_predictions_
    assert "1 rows" in str(model.report())
    plain = KernelRidge(Gaussian(1.0), alpha=1.0, fit_intercept=False).fit(X[:1], y[:1])
    np.testing.assert_array_equal(plain.loo_predictions_, [0.0])


TENSORS = {
    "meta": torch.empty(12, 3, device="meta"),
    "quantized": torch.quantize_per_tensor(torch.ones(12, 3), 0.1, 0, torch.qint8),
    "sparse": torch.eye(12).to_sparse(),
    "bfloat16": torch.ones(12, 3, dtype=torch.bfloat16),
}


@pytest.mark.filterwarnings("ignore:.*quant")
@pytest.mark.parametrize("kind", TENSORS)
@pytest.mark.parametrize("model", [KernelRidge(), KernelClassifier(), tabular(KernelRidge())], ids=repr)
def test_tensors_without_plain_numbers_are_errors_of_ours(kind, model):
    tensor, labels = TENSORS[kind], np.arange(12) % 2
    with pytest.raises(InputTypeError, match=r"X (is a|has dtype)"):
        clone(model).fit(tensor, labels)
    fitted = clone(model).fit(X, labels)
    with pytest.raises(InputTypeError, match=r"X (is a|has dtype)"):
        fitted.predict(tensor)
    if kind != "bfloat16":
        with pytest.raises(InputTypeError, match="y is a"):
            clone(model).fit(X, tensor[:, 0] if kind == "meta" else tensor)
        with pytest.raises(InputTypeError, match="sample_weight is a"):
            clone(model).fit(X, labels, sample_weight=tensor)


def test_a_table_that_is_not_computed_is_refused_without_a_foreign_warning():
    lazy = pl.DataFrame({"a": y}).lazy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in (KernelRidge(), tabular(KernelRidge())):
            with pytest.raises(InputTypeError, match=r"X\.collect\(\)"):
                model.fit(lazy, y)


@pytest.mark.parametrize("model", [KernelRidge(), KernelClassifier(), tabular(KernelRidge())], ids=repr)
def test_weights_whose_sum_is_no_number_are_refused(model):
    with pytest.raises(InputError, match="whose sum overflows"):
        clone(model).fit(X, np.arange(12) % 2, sample_weight=np.full(12, 1e308))


def test_weights_that_vanish_beside_those_of_classes_are_refused():
    model = KernelClassifier(class_weight={0: 1e-200, 1: 1e-200})
    with pytest.raises(InputError, match="too small"):
        model.fit(X, np.arange(12) % 2, sample_weight=np.full(12, 1e-200))


def test_counts_beyond_any_memory_are_refused():
    model = GaussianProcessRegressor(tune=False).fit(X, y)
    for draw in (lambda: model.sample_y(X, 10**30), lambda: model.sample_functions(10**30)):
        with pytest.raises(MemoryBudgetError):
            draw()


def test_probabilities_of_a_process_take_rows_that_require_gradients():
    model = GaussianProcessClassifier(max_iter=3).fit(X, y > 0)
    found = model.predict_proba(torch.tensor(X, requires_grad=True))
    np.testing.assert_allclose(found.detach(), model.predict_proba(X))


def test_joint_samples_have_no_gradient_and_say_so():
    with pytest.raises(InputTypeError, match="no gradient"):
        GaussianProcessRegressor(tune=False).fit(X, y).sample_y(torch.tensor(X, requires_grad=True))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "wrong", [None, 1.0, "target", np.array(["a"] * 12), 1e200 * y, np.full(12, np.inf), y[:3], 1j * y]
)
def test_targets_of_a_process_of_tables_are_looked_at_before_they_are_used(wrong):
    with pytest.raises((InputError, InputTypeError), match="y|samples"):
        tabular(GaussianProcessRegressor("gaussian")).fit(X, wrong)


def test_weights_for_an_estimator_that_takes_none_are_refused():
    with pytest.raises(InputTypeError, match="takes no weights"):
        tabular(GaussianProcessRegressor()).fit(X, y, sample_weight=np.ones(12))
