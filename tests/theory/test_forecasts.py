"""Forecasts of learning curves: their parts against definitions, their promises against simulation."""

from dataclasses import replace

import numpy as np
import pytest

from mercer import KernelClassifier, KernelRidge
from mercer.core.errors import InputError
from mercer.kernels import Gaussian, Laplace
from mercer.theory import (
    Eigen,
    Forecaster,
    PowerLaw,
    RidgePath,
    SpectralForecast,
    equivalents_accuracy,
    forecasters,
    learning_curve,
    samples_needed,
    taylor_coefficients,
)
from mercer.theory.power_law import predictions


def wave(n, seed, noise=0.3, d=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, d))
    return X, np.sin(2 * X[:, 0]) + noise * rng.standard_normal(n)


@pytest.fixture(scope="module")
def rows():
    X, y = wave(120, 0)
    return X, y, Laplace(2.0)(X)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_is_that_of_fits_without_each_row(rows, intercept, weighted):
    _, y, K = rows
    some = slice(0, 25)
    K, y = K[some, some], y[some] + 5
    w = np.random.default_rng(1).uniform(0.5, 2, 25) if weighted else None
    path = RidgePath.of(Eigen.of(K, w, intercept=intercept), y, [0.3])
    squares = []
    for i in range(25):
        rest = np.delete(np.arange(25), i)
        eigen = Eigen.of(K[np.ix_(rest, rest)], None if w is None else w[rest], intercept=intercept)
        found = predictions(eigen, K[np.ix_(rest, rest)], K[[i]][:, rest], y[rest, None], 0.3)
        squares.append((found[0, 0] - y[i]) ** 2)
    assert np.allclose(path.squares, squares, rtol=1e-7)
    assert np.isclose(path.loo[0], np.average(squares, weights=w))


def test_kappa_and_degrees_of_freedom_are_their_definitions(rows):
    _, y, K = rows
    n, a = len(K), 0.5
    path = RidgePath.of(Eigen.of(K), y, [a])
    G = np.linalg.inv(K + a * np.eye(n))
    assert np.isclose(path.kappa[0], 1 / np.trace(G))
    assert np.isclose(path.df1[0], np.trace(K @ G))
    assert np.isclose(path.df2[0], np.trace(K @ G) - np.trace(K @ G @ G) / (path.kappa[0] * np.trace(G @ G)))
    assert np.isclose(path.gcv[0], np.mean((G @ y) ** 2) / (np.trace(G) / n) ** 2)


def test_estimates_from_rows_are_those_of_the_population():
    """kappa, df1 and df2 of a Gram matrix of Gaussian features, against the deterministic equivalents."""
    from mercer.theory import krr_risk

    values = np.arange(1, 1001.0) ** -1.5
    g = np.random.default_rng(0).standard_normal((400, 1000))
    path = RidgePath.of(Eigen.of((g * values) @ g.T), g[:, 0], [0.1, 1.0])
    expected = krr_risk(values, np.zeros(1000), 400, [0.1, 1.0])
    assert np.allclose(path.kappa, expected.kappa, rtol=0.03)
    assert np.allclose(path.df1, expected.learnabilities.sum(1), rtol=0.03)
    assert np.allclose(path.df2, (expected.learnabilities**2).sum(1), rtol=0.05)


def test_an_intercept_makes_constants_free(rows):
    _, y, K = rows
    one = RidgePath.of(Eigen.of(K, intercept=True), y)
    two = RidgePath.of(Eigen.of(K, intercept=True), y + 100)
    three = RidgePath.of(Eigen.of(K + 7, intercept=True), y)
    assert np.allclose(one.loo, two.loo, rtol=1e-6)
    assert np.allclose(one.loo, three.loo, rtol=1e-6)


def test_a_power_law_is_found_again():
    m = 500 * 2.0 ** (-np.arange(6, -1, -1) / 2)
    law = PowerLaw.through(m, 0.3 + 40 * m**-0.8)
    assert np.isclose(law.error(4000), 0.3 + 40 * 4000**-0.8, rtol=1e-6)


