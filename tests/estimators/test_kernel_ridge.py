"""What KernelRidge promises besides scikit-learn's checks."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import KernelRidge, RKHSFunction, load
from mercer.kernels import Gaussian, Laplace, Linear, Spectrum, Subspace


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=80)
    return X, y, rng.normal(size=(20, 3))


def test_the_dual_coefficients_are_the_residuals_over_alpha(data):
    X, y, _ = data
    model = KernelRidge("gaussian", alpha=0.3).fit(X, y)
    np.testing.assert_allclose(model.dual_coef_, (y - model.predict(X)) / 0.3, atol=1e-9)


def test_the_fitted_function_is_the_prediction_and_minimises_the_objective(data):
    X, y, X_test = data
    model = KernelRidge(Gaussian(1.2), alpha=0.3).fit(X, y)
    f, y = model.function_, y - model.intercept_
    assert isinstance(f, RKHSFunction)
    np.testing.assert_allclose(f(X_test) + model.intercept_, model.predict(X_test), atol=1e-10)

    def objective(g):
        return np.sum((g(X) - y) ** 2) + 0.3 * g.norm() ** 2

    rng = np.random.default_rng(0)
    for _ in range(5):
        assert objective(f) < objective(f + 0.01 * RKHSFunction(f.kernel, X_test, rng.normal(size=20)))


def test_the_median_length_scale_is_that_of_all_distances(data):
    X, y, _ = data
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)[np.triu_indices(80, 1)]
    assert KernelRidge(Gaussian("median")).fit(X, y).kernel_ == Gaussian(float(np.median(distances)))


def test_leave_one_out_equals_refitting_without_each_row(data):
    X, y, _ = data
    kernel = Laplace(1.5)
    for alpha in (0.5, 1e-3):
        loo = KernelRidge(kernel, alpha=alpha).fit(X, y).loo_predictions_
        for i in range(0, 80, 9):
            rest = np.arange(80) != i
            refit = KernelRidge(kernel, alpha=alpha).fit(X[rest], y[rest])
            np.testing.assert_allclose(loo[i], refit.predict(X[i : i + 1])[0], atol=1e-8)


def test_alpha_by_leave_one_out_is_the_best_of_its_path_by_refits(data):
    X, y, _ = data
    alphas = [1e-3, 1e-2, 1e-1, 1.0, 10.0]
    model = KernelRidge(Gaussian(1.5), alpha="loo", alphas=alphas).fit(X, y)
    errors = [np.mean((KernelRidge(Gaussian(1.5), alpha=a).fit(X, y).loo_predictions_ - y) ** 2) for a in alphas]
    assert model.alpha_ == alphas[int(np.argmin(errors))]
    np.testing.assert_allclose(model.alpha_path_.errors.numpy().ravel(), errors, rtol=1e-8)


def test_chosen_alphas_of_several_targets_are_those_of_each_alone(data):
    X, y, X_test = data
    Y = np.c_[y, np.random.default_rng(0).normal(size=80)]
    both = KernelRidge(Laplace(2.0), alpha="loo").fit(X, Y)
    assert both.alpha_.shape == (2,)
    for j in range(2):
        alone = KernelRidge(Laplace(2.0), alpha="loo").fit(X, Y[:, j])
        assert alone.alpha_ == pytest.approx(both.alpha_[j], rel=1e-12)
        np.testing.assert_allclose(both.predict(X_test)[:, j], alone.predict(X_test), atol=1e-9)


def test_alpha_zero_interpolates_with_the_smallest_norm_also_on_duplicates(data):
    X, y, X_test = data
    X2, y2 = np.r_[X, X[:10]], np.r_[y, y[:10]]
    ridgeless = KernelRidge(Gaussian(1.0), alpha=0.0).fit(X2, y2)
    np.testing.assert_allclose(ridgeless.predict(X2), y2, atol=1e-6)
    limit = KernelRidge(Gaussian(1.0), alpha=1e-10).fit(X, y)
    np.testing.assert_allclose(ridgeless.predict(X_test), limit.predict(X_test), atol=1e-4)
    assert "rank" in ridgeless.solver_report_.reason


def test_inconsistent_duplicates_at_alpha_zero_get_least_squares(data):
    X, y, _ = data
    X2, y2 = np.r_[X, X[:1]], np.r_[y, y[0] + 2.0]
    model = KernelRidge(Laplace(1.0), alpha=0.0).fit(X2, y2)
    assert model.predict(X[:1])[0] == pytest.approx(y[0] + 1.0, abs=1e-6)


def test_label_weights_rebuild_the_prediction_and_rank_the_rows(data):
    X, y, X_test = data
    weights = np.random.default_rng(0).uniform(0.5, 2, size=80)
    model = KernelRidge(Laplace(1.0), alpha=0.1).fit(X, y, sample_weight=weights)
    W = model.label_weights(X_test)
    assert W.shape == (20, 80)
    np.testing.assert_allclose(W @ y, model.predict(X_test), atol=1e-9)
    top = model.influential(X_test, k=3)
    assert top.rows.shape == (20, 3)
    assert (np.abs(top.weights[:, 0]) == np.abs(W).max(1)).all()
    assert "prediction 0: row" in repr(top)


def test_label_weights_with_one_alpha_per_target(data):
    X, y, X_test = data
    Y = np.c_[y, y**2]
    model = KernelRidge(Laplace(1.0), alpha=[0.1, 2.0]).fit(X, Y)
    W = model.label_weights(X_test)
    np.testing.assert_allclose(np.einsum("mnt,nt->mt", W, Y), model.predict(X_test), atol=1e-9)


def test_tuning_lowers_the_leave_one_out_error_and_finds_the_irrelevant_feature():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(150, 3))
    y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.05 * rng.normal(size=150)
    start = KernelRidge(Gaussian((1.0, 1.0, 1.0)), alpha="loo").fit(X, y)
    tuned = KernelRidge(Gaussian((1.0, 1.0, 1.0)), alpha="loo", tune=True).fit(X, y)
    assert np.mean((tuned.loo_predictions_ - y) ** 2) < 0.7 * np.mean((start.loo_predictions_ - y) ** 2)
    scales = tuned.kernel_.length_scale
    assert scales[2] > 5 * scales[0]
    assert all(type(s) is float for s in scales)


def test_grid_search_reaches_into_the_kernel():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:150], y[:150]
    grid = {"kernel__length_scale": [0.01, 0.3, 3.0], "alpha": [1e-3, 0.1]}
    for kernel in (Gaussian(), "gaussian"):
        search = GridSearchCV(KernelRidge(kernel), grid, cv=3).fit(X, y)
        assert search.best_estimator_.kernel.length_scale == search.best_params_["kernel__length_scale"]
    composed = KernelRidge(Gaussian(1.0) + 2.0 * Linear())
    composed.set_params(kernel__k1__length_scale=5.0, kernel__k2__factor=3.0)
    assert composed.kernel == Gaussian(5.0) + 3.0 * Linear()
    assert composed.get_params()["kernel__k1__length_scale"] == 5.0
    assert clone(composed).kernel == composed.kernel


def test_pipeline_cross_validation_clone_and_pickle(data):
    X, y, X_test = data
    pipeline = make_pipeline(StandardScaler(), KernelRidge("matern52", alpha="loo"))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.8
    fitted = pipeline.fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X_test), fitted.predict(X_test))
    np.testing.assert_array_equal(clone(fitted).fit(X, y).predict(X_test), fitted.predict(X_test))


@pytest.mark.parametrize("frame", [pd.DataFrame, lambda X: pl.DataFrame(X)])
def test_data_frames_keep_their_names(data, frame):
    X, y, X_test = data
    names = ["a", "b", "c"]
    train, test = frame(dict(zip(names, X.T, strict=True))), frame(dict(zip(names, X_test.T, strict=True)))
    model = KernelRidge(Subspace(Gaussian("median"), ["b", "a"]), alpha=0.1).fit(train, y)
    assert list(model.feature_names_in_) == names
    plain = KernelRidge(Subspace(Gaussian("median"), [1, 0]), alpha=0.1).fit(X, y)
    assert model.kernel_ == plain.kernel_
    np.testing.assert_allclose(model.predict(test), plain.predict(X_test), atol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame(dict(zip(["a", "b", "z"], X_test.T, strict=True))))


def test_set_output_works_around_the_model(data):
    X, y, _ = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    pipeline = make_pipeline(StandardScaler(), KernelRidge()).set_output(transform="pandas")
    assert list(pipeline.fit(frame, y)[-1].feature_names_in_) == ["a", "b", "c"]


def test_torch_in_torch_out(data):
    X, y, X_test = data
    by_numpy = KernelRidge("laplace", alpha=0.1).fit(X, y)
    by_torch = KernelRidge("laplace", alpha=0.1).fit(torch.tensor(X), torch.tensor(y))
    predicted = by_torch.predict(torch.tensor(X_test))
    assert isinstance(predicted, torch.Tensor)
    assert isinstance(by_torch.dual_coef_, torch.Tensor)
    np.testing.assert_allclose(predicted.numpy(), by_numpy.predict(X_test), atol=1e-12)
    np.testing.assert_allclose(by_torch.predict(X_test), by_numpy.predict(X_test), atol=1e-12)


def test_float32_data_are_solved_in_float64_and_answered_in_float32(data):
    X, y, X_test = data
    single = KernelRidge("laplace", alpha=1e-6).fit(X.astype(np.float32), y.astype(np.float32))
    double = KernelRidge("laplace", alpha=1e-6).fit(X.astype(np.float32).astype(float), y.astype(np.float32))
    predicted = single.predict(X_test.astype(np.float32))
    assert predicted.dtype == np.float32
    np.testing.assert_allclose(predicted, double.predict(X_test.astype(np.float32)), rtol=1e-5, atol=1e-6)


def test_strings_are_learned_through_the_spectrum_kernel():
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("ACGT"), size=30)) for _ in range(80)]
    y = np.array([w.count("AC") for w in words], dtype=float)
    model = KernelRidge(Spectrum(2), alpha=1e-2).fit(words[:60], y[:60])
    assert model.score(words[60:], y[60:]) > 0.5


def test_duplicate_rows_constant_columns_one_row_and_one_column_work():
    X = np.array([[1.0, 5.0], [1.0, 5.0], [2.0, 5.0]])
    assert np.isfinite(KernelRidge(alpha=0.1).fit(X, [0.0, 1.0, 2.0]).predict(X)).all()
    assert KernelRidge(alpha="loo").fit(X, [0.0, 1.0, 2.0]).alpha_ > 0
    assert KernelRidge(alpha=0.0).fit([[3.0]], [2.0]).predict([[3.0]])[0] == pytest.approx(2.0)
    same = np.ones((5, 2))
    assert KernelRidge("gaussian", alpha=0.0).fit(same, np.arange(5.0)).predict(same) == pytest.approx(2.0)


def test_the_report_says_what_was_done(data):
    X, y, _ = data
    model = KernelRidge("gaussian", alpha="loo").fit(X, y)
    text = str(model.report())
    for part in ("80 rows", "Gaussian", "eigh", "residual", "leave-one-out"):
        assert part in text
    report = model.solver_report_
    assert report.converged
    assert report.residual < 1e-10
    assert report.solver == "eigh"
    assert report.seconds > 0
    assert report.jitter == 0


def test_an_alpha_at_the_edge_of_its_path_is_reported(data):
    X, y, _ = data
    model = KernelRidge("gaussian", alpha="loo", alphas=[100.0, 1000.0]).fit(X, y)
    assert any("of its path and the error still falls" in concern for concern in model.report().concerns)


def test_same_seed_same_result_and_global_generators_untouched(data):
    X, y, X_test = data
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    torch_before = torch.get_rng_state()
    first = KernelRidge("gaussian", alpha="loo", tune=True).fit(X, y).predict(X_test)
    second = KernelRidge("gaussian", alpha="loo", tune=True).fit(X, y).predict(X_test)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), torch_before)


def test_plots_draw_the_function_for_one_feature_and_predictions_for_more(data):
    X, y, X_test = data
    line = KernelRidge("gaussian", alpha=0.1).fit(X[:, :1], y).plot()
    drawn = max(line.lines, key=lambda artist: len(artist.get_xdata()))
    np.testing.assert_allclose(
        drawn.get_ydata(), KernelRidge("gaussian", alpha=0.1).fit(X[:, :1], y).predict(drawn.get_xdata().reshape(-1, 1))
    )
    model = KernelRidge("gaussian", alpha="loo").fit(X, y)
    assert "Predicted" in model.plot().get_ylabel()
    assert "Predicted" in model.plot(X_test, np.zeros(20)).get_ylabel()
    assert "alpha" in model.alpha_path_.plot().get_xlabel()
    assert "best" in repr(model.alpha_path_)
    with pytest.raises(ValueError, match="both"):
        model.plot(X_test)


def test_conjugate_gradients_give_the_same_model_without_the_matrix(data):
    X, y, X_test = data
    Y, weights = np.c_[y, X[:, 2]], np.r_[np.zeros(5), np.ones(75)]
    direct = KernelRidge(Laplace(1.0), alpha=[0.1, 1.0]).fit(X, Y, weights)
    iterative = KernelRidge(Laplace(1.0), alpha=[0.1, 1.0], solver="pcg", tol=1e-10).fit(X, Y, weights)
    np.testing.assert_allclose(iterative.predict(X_test), direct.predict(X_test), atol=1e-8)
    np.testing.assert_allclose(iterative.label_weights(X_test), direct.label_weights(X_test), atol=1e-8)
    report = iterative.solver_report_
    assert report.solver == "pcg"
    assert report.converged
    assert report.residual <= 1e-10


def test_a_matrix_that_does_not_fit_is_solved_by_conjugate_gradients_and_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 2))
    y = np.sin(X[:, 0])
    model = KernelRidge("gaussian", alpha=0.1, memory_budget="16MiB").fit(X, y)
    assert model.solver_report_.solver == "pcg"
    assert "memory budget is 16.0 MiB" in model.solver_report_.reason
    dense = KernelRidge("gaussian", alpha=0.1).fit(X, y)
    np.testing.assert_allclose(model.predict(X), dense.predict(X), atol=1e-4)


def test_too_few_iterations_are_reported_and_warned_of(data):
    X, y, _ = data
    model = KernelRidge("laplace", alpha=1e-6, solver="pcg", max_iter=1)
    model.set_params(tol=1e-14)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        model.fit(X, y)
    assert not model.solver_report_.converged
    assert np.isfinite(model.dual_coef_).all()
    assert any("not solved" in concern for concern in model.report().concerns)


def test_progress_is_printed_when_asked_for(data, capsys):
    X, y, _ = data
    KernelRidge("gaussian", alpha="loo", tune=True, verbose=True).fit(X, y)
    assert "tuning step 1" in capsys.readouterr().out
    KernelRidge("gaussian", alpha=1e-3, solver="pcg", tol=1e-8, verbose=True).fit(X, y)
    assert "relative residual" in capsys.readouterr().out


@pytest.mark.parametrize("solver", ["auto", "nystrom"])
def test_tune_names_what_moves_and_the_report_tells_what_it_gained(solver, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = np.sin(2 * X[:, 0]) + 0.05 * rng.normal(size=150)
    model = KernelRidge(Gaussian(1.5), alpha="loo", tune=True, solver=solver).fit(X, y)
    scales = model.kernel_.length_scale
    assert min(scales[1:]) > 5 * scales[0]
    assert model.tuning_.tune == "ard"
    assert "each column: relative error" in str(model.report())
    assert "at rows left out: as given" in str(model.report())
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.tuning_.judged == model.tuning_.judged
    assert again.kernel_ == model.kernel_
    assert isinstance(KernelRidge(Gaussian(1.5), tune="scale", solver=solver).fit(X, y).kernel_.length_scale, float)
    with pytest.raises(ValueError, match="tune='both'"):
        KernelRidge(tune="both").fit(X, y)
