"""Fits on landmarks and features: exact where they can be, and honest about what they cannot do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from mercer import KernelClassifier, KernelPCA, KernelRidge, NystromFeatures
from mercer.core.errors import InputError, InputTypeError, MemoryBudgetError, NotPositiveDefiniteError
from mercer.kernels import Callable, Gaussian, Linear, WhiteNoise
from mercer.solvers.running_sums import RunningSums

pandas = pytest.importorskip("pandas")

rng = np.random.default_rng(0)
X = rng.normal(size=(200, 3))
y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=200)
NEW = rng.normal(size=(50, 3))
FRAME = pandas.DataFrame(X, columns=list("abc"))


def smooth_problem(n, m):
    rows = np.random.default_rng(1).normal(size=(n, 3))
    labels = np.sin(rows[:, 0]) + 0.1 * np.random.default_rng(2).normal(size=n)
    return rows, labels, rows[np.random.default_rng(5).permutation(n)[:m]]


def by_orthogonal_factors(scale, alpha, rows, labels, Z):
    """Predictions at NEW of the Gaussian kernel on landmarks Z, by least squares without normal equations."""

    def k(A, B):
        return np.exp(-cdist(A, B, "sqeuclidean") / (2 * scale**2))

    values, vectors = np.linalg.eigh(k(Z, Z))
    basis = vectors / np.sqrt(values)
    tall = np.vstack([k(rows, Z) @ basis, np.sqrt(alpha) * np.eye(len(Z))])
    coef = np.linalg.lstsq(tall, np.r_[labels, np.zeros(len(Z))], rcond=None)[0]
    return k(NEW, Z) @ (basis @ coef)


@pytest.mark.parametrize("alpha", [1e-3, 1e-2, 1.0])
def test_landmarks_close_to_dependent_all_take_part(alpha):
    rows, labels, Z = smooth_problem(2000, 400)
    model = KernelRidge(Gaussian(1.0), alpha=alpha, solver="nystrom", landmarks=Z, fit_intercept=False).fit(
        rows, labels
    )
    assert "independent" not in model.solver_report_.reason
    np.testing.assert_allclose(model.predict(NEW), by_orthogonal_factors(1.0, alpha, rows, labels, Z), atol=1e-4)


@pytest.mark.parametrize("scale", [2.0, 3.0])
def test_float32_values_of_smooth_kernels_stay_useful_and_that_is_told(scale):
    rows, labels, Z = smooth_problem(1000, 250)
    exact, coarse = (
        KernelRidge(Gaussian(scale), alpha=0.01, solver="nystrom", landmarks=Z, dtype=dtype).fit(rows, labels)
        for dtype in ("float64", "float32")
    )
    assert np.abs(coarse.predict(NEW) - exact.predict(NEW)).max() < 2e-3
    assert "rounding of float32 kernel values is magnified up to" in coarse.solver_report_.reason
    assert "float32" not in exact.solver_report_.reason


@pytest.mark.parametrize("solver", ["nystrom", "falkon"])
def test_white_noise_belongs_in_alpha(solver):
    noisy = KernelRidge(Gaussian(1.0) + WhiteNoise(0.5), alpha=0.1).fit(X, y)
    moved = KernelRidge(Gaussian(1.0), alpha=0.6, solver=solver, landmarks=X).fit(X, y)
    np.testing.assert_allclose(moved.predict(NEW), noisy.predict(NEW), atol=1e-5)
    with pytest.raises(InputError, match="white noise.* adding 0.5 to alpha"):
        KernelRidge(Gaussian(1.0) + WhiteNoise(0.5), alpha=0.1, solver=solver, landmarks=X).fit(X, y)
    with pytest.raises(InputError, match="white noise belongs in alpha"):
        KernelRidge(Gaussian(1.0) + WhiteNoise(0.5), solver="random_features").fit(X, y)


def test_white_noise_on_landmarks_is_refused_by_every_estimator():
    kernel = Gaussian(1.0) + WhiteNoise(0.5)
    models = [KernelClassifier(kernel, solver="nystrom"), KernelPCA(2, kernel=kernel, n_landmarks=20)]
    for model in [*models, NystromFeatures(20, kernel=kernel)]:
        with pytest.raises(InputError, match="white noise, which belongs to rows"):
            model.fit(X, y > 0)


@pytest.mark.parametrize("fit", ["fit", "partial_fit"])
def test_an_indefinite_function_with_zeros_on_its_diagonal_is_no_kernel(fit):
    def k(x, z):
        f, g = float(x[0] > 0), float(z[0] > 0)
        return f * g + 0.3 * (f * (1 - g) + g * (1 - f))

    model = KernelRidge(Callable(k), alpha=0.1, solver="nystrom", landmarks=X[:40])
    with pytest.raises(NotPositiveDefiniteError, match="eigenvalue -"):
        getattr(model, fit)(X, y)
    hollow = KernelRidge(Callable(lambda x, z: float(np.abs(x - z).sum())), solver="nystrom", landmarks=X[:40])
    with pytest.raises(NotPositiveDefiniteError, match="eigenvalue -"):
        hollow.fit(X, y)


@pytest.mark.parametrize("alpha", [0.0, 1.0, "loo"])
def test_a_kernel_that_is_zero_everywhere_gives_the_mean(alpha):
    model = KernelRidge(Linear(), alpha=alpha, solver="nystrom").fit(0 * X, y)
    assert model.solver_report_.converged
    np.testing.assert_allclose(model.predict(X), y.mean(), rtol=1e-12)
    assert not KernelRidge(Linear(), alpha=alpha, solver="nystrom", fit_intercept=False).fit(0 * X, y).predict(X).any()


@pytest.mark.parametrize("options", [{"solver": "nystrom", "landmarks": X[:20]}, {"solver": "random_features"}])
def test_an_interrupted_partial_fit_leaves_what_was_fitted(options, monkeypatch):
    model = KernelRidge(Gaussian(1.0), alpha=0.1, random_state=0, **options).partial_fit(X[:100], y[:100])
    before = model.predict(NEW)

    def interrupted(self, alpha):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RunningSums, "solve", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[100:], y[100:])
    np.testing.assert_array_equal(model.predict(NEW), before)
    model.partial_fit(X[100:], y[100:])
    whole = KernelRidge(Gaussian(1.0), alpha=0.1, random_state=0, **options).fit(X, y)
    np.testing.assert_allclose(model.predict(NEW), whole.predict(NEW), atol=1e-9)
    assert model.lambda_ == whole.lambda_


def test_partial_fit_does_not_continue_a_fit_by_another_solver():
    model = KernelRidge(Gaussian(1.0)).fit(X, y).set_params(solver="nystrom")
    with pytest.raises(InputError, match="cannot continue a fit by solver='eigh'"):
        model.partial_fit(X, y)


@pytest.mark.parametrize("solver", ["nystrom", "falkon"])
def test_landmarks_in_a_frame_have_the_columns_of_the_data(solver):
    model = KernelRidge(Gaussian(1.0), solver=solver, landmarks=FRAME[list("cba")].iloc[:20])
    with pytest.raises(InputError, match="columns of landmarks are .'c', 'b', 'a'. but those of X"):
        model.fit(FRAME, y)
    ordered = KernelRidge(Gaussian(1.0), solver=solver, landmarks=FRAME.iloc[:20]).fit(FRAME, y)
    plain = KernelRidge(Gaussian(1.0), solver=solver, landmarks=X[:20]).fit(X, y)
    np.testing.assert_array_equal(ordered.predict(FRAME), plain.predict(X))


@pytest.mark.parametrize("model", [KernelRidge("gaussian"), KernelClassifier("gaussian")], ids=repr)
def test_arguments_about_landmarks_are_checked(model):
    labels = (y > 0).astype(float)
    for wrong in (None, 3.0, "kmeans"):
        with pytest.raises((InputError, InputTypeError), match="landmarks=.*give 'uniform'"):
            model.set_params(landmarks=wrong, n_landmarks=None).fit(X, labels)
    with pytest.raises(InputError, match="n_landmarks=7 but 20 landmarks are given"):
        model.set_params(landmarks=X[:20], n_landmarks=7).fit(X, labels)


@pytest.mark.parametrize("solver", ["cholesky", "pcg", "random_features"])
def test_landmarks_have_no_meaning_for_other_solvers(solver):
    with pytest.raises(InputError, match=f"landmarks, given as 20 points, have no meaning for solver='{solver}'"):
        KernelRidge("gaussian", solver=solver, landmarks=X[:20]).fit(X, y)
    with pytest.raises(InputError, match=f"landmarks='pivoted' has no meaning for solver='{solver}'"):
        KernelRidge("gaussian", solver=solver, landmarks="pivoted").fit(X, y)


@pytest.mark.parametrize("solver", ["nystrom", "falkon"])
def test_landmarks_that_are_given_count_against_the_memory_budget(solver):
    with pytest.raises(MemoryBudgetError, match="with 150 landmarks.* landmarks fit"):
        KernelRidge("gaussian", solver=solver, landmarks=X[:150], memory_budget="500KiB").fit(X[:100], y[:100])
    with pytest.raises(MemoryBudgetError, match="with 150 landmarks"):
        KernelClassifier("gaussian", solver="nystrom", landmarks=X[:150], memory_budget="500KiB").fit(X, y > 0)


def test_random_features_count_against_the_memory_budget():
    with pytest.raises(MemoryBudgetError, match="n_features=400.*At most 136 features fit"):
        KernelRidge("gaussian", solver="random_features", n_features=400, memory_budget="1MiB").fit(X, y)
    fewer = KernelRidge("gaussian", solver="random_features", memory_budget="1MiB").fit(X, y)
    assert fewer.features_.n_features == 136
    assert KernelRidge("gaussian", solver="random_features").fit(X, y).features_.n_features == 1000


@pytest.mark.parametrize("how", ["pivoted", "leverage"])
def test_the_choice_of_landmarks_keeps_to_the_memory_budget(how):
    rows = np.random.default_rng(3).normal(size=(400, 3))
    options = {"landmarks": how, "n_landmarks": 40, "solver": "nystrom"}
    model = KernelRidge("gaussian", memory_budget="240KiB", **options).fit(rows, rows[:, 0])
    assert "256 rows" in model.solver_report_.reason