def test_the_forecast_at_the_rows_at_hand_is_leave_one_out(rows):
    _, y, K = rows
    (made,) = forecasters(K, [y])
    assert np.isclose(made.at(1.0)[0], made.now, rtol=0.02)


def test_forecasts_do_not_depend_on_units(rows):
    _, y, K = rows
    one, two = learning_curve(K, y), learning_curve(9 * K, 1000 * y)
    assert np.allclose(two.rmse / one.rmse, 1000, rtol=1e-3)
    assert np.allclose(one.ratio, two.ratio, rtol=1e-3)


def test_more_rows_are_never_forecast_to_do_harm(rows):
    _, y, K = rows
    curve = learning_curve(K, y, factors=np.geomspace(1, 8, 12))
    assert (np.diff(curve.rmse) <= 1e-12).all()
    assert (curve.lower < curve.rmse).all()
    assert (curve.rmse < curve.upper).all()


@pytest.mark.parametrize("kernel", [Laplace(2.0), Gaussian(1.0)], ids=["laplace", "gaussian"])
def test_what_is_forecast_comes_true(kernel):
    off, flagged = [], 0
    X_test, y_test = wave(2000, 99, d=2)
    for seed in range(4):
        X, y = wave(600, seed, d=2)
        K, cross = kernel(X), kernel(X_test, X)
        curve = learning_curve(K[:150, :150], y[:150], factors=[1, 2, 4])
        truths = []
        for m in (150, 300, 600):
            eigen = Eigen.of(K[:m, :m])
            path = RidgePath.of(eigen, y[:m])
            found = predictions(eigen, K[:m, :m], cross[:, :m], y[:m, None], path.alphas[path.best])[:, 0]
            truths.append(np.sqrt(np.mean((found - y_test) ** 2)))
        ratio = np.array(truths) / truths[0]
        off.append(np.abs(curve.ratio / ratio - 1)[1:])
        flagged += curve.believed.sum()
        assert np.abs(ratio[-1] - 1) > 0.04  # there is something to foresee
    assert flagged > 0
    assert np.median(off) < 0.05


def test_what_the_rows_cannot_tell_is_not_believed(rows):
    X, y = wave(200, 0)
    K = Laplace(2.0)(X)
    assert learning_curve(K, y).believed.all()
    assert not learning_curve(K[:120, :120], y[:120]).believed.any()  # too few
    assert not learning_curve(K, y, factors=[100]).believed.any()
    told = learning_curve(K, y, alone="the kernel was tuned")
    assert told.spectral is None
    assert "the kernel was tuned" in str(told)
    clear = learning_curve(K, np.sin(2 * X[:, 0]))  # no noise: the error falls and falls
    assert not clear.believed[1:].any()


def test_readings_that_disagree_are_not_believed():
    made = Forecaster(500, 1.0, 0.05, PowerLaw.through([100, 200, 500], [1.0, 1.0, 1.0]))
    assert made.at(2.0)[2] == ""
    apart = replace(made, spectral=SpectralForecast(500, 0.1, 0.9, 2.0, 50.0, 0.3))
    assert "disagree" in apart.at(4.0)[2]
    assert apart.at(4.0)[1] > made.at(4.0)[1]
    assert "independent" in replace(made, gap=0.5).at(2.0)[2]


def test_rows_needed(rows):
    _, y, K = rows
    (made,) = forecasters(K, [y])
    assert samples_needed(made, 10.0).rows == 120
    assert samples_needed(made, 0.01).rows is None
    rmse = np.sqrt(made.at(2.0)[0])
    found = samples_needed(made, float(rmse) * 1.0001)
    assert abs(found.guess / 240 - 1) < 0.02
    with pytest.raises(InputError, match="target"):
        samples_needed(made, -1.0)


def test_too_few_rows_are_a_clear_error(rows):
    _, y, K = rows
    with pytest.raises(InputError, match="at least 64"):
        learning_curve(K[:50, :50], y[:50])


def test_the_brier_score_is_the_sum_over_classes(rows):
    X, _, K = rows
    hit = (np.sin(2 * X[:, 0]) > 0).astype(float)
    one, two = (
        learning_curve(K, hit, intercept=True),
        learning_curve(K, np.column_stack([hit, 1 - hit]), intercept=True),
    )
    assert np.allclose(two.rmse, np.sqrt(2) * one.rmse, rtol=1e-6)


