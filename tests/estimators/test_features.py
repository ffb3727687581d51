"""Laws of explicit features: their inner products are the kernel, in the mean, in the limit or at the landmarks."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from mercer import (
    KernelRidge,
    MercerDecomposition,
    NystromFeatures,
    RandomFourierFeatures,
    RandomNetworkFeatures,
    TaylorFeatures,
    load,
)
from mercer.core.errors import InputError, MercerError, ModelFileError
from mercer.files.persistence import read_model, write_model
from mercer.kernels import (
    ExponentialPower,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Periodic,
    RationalQuadratic,
    Spectrum,
    Subspace,
    WideLayer,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
METHODS = ("pairs", "offset", "orthogonal", "qmc")
MAPS = {
    "fourier": RandomFourierFeatures(31, "gaussian"),
    "offset": RandomFourierFeatures(30, "laplace", method="offset"),
    "orthogonal": RandomFourierFeatures(30, Matern(1.5, 2.0) + 1.0, method="orthogonal"),
    "qmc": RandomFourierFeatures(30, Laplace(2.0, "l1"), method="qmc"),
    "nystrom": NystromFeatures(20, "laplace"),
    "pivoted": NystromFeatures(20, "gaussian", landmarks="pivoted"),
    "leverage": NystromFeatures(20, "matern32", landmarks="leverage"),
    "given": NystromFeatures(kernel=Gaussian(1.0), landmarks=X[:7]),
    "taylor": TaylorFeatures(3, "gaussian"),
    "relu": RandomNetworkFeatures(25),
    "erf": RandomNetworkFeatures(25, "erf", bias_scale=0.5),
    "mercer": MercerDecomposition(6, "gaussian"),
}


def gram_of(features, X):
    phi = features.fit(X).transform(X)
    return phi @ phi.T


# Random Fourier features


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", [Gaussian(1.2), Laplace(1.5), Matern(1.5, 2.0)], ids=repr)
def test_random_features_are_the_kernel_in_the_mean(kernel, method):
    few = X[:4]
    grams = np.stack(
        [gram_of(RandomFourierFeatures(5, kernel, method=method, random_state=s), few) for s in range(500)]
    )
    error = np.abs(grams.mean(0) - kernel(few))
    assert (error <= 5 * grams.std(0) / math.sqrt(500) + 1e-12).all(), error


def test_the_factor_of_cosines_with_offset_is_the_root_of_two_over_p():
    phi = RandomFourierFeatures(5000, "gaussian", method="offset").fit_transform(X)
    assert np.abs(phi).max() == pytest.approx(math.sqrt(2 / 5000), rel=1e-3)
    assert (phi**2).sum(1).mean() == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("method", ["pairs", "offset"])
def test_the_variance_falls_like_one_over_the_number_of_features(method):
    def variance(p):
        draws = [RandomFourierFeatures(p, Gaussian(2.0), method=method, random_state=s) for s in range(500)]
        return np.var([gram_of(features, X[:2])[0, 1] for features in draws])

    assert variance(6) / variance(96) == pytest.approx(16.0, rel=0.35)


@pytest.mark.parametrize("method", ["orthogonal", "qmc"])
def test_structured_frequencies_have_a_smaller_error_than_independent_ones(method):
    def error(how):
        kernel = Gaussian(2.0)
        maps = [RandomFourierFeatures(64, kernel, method=how, random_state=s).fit(X) for s in range(30)]
        return math.sqrt(np.mean([features.approximation_error(X).rms ** 2 for features in maps]))

    assert error(method) < 0.8 * error("pairs")


def test_orthogonal_frequencies_are_orthogonal_and_have_the_right_lengths():
    kernel = Gaussian(0.5)
    W = RandomFourierFeatures(6, kernel, method="orthogonal").fit(X).features_.frequencies
    products = (W @ W.T).numpy()
    np.testing.assert_allclose(products - np.diag(np.diag(products)), 0.0, atol=1e-12)
    many = RandomFourierFeatures(20_000, kernel, method="orthogonal").fit(X).features_.frequencies
    assert float(many.square().sum(1).mean()) == pytest.approx(3 / 0.25, rel=0.03)
    assert float(many.square().sum(1).var()) == pytest.approx(2 * 3 / 0.25**2, rel=0.1)


@pytest.mark.parametrize(
    "kernel",
    [
        Laplace(2.0, "l1"),
        Periodic(1.0, 2.0),
        RationalQuadratic(1.0, alpha=0.7),
        ExponentialPower(1.5, power=1.2),
        Gaussian((1.0, 2.0, 3.0)),
        0.5 * Gaussian(2.0) + 2.0 * Laplace(3.0) + 0.3,
        Gaussian(2.0) * (Periodic(1.0, 3.0) + Matern(2.5, 1.0)),
        Subspace(Gaussian(1.0), [0, 2]) * Subspace(Laplace(1.0), [1]),
    ],
    ids=repr,
)
def test_quasi_random_features_stand_for_every_kernel_with_a_spectral_measure(kernel):
    error = RandomFourierFeatures(4000, kernel, method="qmc").fit(X).approximation_error(X)
    assert error.relative < 0.06, error


def test_orthogonal_features_need_a_kernel_of_the_euclidean_distance():
    for kernel in (Laplace(1.0, "l1"), Periodic(), Gaussian() * Periodic()):
        with pytest.raises(InputError, match='method="orthogonal" is for kernels of the Euclidean distance'):
            RandomFourierFeatures(kernel=kernel, method="orthogonal").fit(X)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("p", [1, 2, 7])
def test_there_are_as_many_features_as_asked_for(method, p):
    features = RandomFourierFeatures(p, "gaussian", method=method).fit(X[:1])
    assert features.transform(X).shape == (60, p)
    assert len(features.get_feature_names_out()) == p


# Nyström features


def test_nystrom_features_equal_those_of_scikit_learn():
    theirs = Nystroem(gamma=0.3, n_components=15, random_state=0).fit(X)
    ours = NystromFeatures(kernel=Gaussian.from_gamma(0.3), landmarks=theirs.components_).fit(X)
    np.testing.assert_allclose(gram_of(ours, X), theirs.transform(X) @ theirs.transform(X).T, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_nystrom_feature_j_depends_on_the_landmarks_from_j_on(dtype):
    features = NystromFeatures(kernel=Gaussian(2.0), landmarks=X[:40]).fit(X.astype(dtype))
    basis = features.features_.basis.numpy()
    assert len(basis) == 40
    assert not np.triu(basis, 1).any()
    assert np.abs(np.diagonal(basis)).min() > 0
    K = Gaussian(2.0)(X[:40].astype(dtype).astype(float))
    np.testing.assert_allclose(basis.T @ K @ basis, np.eye(basis.shape[1]), atol=1e-6)


@pytest.mark.parametrize("landmarks", ["uniform", "pivoted", "leverage"])
def test_nystrom_features_are_exact_at_landmarks_and_never_too_large(landmarks):
    features = NystromFeatures(15, "laplace", landmarks=landmarks).fit(X)
    kernel, Z = features.kernel_, features.landmarks_
    np.testing.assert_allclose(features.transform(X) @ features.transform(Z).T, kernel(X, Z), atol=1e-8)
    assert ((features.transform(X) ** 2).sum(1) <= 1.0 + 1e-9).all()


def test_nystrom_features_of_all_rows_are_the_kernel():
    features = NystromFeatures(1000, "laplace").fit(X)
    assert "all 60 rows are landmarks" in str(features.report())
    assert features.approximation_error(X).max < 1e-10


def test_dependent_landmarks_are_counted_once():
    twice = np.r_[X[:10], X[:10]]
    assert NystromFeatures(20, "laplace").fit(twice).transform(X).shape == (60, 10)
    assert NystromFeatures(20, Linear()).fit(X).transform(X).shape == (60, 3)


def test_nystrom_features_in_float32_are_close_to_those_in_float64():
    exact = gram_of(NystromFeatures(kernel=Gaussian(2.0), landmarks=X[:40]), X)
    single = gram_of(NystromFeatures(kernel=Gaussian(2.0), landmarks=X[:40]), X.astype(np.float32))
    np.testing.assert_allclose(single, exact, atol=2e-3)


def test_strings_have_nystrom_features():
    words = ["ACGT", "AACC", "GGTT", "ACAC", "GTGT"]
    features = NystromFeatures(5, Spectrum(2)).fit(words)
    np.testing.assert_allclose(gram_of(features, words), Spectrum(2)(words), atol=1e-10)


# Taylor features


def test_taylor_features_converge_to_the_kernel_as_fast_as_their_bound():
    few = 0.5 * X
    for degree in range(10):
        features = TaylorFeatures(degree, Gaussian((1.0, 2.0, 1.5)), center=False).fit(few)
        reach = float(np.max(np.sum((few / [1.0, 2.0, 1.5]) ** 2, axis=1)))
        bound = reach ** (degree + 1) / math.factorial(degree + 1)
        assert features.transform(few).shape == (60, math.comb(3 + degree, degree))
        assert features.approximation_error(few).max <= bound + 1e-12


def test_taylor_features_in_one_dimension_are_those_of_the_textbook():
    g, x = 0.7, np.linspace(-2, 2, 9)
    phi = TaylorFeatures(5, Gaussian.from_gamma(g), center=False).fit_transform(x.reshape(-1, 1))
    for l in range(6):
        psi = np.exp(-g * x**2) * x**l
        np.testing.assert_allclose(phi[:, l], math.sqrt((2 * g) ** l / math.factorial(l)) * psi, atol=1e-13)


def test_taylor_features_are_taken_about_the_mean():
    centred = TaylorFeatures(6, 1.5).fit(X + 100.0)
    assert centred.approximation_error(X + 100.0).rms < 0.05
    assert TaylorFeatures(6, 1.5, center=False).fit(X + 100.0).approximation_error(X + 100.0).rms > 0.1


# Random network features


@pytest.mark.parametrize("activation", ["relu", "erf", "tanh", "sin"])
def test_the_last_layer_of_a_random_network_is_kernel_ridge_regression(activation):
    y = np.sin(X).sum(1)
    features = RandomNetworkFeatures(40, activation).fit(X)
    layer = Ridge(0.3, fit_intercept=False).fit(features.transform(X), y)
    kernel = KernelRidge(features.kernel_, alpha=0.3, fit_intercept=False).fit(X, y)
    new = rng.normal(size=(20, 3))
    np.testing.assert_allclose(layer.predict(features.transform(new)), kernel.predict(new), atol=1e-8)


@pytest.mark.parametrize("activation", ["relu", "erf", "tanh", "sin", torch.nn.functional.softplus])
def test_wide_networks_have_the_kernel_of_their_limit(activation):
    few = X[:4]
    maps = [
        RandomNetworkFeatures(2000, activation, weight_scale=1.3, bias_scale=0.4, random_state=s) for s in range(40)
    ]
    grams = np.stack([gram_of(features, few) for features in maps])
    exact = WideLayer(activation, 1.3**2, 0.4**2)(few)
    assert (np.abs(grams.mean(0) - exact) <= 5 * grams.std(0) / math.sqrt(40) + 1e-6).all()


# All of them


@pytest.mark.parametrize("name", MAPS)
def test_features_keep_dtype_and_kind_of_array(name):
    features = clone(MAPS[name])
    for data in (X, X.astype(np.float32), torch.tensor(X), torch.tensor(X, dtype=torch.float32)):
        phi = features.fit(data).transform(data)
        assert type(phi) is type(data)
        assert phi.dtype == data.dtype
        if not isinstance(data, torch.Tensor):
            expected = clone(features).fit(X.astype(data.dtype)).transform(torch.tensor(data))
            np.testing.assert_allclose(phi, expected, atol=1e-12)


@pytest.mark.parametrize("name", MAPS)
def test_features_have_names_and_frames(name):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    features = clone(MAPS[name]).set_output(transform="pandas").fit(frame)
    shown = features.transform(frame)
    assert list(shown.columns) == list(features.get_feature_names_out())
    assert list(features.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_allclose(shown.to_numpy(), clone(MAPS[name]).fit_transform(X), atol=1e-8)


@pytest.mark.parametrize("name", MAPS)
def test_the_error_is_that_of_all_pairs_of_rows(name):
    features, Z = clone(MAPS[name]).fit(X), X[:11] + 0.5
    error = features.approximation_error(X, Z)
    exact = features._fit.exact(torch.tensor(X), torch.tensor(Z)).numpy()
    differences = features.transform(X) @ features.transform(Z).T - exact
    assert error.max == pytest.approx(np.abs(differences).max(), rel=1e-6)
    assert error.rms == pytest.approx(np.sqrt(np.mean(differences**2)), rel=1e-6)
    assert error.relative == pytest.approx(np.linalg.norm(differences) / np.linalg.norm(exact), rel=1e-6)
    assert error.pairs == 660
    assert "660 pairs" in repr(error)
    assert features.approximation_error(X, max_rows=5).pairs == 25


@pytest.mark.parametrize("name", MAPS)
def test_saved_features_come_back_whole(name, tmp_path):
    features = clone(MAPS[name]).fit(pd.DataFrame(X, columns=["a", "b", "c"]))
    features.save(tmp_path / "f.safetensors")
    again = load(tmp_path / "f.safetensors")
    new = pd.DataFrame(X + 0.1, columns=["a", "b", "c"])
    np.testing.assert_array_equal(again.transform(new), features.transform(new))
    assert list(again.get_feature_names_out()) == list(features.get_feature_names_out())
    assert str(again.report()) == str(features.report())
    np.testing.assert_allclose(again.fit(X).transform(X), features.fit(X).transform(X))


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda meta, arrays: arrays.update(extra=torch.ones(2)),
        lambda meta, arrays: arrays.pop(sorted(arrays)[0]),
        lambda meta, arrays: arrays.update({k: v.reshape(-1)[:1] for k, v in arrays.items()}),
        lambda meta, arrays: meta.update(names=["a"]),
        lambda meta, arrays: meta.update(n_rows="many"),
        lambda meta, arrays: meta["params"].update(hook="x"),
    ],
)
def test_spoiled_files_are_refused(name, spoil, tmp_path):
    path = tmp_path / "f.safetensors"
    features = clone(MAPS[name]).fit(X)
    features.save(path)
    kind, meta, arrays = read_model(path, {type(features).__name__})
    spoil(meta, arrays)
    write_model(path, kind, meta, arrays)
    with pytest.raises(ModelFileError, match="f.safetensors"):
        load(path)


@pytest.mark.parametrize("name", MAPS)
def test_constant_columns_duplicates_and_one_row_are_no_trouble(name):
    features = clone(MAPS[name])
    for data in (np.c_[X[:, :2], np.ones(60)], np.repeat(X[:5], 4, axis=0), np.ones((5, 3)), X[:1]):
        if name == "given":
            features = clone(features).set_params(landmarks=data)
        phi = features.fit(data).transform(data)
        assert np.isfinite(phi).all()
        assert phi.shape[0] == len(data)


@pytest.mark.parametrize("name", ["fourier", "offset", "orthogonal", "qmc", "relu", "nystrom", "pivoted"])
def test_a_seed_repeats_its_features_and_another_gives_others(name):
    one, same, other = (clone(MAPS[name]).set_params(random_state=s).fit_transform(X) for s in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert one.shape != other.shape or not np.allclose(one, other)


@pytest.mark.parametrize("kind", [RandomFourierFeatures, NystromFeatures, MercerDecomposition])
def test_size_kernel_and_seed_come_first(kind):
    model = kind(7, "laplace", 3)
    assert (model.n_components, model.kernel, model.random_state) == (7, "laplace", 3)
    named = kind(n_components=7, kernel="laplace", random_state=3)
    np.testing.assert_array_equal(model.fit_transform(X), named.fit_transform(X))


def test_features_work_in_pipelines_and_searches():
    y = np.sin(X).sum(1)
    search = GridSearchCV(
        make_pipeline(RandomFourierFeatures(60, Gaussian(1.0)), Ridge(0.1)),
        {"randomfourierfeatures__kernel__length_scale": [0.1, 2.0]},
        cv=3,
    ).fit(X, y)
    assert search.best_params_ == {"randomfourierfeatures__kernel__length_scale": 2.0}


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (RandomFourierFeatures(n_components=0), "n_components=0"),
        (RandomFourierFeatures(n_components=2.5), "n_components=2.5"),
        (RandomFourierFeatures(method="sobol"), "method='sobol'"),
        (RandomFourierFeatures(kernel="linear"), "not shift-invariant.* Use NystromFeatures, which"),
        (RandomFourierFeatures(10**13), "n_components=10000000000000: .* At most"),
        (RandomNetworkFeatures(10**13), "n_components=10000000000000: .* At most"),
        (
            RandomFourierFeatures("gaussian", 100),
            r"='gaussian' is not a number.* RandomFourierFeatures\(n_components, kernel",
        ),
        (NystromFeatures(Gaussian(1.0), 100), r"n_components=Gaussian.* NystromFeatures\(n_components, kernel\)"),
        (TaylorFeatures("gaussian", 3), r"degree='gaussian'.* TaylorFeatures\(degree, kernel\)"),
        (RandomNetworkFeatures("erf", 20), r"n_components='erf'.* RandomNetworkFeatures\(n_components, activation\)"),
        (MercerDecomposition(lambda a, b: 1.0, 10), r"MercerDecomposition\(n_components, kernel\)"),
        (RandomFourierFeatures(1, Gaussian() + 1.0), "takes one feature of its own"),
        (NystromFeatures(n_components=-1), "n_components=-1"),
        (NystromFeatures(landmarks="best"), "landmarks='best'"),
        (NystromFeatures(landmarks=X[:, :2]), "landmarks have 2 columns"),
        (NystromFeatures(kernel="precomputed"), "precomputed"),
        (NystromFeatures(kernel=Linear(), landmarks=np.zeros((2, 3))), "zero at all landmarks"),
        (NystromFeatures(5, lambda a, b: -abs(a - b).sum()), "eigenvalue -.* not positive semi-definite"),
        (NystromFeatures(kernel=lambda a, b: a @ b[[0, 2, 1]], landmarks=np.eye(3)), "the eigenvalue -1 "),
        (TaylorFeatures(kernel="laplace"), "Taylor features are those of a Gaussian"),
        (TaylorFeatures(degree=-1), "degree=-1"),
        (TaylorFeatures(degree=400), "Taylor features; use a lower degree"),
        (RandomNetworkFeatures(activation="swish"), "activation='swish'"),
        (RandomNetworkFeatures(weight_scale=-1.0), "weight_scale=-1.0"),
        (RandomNetworkFeatures(activation=lambda u: u[:1]), "keep the shape"),
        (MercerDecomposition(n_components=0), "n_components=0"),
        (MercerDecomposition(solver="qr"), "solver='qr'"),
    ],
)
def test_bad_input_is_named(features, words):
    data = X if "precomputed" not in words else X @ X.T
    with pytest.raises(MercerError, match=words):
        features.fit(data).transform(data)


def test_functions_do_not_fit_a_model_file(tmp_path):
    features = RandomNetworkFeatures(5, torch.nn.functional.softplus).fit(X)
    with pytest.raises(InputError, match="Python function"):
        features.save(tmp_path / "f.safetensors")


ONE = [
    TaylorFeatures(3),
    RandomFourierFeatures(1),
    RandomNetworkFeatures(1),
    NystromFeatures(1),
    MercerDecomposition(1),
]


@pytest.mark.parametrize("features", ONE, ids=repr)
def test_a_map_of_one_column_with_one_feature_is_saved(features, tmp_path):
    column = X[:, :1]
    features.fit(column).save(tmp_path / "m")
    np.testing.assert_array_equal(load(tmp_path / "m").transform(column), features.transform(column))
