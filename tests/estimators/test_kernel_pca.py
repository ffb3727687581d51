"""Laws of kernel PCA, and its equality with scikit-learn's and with ordinary PCA."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as SklearnKernelPCA
from sklearn.exceptions import ConvergenceWarning

from mercer import KernelPCA, load
from mercer.core.errors import (
    InputError,
    InputTypeError,
    MemoryBudgetError,
    MercerError,
    ModelFileError,
    NotPositiveDefiniteError,
)
from mercer.files.persistence import read_model, write_model
from mercer.kernels import Constant, Gaussian, Laplace, Linear, Polynomial, Spectrum
from mercer.operators import Centred, Stored, gram
from mercer.solvers import top_eigenpairs

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 4)) * [3.0, 2.0, 1.0, 0.5]
new = rng.normal(size=(15, 4))
LARGE = rng.normal(size=(600, 5))


def same_up_to_sign(A, B, atol=1e-8):
    signs = np.sign((A * B).sum(0))
    np.testing.assert_allclose(A * np.where(signs == 0, 1.0, signs), B, atol=atol)


def circles(n=100, noise=0.0):
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    radius = np.repeat([1.0, 3.0], n) + noise * rng.normal(size=2 * n)
    angle = np.r_[angle, angle]
    return np.c_[radius * np.cos(angle), radius * np.sin(angle)], np.repeat([0, 1], n)


# The eigenvalue solver


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Laplace(3.0), Linear()], ids=repr)
@pytest.mark.parametrize("count", [1, 3, 10])
def test_the_truncated_solver_finds_the_largest_eigenvalues(kernel, count):
    A = Centred(gram(kernel, torch.tensor(LARGE)))
    found = top_eigenpairs(A, count, solver="krylov")
    exact = np.linalg.eigvalsh(A.dense().numpy())[::-1][:count]
    assert found.report.converged
    assert found.report.residual < 1e-11
    np.testing.assert_allclose(found.values, np.maximum(exact, 0.0), atol=1e-10 * exact[0])
    V = found.vectors
    torch.testing.assert_close(V.T @ V, torch.eye(count).double(), atol=1e-10, rtol=0)
    torch.testing.assert_close(A.matmul(V), V * found.values, atol=1e-10 * exact[0], rtol=0)


def test_repeated_and_close_eigenvalues_are_all_found():
    values = torch.tensor([5.0, 5.0, 5.0, 5.0 - 1e-9, 4.0, 4.0, *np.linspace(0, 3.99, 494)]).double()
    Q = torch.linalg.qr(torch.randn(500, 500, generator=torch.Generator().manual_seed(0)).double())[0]
    found = top_eigenpairs(Stored((Q * values) @ Q.T), 6, solver="krylov")
    torch.testing.assert_close(found.values, values[:6], atol=1e-10, rtol=0)


def test_a_flat_spectrum_is_found_after_restarts():
    values = torch.linspace(0.9, 1.0, 500).double().flip(0)
    Q = torch.linalg.qr(torch.randn(500, 500, generator=torch.Generator().manual_seed(0)).double())[0]
    found = top_eigenpairs(Stored((Q * values) @ Q.T), 2, solver="krylov")
    assert found.report.converged
    torch.testing.assert_close(found.values, values[:2], atol=1e-10, rtol=0)


def test_a_matrix_of_zeros_and_one_of_rank_one_are_no_trouble():
    assert top_eigenpairs(Stored(torch.zeros(500, 500).double()), 3, solver="krylov").values.tolist() == [0, 0, 0]
    found = top_eigenpairs(Stored(torch.ones(500, 500).double()), 3, solver="krylov")
    torch.testing.assert_close(found.values, torch.tensor([500.0, 0.0, 0.0]).double(), atol=1e-9, rtol=0)


def test_an_indefinite_matrix_is_refused():
    for solver in ("krylov", "dense"):
        with pytest.raises(MercerError, match="positive semi-definite"):
            top_eigenpairs(Stored(torch.diag(torch.linspace(-1, 1, 500)).double() + 1e-9), 2, solver=solver)


def test_a_centred_operator_is_the_centred_matrix():
    A, K = Centred(gram(Laplace(2.0), X)), Laplace(2.0)(X)
    P = np.eye(80) - 1 / 80
    np.testing.assert_allclose(A.dense(), P @ K @ P, atol=1e-12)
    np.testing.assert_allclose(A.diag(), np.diag(P @ K @ P), atol=1e-12)
    np.testing.assert_allclose(A.rows([3, 5]), (P @ K @ P)[[3, 5]], atol=1e-12)
    np.testing.assert_allclose(A @ X, P @ K @ P @ X, atol=1e-11)


# Equality with others


@pytest.mark.parametrize("solver", ["dense", "krylov"])
@pytest.mark.parametrize(
    ("kernel", "theirs"),
    [
        (Gaussian.from_gamma(0.05), {"kernel": "rbf", "gamma": 0.05}),
        (Polynomial(2, 1.0), {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0}),
        (Linear(), {"kernel": "linear"}),
    ],
    ids=["rbf", "poly", "linear"],
)
def test_components_equal_those_of_scikit_learn(kernel, theirs, solver):
    reference = SklearnKernelPCA(4, eigen_solver="dense", **theirs).fit(X)
    ours = KernelPCA(4, kernel, solver=solver).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, reference.eigenvalues_, rtol=1e-9)
    scale = np.abs(reference.transform(X)).max()
    np.testing.assert_allclose(ours.transform(X), reference.transform(X), atol=1e-8 * scale)  # signs are equal too
    np.testing.assert_allclose(ours.transform(new), reference.transform(new), atol=1e-8 * scale)
    np.testing.assert_allclose(ours.fit_transform(X), ours.transform(X), atol=1e-8 * scale)


def test_all_components_equal_those_of_scikit_learn():
    ours = KernelPCA(kernel=Gaussian.from_gamma(0.05)).fit(X)
    reference = SklearnKernelPCA(kernel="rbf", gamma=0.05).fit(X)
    assert len(ours.eigenvalues_) == len(reference.eigenvalues_) == 79
    same_up_to_sign(ours.transform(new)[:, :40], reference.transform(new)[:, :40])
    assert ours.explained_variance_ratio_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("data", [load_iris().data, load_digits().data[:500]], ids=["iris", "digits"])
def test_components_equal_those_of_scikit_learn_on_real_data(data):
    gamma = 1.0 / (data.shape[1] * data.var())
    ours = KernelPCA(5, Gaussian.from_gamma(gamma)).fit_transform(data)
    same_up_to_sign(ours, SklearnKernelPCA(5, kernel="rbf", gamma=gamma).fit_transform(data))


@pytest.mark.parametrize("solver", ["dense", "krylov"])
def test_the_linear_kernel_gives_ordinary_pca(solver):
    pca = PCA(3).fit(X)
    ours = KernelPCA(3, Linear(), solver=solver).fit(X)
    same_up_to_sign(ours.transform(new), pca.transform(new))
    np.testing.assert_allclose(ours.explained_variance_ratio_, pca.explained_variance_ratio_, rtol=1e-9)
    np.testing.assert_allclose(ours.eigenvalues_ / 79, pca.explained_variance_, rtol=1e-9)


def test_without_centring_the_spectra_of_both_gram_matrices_coincide():
    """Non-zero eigenvalues of X X^T and X^T X are equal, and u = X^T a / sqrt(lambda)."""
    ours = KernelPCA(kernel=Linear(), center=False).fit(X)
    values, U = np.linalg.eigh(X.T @ X)
    np.testing.assert_allclose(ours.eigenvalues_, values[::-1], rtol=1e-10)
    same_up_to_sign(ours.transform(new), new @ U[:, ::-1])
    a = np.linalg.eigh(X @ X.T)[1][:, -1]
    same_up_to_sign((X.T @ a / np.sqrt(values[-1]))[:, None], U[:, -1:])


def test_coordinates_have_the_eigenvalues_as_squared_lengths_and_no_correlation():
    Y = KernelPCA(5, "laplace").fit(X)
    C = Y.transform(X).T @ Y.transform(X)
    np.testing.assert_allclose(C, np.diag(Y.eigenvalues_), atol=1e-8)
    np.testing.assert_allclose(Y.transform(X).mean(0), 0.0, atol=1e-10)


def test_lazy_products_give_the_same_components(monkeypatch):
    stored = KernelPCA(4, Gaussian(2.0), solver="krylov").fit(LARGE)
    lazy = KernelPCA(4, Gaussian(2.0), solver="krylov", memory_budget="6MiB").fit(LARGE)
    assert "tile by tile" in lazy.solver_report_.reason
    assert "tile by tile" not in stored.solver_report_.reason
    np.testing.assert_allclose(lazy.transform(LARGE), stored.transform(LARGE), atol=1e-8)
    with pytest.raises(MemoryBudgetError, match="Give n_components"):
        KernelPCA(memory_budget="6MiB").fit(LARGE)


# The concentric circles


@pytest.mark.parametrize("noise", [0.0, 0.15])
def test_concentric_circles_fall_apart_on_the_first_coordinate(noise):
    rows, ring = circles(noise=noise)
    first = KernelPCA(2, Gaussian(2**0.5)).fit_transform(rows)[:, 0]
    inner, outer = first[ring == 0], first[ring == 1]
    assert inner.min() > outer.max() or inner.max() < outer.min()


# Landmarks


def test_with_every_row_a_landmark_the_components_are_exact():
    exact, ours = KernelPCA(5, "laplace").fit(X), KernelPCA(5, "laplace", n_landmarks=80).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, exact.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(ours.explained_variance_ratio_, exact.explained_variance_ratio_, rtol=1e-8)
    same_up_to_sign(ours.transform(new), exact.transform(new), atol=1e-7)


@pytest.mark.parametrize("landmarks", [None, "pivoted", "leverage", LARGE[:150]], ids=["None", "piv", "lev", "given"])
def test_landmarks_come_close_to_the_exact_components(landmarks):
    exact = KernelPCA(2, Gaussian(3.0)).fit(LARGE)
    ours = KernelPCA(2, Gaussian(3.0), landmarks=landmarks, n_landmarks=150).fit(LARGE)
    np.testing.assert_allclose(ours.eigenvalues_, exact.eigenvalues_, rtol=0.01)
    assert len(ours.X_fit_) <= 150
    np.testing.assert_allclose(ours.explained_variance_ratio_, exact.explained_variance_ratio_, rtol=0.02)


# Pre-images


def test_the_pre_image_by_ridge_regression_equals_that_of_scikit_learn():
    data = X - X.mean(0)  # scikit-learn's regression shrinks to zero, ours to the mean
    kernel = Gaussian.from_gamma(0.05)
    theirs = SklearnKernelPCA(4, kernel="rbf", gamma=0.05, fit_inverse_transform=True, alpha=0.1).fit(data)
    ours = KernelPCA(4, kernel, inverse_kernel=kernel, inverse_alpha=0.1).fit(data)
    Y = theirs.transform(new)
    np.testing.assert_allclose(ours.inverse_transform(Y), theirs.inverse_transform(Y), atol=1e-8)


@pytest.mark.parametrize("pre_image", ["ridge", "fixed_point"])
def test_pre_images_of_the_training_rows_are_near_them(pre_image):
    model = KernelPCA(kernel=Gaussian(3.0), pre_image=pre_image, inverse_alpha=1e-6).fit(X)
    back = model.inverse_transform(model.transform(X))
    assert np.sqrt(np.mean((back - X) ** 2)) < 0.05 * X.std()


@pytest.mark.parametrize("landmarks", [None, "pivoted"])
@pytest.mark.parametrize("pre_image", ["ridge", "fixed_point"])
def test_pre_images_take_noise_off(pre_image, landmarks):
    clean, _ = circles(150)
    noisy = clean + 0.2 * rng.normal(size=clean.shape)
    model = KernelPCA(14, Gaussian(1.0), pre_image=pre_image, landmarks=landmarks, inverse_alpha=0.1).fit(noisy)
    back = model.inverse_transform(model.transform(noisy))
    radius = np.linalg.norm(clean, axis=1)
    error = np.abs(np.linalg.norm(back, axis=1) - radius).mean()
    assert error < 0.75 * np.abs(np.linalg.norm(noisy, axis=1) - radius).mean()


def test_the_fixed_point_is_closer_in_the_rkhs_than_the_regression():
    ridge, fixed = (
        KernelPCA(3, Gaussian(2.0), pre_image=p, inverse_alpha=1.0).fit(X) for p in ("ridge", "fixed_point")
    )
    Y = ridge.transform(new)
    gamma = torch.tensor(Y) @ ridge.features_.coef.T + ridge._fit.mean_coef
    closeness = [(gamma.numpy() * Gaussian(2.0)(m.inverse_transform(Y), X)).sum(1) for m in (ridge, fixed)]
    assert (closeness[1] >= closeness[0] - 1e-12).all()
    assert closeness[1].mean() > closeness[0].mean()


# Behaviour


def test_more_components_than_rows_are_cut_and_those_without_variance_are_zero():
    ours = KernelPCA(50, Linear()).fit(X[:10])
    Y = ours.transform(X)
    assert Y.shape == (80, 10)
    assert (ours.eigenvalues_[4:] == 0).all()
    assert (Y[:, 4:] == 0).all()
    assert "have no variance" in str(ours.report())
    assert KernelPCA(kernel=Linear()).fit(X[:10]).transform(X).shape == (80, 4)


@pytest.mark.parametrize("model", [KernelPCA(), KernelPCA(2, solver="krylov"), KernelPCA(2, n_landmarks=5)], ids=repr)
@pytest.mark.parametrize("data", [X[:1], np.ones((30, 4)), np.repeat(X[:3], 10, axis=0)], ids=["one", "equal", "few"])
def test_few_different_rows_are_no_trouble(model, data):
    Y = model.fit_transform(data)
    assert np.isfinite(Y).all()
    assert len(Y) == len(data)
    assert np.isfinite(model.explained_variance_ratio_).all()
    if len(np.unique(data, axis=0)) == 1:
        np.testing.assert_allclose(Y, 0.0, atol=1e-7)


def test_a_constant_kernel_has_no_components():
    Y = KernelPCA(2, Constant(3.0)).fit_transform(LARGE)
    assert (Y == 0).all()
    assert (KernelPCA(2, Constant(3.0), solver="krylov").fit_transform(LARGE) == 0).all()


def test_signs_do_not_depend_on_the_seed():
    one, other = (KernelPCA(3, "gaussian", solver="krylov", random_state=s).fit_transform(LARGE) for s in (0, 1))
    np.testing.assert_allclose(one, other, atol=1e-8)


def test_an_unfinished_search_says_so():
    with pytest.warns(ConvergenceWarning, match="KernelPCA"):
        model = KernelPCA(3, Laplace(0.3), solver="krylov", max_iter=1).fit(LARGE)
    assert "max_iter" in str(model.report())


def test_dtypes_and_kinds_of_arrays_are_kept():
    for data in (X.astype(np.float32), torch.tensor(X), torch.tensor(X, dtype=torch.float32)):
        model = KernelPCA(2)
        for Y in (model.fit_transform(data), model.transform(data), model.inverse_transform(model.transform(data))):
            assert type(Y) is type(data)
            assert Y.dtype == data.dtype
        assert isinstance(model.eigenvalues_, type(data))
        same_up_to_sign(np.asarray(model.transform(data)), KernelPCA(2).fit_transform(X), atol=1e-4)


def test_strings_and_precomputed_kernels_have_components():
    words = ["ACGT", "AACC", "GGTT", "ACAC", "GTGT", "CCCA"]
    by_words = KernelPCA(2, Spectrum(2)).fit(words)
    K = Spectrum(2)(words)
    by_matrix = KernelPCA(2, "precomputed").fit(K)
    np.testing.assert_allclose(by_words.transform(words), by_matrix.transform(K), atol=1e-10)
    np.testing.assert_allclose(by_words.fit_transform(words), by_words.transform(words), atol=1e-10)
    with pytest.raises(InputError, match="was not fitted to one"):
        by_words.inverse_transform(np.ones((1, 2)))


@pytest.mark.parametrize("model", [KernelPCA(3), KernelPCA(3, "laplace", center=False), KernelPCA(2, n_landmarks=20)])
def test_saved_components_come_back_whole(model, tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd"))
    model.fit(frame).save(tmp_path / "m.safetensors")
    again = load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.transform(frame), model.transform(frame))
    np.testing.assert_array_equal(again.eigenvalues_, model.eigenvalues_)
    np.testing.assert_array_equal(again.explained_variance_ratio_, model.explained_variance_ratio_)
    np.testing.assert_allclose(
        again.inverse_transform(model.transform(frame)), model.inverse_transform(model.transform(frame))
    )
    assert str(again.report()) == str(model.report())
    assert list(again.feature_names_in_) == list("abcd")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda meta, arrays: arrays.pop("shift"),
        lambda meta, arrays: arrays.update(coef=arrays["coef"][:-1].clone()),
        lambda meta, arrays: arrays.update(mean_coef=torch.ones(3).double()),
        lambda meta, arrays: arrays.update(eigenvalues=torch.ones(9).double()),
        lambda meta, arrays: meta.update(total="x"),
        lambda meta, arrays: meta.update(report={}),
        lambda meta, arrays: meta.update(kernel={"class": "os.system", "params": {}}),
    ],
)
def test_spoiled_files_are_refused(spoil, tmp_path):
    path = tmp_path / "m.safetensors"
    KernelPCA(2).fit(X).save(path)
    name, meta, arrays = read_model(path, {"KernelPCA"})
    spoil(meta, arrays)
    write_model(path, name, meta, arrays)
    with pytest.raises(ModelFileError, match="m.safetensors"):
        load(path)


def test_the_plot_shows_the_first_two_coordinates():
    rows, ring = circles()
    model = KernelPCA(2, Gaussian(2**0.5)).fit(rows)
    ax = model.plot(rows, ring)
    assert "Component 1" in ax.get_xlabel()
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["0", "1"]
    points = np.concatenate([c.get_offsets() for c in ax.collections])
    np.testing.assert_allclose(points, model.transform(rows))


def test_the_plot_of_one_component_shows_it_against_the_number_of_the_row():
    model = KernelPCA(1).fit(X)
    ax = model.plot()
    np.testing.assert_allclose(ax.collections[0].get_offsets(), np.c_[np.arange(80), model.transform(X)])
    assert ax.get_xlabel() == "Number of the row"
    assert ax.get_ylabel() == f"Component 1 ({model.explained_variance_ratio_[0]:.0%} of the variance)"


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        (KernelPCA(0), InputError, "n_components=0"),
        (KernelPCA(2.5), InputTypeError, "n_components=2.5"),
        (KernelPCA(Linear()), InputTypeError, r"write KernelPCA\(kernel=...\)"),
        (KernelPCA(2, solver="power"), InputError, "solver='power'"),
        (KernelPCA(2, landmarks="best"), InputError, "landmarks='best'"),
        (KernelPCA(2, n_landmarks=0), InputError, "n_landmarks=0"),
        (KernelPCA(2, n_landmarks=2.5), InputTypeError, "n_landmarks=2.5"),
        (KernelPCA(2, tol=-1.0), InputError, "tol=-1.0"),
        (KernelPCA(2, max_iter=0), InputError, "max_iter=0"),
        (KernelPCA(2, pre_image="magic"), InputError, "pre_image='magic'"),
        (KernelPCA(2, "laplace", pre_image="fixed_point"), InputError, "for a Gaussian kernel"),
        (KernelPCA("linear", 2), InputTypeError, r"n_components='linear'.* KernelPCA\(n_components, kernel\)"),
        (KernelPCA(2, lambda a, b: -abs(a - b).sum(), n_landmarks=5), NotPositiveDefiniteError, "eigenvalue -"),
    ],
)
def test_bad_input_is_named_in_fit(model, error, words):
    with pytest.raises(error, match=words):
        model.fit(X)


def test_a_pre_image_set_after_fit_is_checked():
    with pytest.raises(InputError, match="pre_image='magic'"):
        KernelPCA(2).fit(X).set_params(pre_image="magic").inverse_transform(np.ones((2, 2)))


def test_pre_images_need_as_many_columns_as_components():
    with pytest.raises(InputError, match="X has 3 columns but there are 2 components"):
        KernelPCA(2).fit(X).inverse_transform(np.ones((2, 3)))


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("kernel", [Gaussian(1.2), Linear()], ids=repr)
def test_the_reconstruction_error_is_the_squared_distance_in_the_rkhs_from_the_components(kernel, center):
    rng = np.random.default_rng(3)
    X, new = rng.normal(size=(20, 3)), rng.normal(size=(6, 3))
    model = KernelPCA(n_components=2, kernel=kernel, center=center).fit(X)
    both = np.concatenate([X, new])
    K = kernel(both)
    P = np.eye(26)
    if center:
        P -= np.concatenate([np.full((20, 26), 1 / 20), np.zeros((6, 26))])
    squares = np.diag(P.T @ K @ P)[20:]
    expected = squares - np.square(model.transform(new)).sum(1)
    np.testing.assert_allclose(model.reconstruction_error(new), expected, atol=1e-10)


def test_all_components_reconstruct_the_training_rows_and_landmarks_do_nearly():
    X = np.random.default_rng(0).normal(size=(40, 2))
    assert KernelPCA(kernel="gaussian", n_components=None).fit(X).reconstruction_error(X).max() < 1e-7
    few = KernelPCA(20, kernel="gaussian", n_landmarks=30, random_state=0).fit(X)
    assert few.reconstruction_error(X).mean() < 0.02