def test_a_model_forecasts_each_target_by_itself():
    X, y = wave(100, 3)
    Y = np.column_stack([y, X[:, 0] ** 2 + np.random.default_rng(0).standard_normal(100)])
    both = KernelRidge(Laplace(2.0), alpha="loo").fit(X, Y).learning_curve()
    alone = KernelRidge(Laplace(2.0), alpha="loo").fit(X, Y[:, 1]).learning_curve()
    assert np.allclose(both[1].rmse, alone.rmse, rtol=1e-9)
    assert np.allclose(alone.rmse, learning_curve(Laplace(2.0)(X), Y[:, 1], intercept=True).rmse, rtol=1e-6)


def test_the_diagnostics_of_a_model_are_those_of_its_fit():
    X, y = wave(100, 3)
    model = KernelRidge(Laplace(2.0), alpha=0.3).fit(X, y)
    found = model.diagnostics()
    assert np.isclose(found.loo, np.mean((model.loo_predictions_ - y) ** 2))
    assert found.kappa > found.alpha / found.n
    assert "degrees of freedom" in str(found.report())


def test_few_repeated_rows_are_merged_and_many_keep_the_spectrum_out():
    X, y = wave(160, 3)
    once = KernelRidge(Laplace(2.0), alpha=0.3).fit(np.vstack([X, X[:2]]), np.append(y, y[:2])).learning_curve()
    assert once.n == 160
    assert once.spectral is not None
    often = KernelRidge(Laplace(2.0), alpha=0.3).fit(np.vstack([X, X[:20]]), np.append(y, y[:20])).learning_curve()
    assert often.n == 180
    assert often.spectral is None
    assert "repeat" in often.alone


def test_a_tuned_kernel_is_doubted_and_said_so():
    X, y = wave(70, 3)
    found = KernelRidge(Gaussian(1.0), alpha="loo", tune=True).fit(X, y).learning_curve()
    assert "tuned" in found.alone
    assert found.spectral is None


def test_an_intercept_is_the_centred_matrix_with_equal_rows_merged_first():
    X, y = wave(100, 3)
    rows, labels = np.vstack([X, X[:1]]), np.append(y, y[0] + 1)
    weights, merged = np.append(2.0, np.ones(99)), np.append(y[0] + 0.5, y[1:])
    found = KernelRidge(Laplace(2.0), alpha=0.3, fit_intercept=True).fit(rows, labels).learning_curve()
    H = np.eye(100) - np.outer(np.ones(100), weights / weights.sum())
    K = H @ Laplace(2.0)(X) @ H.T
    expected = learning_curve(K, H @ merged, weights=weights, intercept=True)
    assert np.isclose(found.rmse[0], expected.rmse[0], rtol=1e-6)
    assert np.isclose(found.spectral.error(400), expected.spectral.error(400), rtol=1e-6)


@pytest.mark.parametrize(
    "options", [{"solver": "nystrom", "n_landmarks": 40}, {"solver": "random_features", "n_features": 60}], ids=str
)
def test_a_fit_on_few_functions_forecasts_from_fits_to_parts_of_the_rows(options):
    X, y = wave(300, 3)
    model = KernelRidge(Gaussian(1.0), alpha="loo", fit_intercept=True, random_state=0, **options).fit(X, y)
    with pytest.raises(InputError, match="pass them again"):
        model.learning_curve()
    found = model.learning_curve(X=X, y=y)
    assert found.spectral is None
    assert "spectrum is not that of the kernel" in found.alone
    again = KernelRidge(Gaussian(1.0), alpha="loo", fit_intercept=True, random_state=0, **options).fit(X, y)
    assert np.isclose(found.rmse[0], np.sqrt(np.mean((again.loo_predictions_ - y) ** 2)), rtol=0.03)
    assert 0.24 < found.rmse[-1] <= found.rmse[0]


def test_landmarks_at_every_row_forecast_like_the_full_fit():
    X, y = wave(150, 3)
    full = KernelRidge(Laplace(2.0), alpha="loo").fit(X, y).learning_curve()
    few = KernelRidge(Laplace(2.0), alpha="loo", solver="nystrom", n_landmarks=150).fit(X, y).learning_curve(X=X, y=y)
    assert np.allclose(few.law.errors, full.law.errors, rtol=0.1)  # other paths of alpha


def test_a_classifier_starts_at_its_own_brier_score():
    X, y = wave(150, 3)
    labels = np.where(y > 0, "up", "down")
    model = KernelClassifier(Laplace(2.0), alpha="auto", fit_intercept=True).fit(X, labels)
    found = model.learning_curve()
    assert found.measure == "Brier score"
    left_out = []
    for i in range(0, 150, 3):
        rest = np.delete(np.arange(150), i)
        one = KernelClassifier(Laplace(2.0), alpha=model.alpha_, fit_intercept=True).fit(X[rest], labels[rest])
        left_out.append((one.predict_proba(X[[i]])[0, 1] - (labels[i] == "up")) ** 2)
    assert abs(found.error[0] - np.mean(left_out)) < 3 * np.std(left_out) / np.sqrt(len(left_out))
    hits = (labels == "up").astype(float)
    assert np.allclose(found.ratio, learning_curve(Laplace(2.0)(X), hits, intercept=True).ratio ** 2, rtol=1e-6)
    assert model.samples_needed(1.0).rows == 150
    assert "Brier" in str(found)


def test_a_classifier_of_three_classes_and_one_on_landmarks_forecast_too():
    X, y = wave(150, 3)
    labels = np.digitize(y, [-0.5, 0.5])
    found = KernelClassifier(Laplace(2.0), alpha=0.5, fit_intercept=True).fit(X, labels).learning_curve()
    assert 0 < found.error[-1] <= found.error[0] < 2 / 3  # that of equal probabilities
    few = KernelClassifier(Laplace(2.0), alpha=0.5, solver="nystrom", n_landmarks=20, fit_intercept=True).fit(X, labels)
    with pytest.raises(InputError, match="pass them again"):
        few.learning_curve()
    assert few.learning_curve(X=X, y=labels).spectral is None


def test_a_fit_without_all_rows_says_what_it_needs():
    X, y = wave(100, 3)
    with pytest.raises(InputError, match="pass them again"):
        KernelRidge(Laplace(), solver="nystrom", n_landmarks=10).fit(X, y).learning_curve()
    with pytest.raises(InputError, match="without X and y"):
        KernelRidge(Laplace()).fit(X, y).learning_curve(X=X, y=y)


@pytest.mark.filterwarnings("error")
def test_numbers_too_large_for_a_forecast_are_errors_of_ours():
    X, y = wave(80, 0)
    K = Gaussian(0.5)(X)
    for targets in (1e200 * y, 1e-200 * y):
        with pytest.raises(InputError, match="rescale"):
            learning_curve(K, targets)
    with pytest.raises(InputError, match="overflow"):
        learning_curve(1e200 * K, y)
    for factors in (1e308, 10**30):
        with pytest.raises(InputError, match="factors"):
            learning_curve(K, y, factors)
    (made,) = forecasters(K, [y])
    assert samples_needed(made, 1e308).rows == 80
    with pytest.raises(InputError, match="bias and variance"):
        equivalents_accuracy([1.0, 0.5], [0.0, 0.0], 5)
    with pytest.raises(InputError, match="overflows"):
        taylor_coefficients(Gaussian(1.0), 4, radius=1e308)


def test_equal_rows_beside_an_intercept_have_no_diagnostics():
    model = KernelRidge(Gaussian(), alpha=1.0).fit(np.ones((20, 2)), np.arange(20.0))
    with pytest.raises(InputError, match="All rows are equal"):
        model.diagnostics()


def test_the_constant_is_left_out_where_centred_kernels_vanish():
    eigen = Eigen.of(np.ones((5, 5)), intercept=True)
    np.testing.assert_allclose(np.abs(eigen.vectors[:, -1]), 5**-0.5)
    assert np.isfinite(RidgePath.of(eigen, np.arange(5.0)).loo).all()
