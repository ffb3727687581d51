"""KernelRidge by iterations, landmarks and random features."""

from __future__ import annotations

import pickle
import re
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

import mercer
from mercer import KernelRidge
from mercer.core.arrays import Points
from mercer.core.errors import InputError, InputTypeError, MemoryBudgetError
from mercer.data.sample import Sample
from mercer.estimators.ridge.plan import plan_ridge
from mercer.estimators.ridge.settings import RidgeSettings
from mercer.kernels import Callable, FeatureMap, Gaussian, Laplace, Linear, Polynomial, Precomputed, Spectrum
from mercer.rows import ArrayRows, chunk_rows

SOLVERS = ("cholesky", "eigh", "mixed_cholesky", "pcg", "eigenpro", "gd", "nystrom", "falkon", "random_features")


def problem(n: int = 200, d: int = 3, seed: int = 0, targets: int | None = None):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2 % d] + 0.1 * rng.standard_normal(n)
    return X, y if targets is None else np.stack([y * (1 + j) - j for j in range(targets)], axis=1)


X, y = problem()
NEW = problem(50, seed=1)[0]


KERNEL = Gaussian(1.5)


def reference(alpha=0.3, kernel=KERNEL, weights=None, X=X, y=y, new=NEW):
    return KernelRidge(kernel, alpha=alpha, solver="cholesky").fit(X, y, weights).predict(new)


@pytest.mark.parametrize("landmarks", ["uniform", "pivoted", "leverage"])
def test_falkon_converges_where_a_landmark_is_the_only_row_close_to_itself(landmarks):
    X = 3.0 * np.random.default_rng(0).normal(size=(3000, 6))
    model = KernelRidge(Laplace(), alpha=1e-3, solver="falkon", n_landmarks=100, landmarks=landmarks, random_state=0)
    model.fit(X, np.sin(X.sum(1)))
    assert model.solver_report_.converged
    assert model.solver_report_.iterations < 30


def test_falkon_is_told_whether_landmarks_are_rows():
    sample = Sample(Points(torch.from_numpy(X)), torch.from_numpy(y).reshape(-1, 1), None, True)
    for landmarks, among in (("uniform", True), (X[:3] + 1.0, False)):
        model = KernelRidge(Laplace(), solver="falkon", landmarks=landmarks)
        plan = plan_ridge(RidgeSettings.of(model.get_params(deep=False)), sample)
        assert plan.ready().among_rows is among


@pytest.mark.parametrize("solver", ["nystrom", "falkon"])
@pytest.mark.parametrize("weights", [None, np.arange(200) % 3.0])
def test_all_rows_as_landmarks_is_the_full_fit(solver, weights):
    model = KernelRidge(Gaussian(1.5), alpha=0.3, solver=solver, n_landmarks=200, tol=1e-10).fit(X, y, weights)
    np.testing.assert_allclose(model.predict(NEW), reference(weights=weights), atol=1e-6)


@given(
    alpha=st.floats(-10, 4).map(lambda e: 10.0**e),
    solver=st.sampled_from(["pcg", "mixed_cholesky", "nystrom", "falkon"]),
    scales=st.lists(st.sampled_from([1e-3, 1.0, 1e3]), min_size=3, max_size=3),
    copies=st.integers(0, 20),
    seed=st.integers(0, 99),
)
@settings(max_examples=30, deadline=None)
def test_solvers_agree_with_cholesky_or_say_that_they_do_not(alpha, solver, scales, copies, seed):
    rows, targets = problem(60, seed=seed)
    rows, targets = np.vstack([rows, rows[:copies]]) * scales, np.append(targets, targets[:copies])
    kernel = Laplace(np.array(scales) * 2.0)
    few = {"n_landmarks": len(rows)} if solver in ("nystrom", "falkon") else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelRidge(kernel, alpha=alpha, solver=solver, tol=1e-9, **few).fit(rows, targets)
    found, expected = model.predict(rows), reference(alpha, kernel, None, rows, targets, rows)
    assert np.isfinite(found).all()
    if model.solver_report_.converged:
        np.testing.assert_allclose(found, expected, atol=2e-3 * np.abs(targets).max())
    else:
        assert re.search("not solved to its tolerance|predictions may be off", str(model.report()))


@pytest.mark.parametrize("solver", ["eigenpro", "gd"])
def test_descents_without_a_ridge_generalise_by_stopping(solver):
    rows, targets = problem(500)
    test_rows, test_targets = problem(500, seed=3)
    model = KernelRidge(Laplace(3.0), alpha=0.0, solver=solver, max_iter=200).fit(rows, targets)
    assert model.score(test_rows, test_targets) > 0.85
    assert 1 <= model.n_iter_ <= 200
    for use in (lambda: model.loo_predictions_, lambda: model.label_weights(NEW)):
        with pytest.raises(InputError, match="not available with early stopping"):
            use()


@pytest.mark.parametrize("solver", ["eigenpro", "gd"])
def test_descents_approach_the_ridge_solution(solver):
    model = KernelRidge(Gaussian(1.5), alpha=3.0, solver=solver, tol=1e-8, max_iter=2000).fit(X[:40], y[:40])
    expected = reference(alpha=3.0, X=X[:40], y=y[:40])
    np.testing.assert_allclose(model.predict(NEW), expected, atol=1e-5)


def test_random_features_are_ridge_on_the_map():
    model = KernelRidge(Gaussian(1.5), alpha=0.3, solver="random_features", n_features=80).fit(X, y)
    phi = model.features_(Points(torch.from_numpy(X))).numpy()
    other = Ridge(alpha=0.3).fit(phi, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-8)
    assert model.intercept_ == pytest.approx(other.intercept_)
    assert not hasattr(model, "dual_coef_")
    with pytest.raises(AttributeError, match="use predict"):
        model.function_  # noqa: B018
    many = KernelRidge(Gaussian(1.5), alpha=0.3, solver="random_features", n_features=4000).fit(X, y)
    assert np.abs(many.predict(NEW) - reference()).max() < 0.1


def test_random_features_need_a_shift_invariant_kernel():
    with pytest.raises(InputError, match="Linear"):
        KernelRidge(Linear(), solver="random_features").fit(X, y)


@pytest.mark.parametrize("options", [{"solver": "nystrom", "landmarks": X[:30]}, {"solver": "random_features"}])
@pytest.mark.parametrize("targets", [None, 2])
def test_partial_fit_in_any_order_equals_one_fit(options, targets):
    rows, labels = problem(targets=targets)
    weights = np.random.default_rng(0).integers(0, 3, len(rows)).astype(float)
    if options["solver"] == "random_features":
        options = options | {"n_features": 60}
    whole = KernelRidge(Gaussian(1.5), alpha=0.3, **options).fit(rows, labels, weights)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(rows))
        parts = KernelRidge(Gaussian(1.5), alpha=0.3, **options)
        for part in np.array_split(order, 4):
            parts.partial_fit(rows[part], labels[part], weights[part])
        np.testing.assert_allclose(parts.predict(NEW), whole.predict(NEW), rtol=1e-7, atol=1e-8)
        assert parts.lambda_ == pytest.approx(whole.lambda_)
    assert "200 rows" in str(parts.report())


def test_partial_fit_continues_a_fit_and_a_pickled_model_but_not_a_file(tmp_path):
    options = {"alpha": 0.3, "solver": "nystrom", "landmarks": X[:30]}
    whole = KernelRidge(Gaussian(1.5), **options).fit(X, y)
    begun = KernelRidge(Gaussian(1.5), **options).fit(X[:100], y[:100])
    begun = pickle.loads(pickle.dumps(begun)).partial_fit(X[100:], y[100:])
    np.testing.assert_allclose(begun.predict(NEW), whole.predict(NEW), rtol=1e-7, atol=1e-8)
    whole.save(tmp_path / "m.safetensors")
    with pytest.raises(InputError, match="do not store the sums"):
        mercer.load(tmp_path / "m.safetensors").partial_fit(X, y)


def test_partial_fit_is_offered_only_where_sums_can_be_continued():
    assert not hasattr(KernelRidge(), "partial_fit")
    assert not hasattr(KernelRidge(solver="falkon"), "partial_fit")
    with pytest.raises(InputError, match="alpha='loo': partial_fit needs a number"):
        KernelRidge(alpha="loo", solver="nystrom").partial_fit(X, y)
    model = KernelRidge(solver="nystrom").partial_fit(X, y)
    with pytest.raises(InputError, match="2 target"):
        model.partial_fit(X, np.stack([y, y], axis=1))
    with pytest.raises(ValueError, match="2 features"):
        model.partial_fit(X[:, :2], y)


@pytest.mark.parametrize("criterion", ["loo", "gcv"])
@pytest.mark.parametrize("weights", [None, np.arange(200) % 3.0])
def test_alpha_of_all_landmarks_is_that_of_the_full_fit(criterion, weights):
    alphas = np.logspace(-4, 2, 7)
    options = {"alpha": criterion, "alphas": alphas}
    full = KernelRidge(Gaussian(1.5), **options).fit(X, y, weights)
    few = KernelRidge(Gaussian(1.5), **options, solver="nystrom", n_landmarks=200).fit(X, y, weights)
    assert few.alpha_ == full.alpha_
    np.testing.assert_allclose(few.alpha_path_.errors, full.alpha_path_.errors, rtol=1e-3)


def test_the_loo_error_of_landmarks_is_that_of_leaving_rows_out():
    rows, labels, Z = X[:40], y[:40], X[100:115]
    options = {"solver": "nystrom", "landmarks": Z}
    path = KernelRidge(Gaussian(1.5), alpha="loo", alphas=[0.1, 1.0], **options).fit(rows, labels).alpha_path_
    for alpha, error in zip([0.1, 1.0], path.errors[:, 0], strict=True):
        left_out = []
        for i in range(len(rows)):
            kept = np.arange(len(rows)) != i
            model = KernelRidge(Gaussian(1.5), alpha=alpha, **options).fit(rows[kept], labels[kept])
            left_out.append(float(model.predict(rows[[i]])[0] - labels[i]))
        assert float(error) == pytest.approx(np.mean(np.square(left_out)), rel=1e-6)
    chosen = KernelRidge(Gaussian(1.5), alpha="loo", alphas=[1.0], **options).fit(rows, labels)
    np.testing.assert_allclose(chosen.loo_predictions_ - labels, left_out, rtol=1e-6, atol=1e-9)


def test_leave_one_out_predictions_of_landmarks_cover_rows_without_weight():
    weights = np.arange(200) % 3.0
    few = KernelRidge(Gaussian(1.5), alpha="loo", solver="nystrom", n_landmarks=200).fit(X, y, weights)
    full = KernelRidge(Gaussian(1.5), alpha=few.alpha_).fit(X, y, weights)
    np.testing.assert_allclose(few.loo_predictions_, full.loo_predictions_, atol=1e-5)


@pytest.mark.parametrize("solver", ["nystrom", "falkon"])
@pytest.mark.parametrize("landmarks", ["uniform", "pivoted", "leverage", X[:50]])
def test_integer_weights_equal_repeated_rows_on_landmarks(solver, landmarks):
    weights = np.random.default_rng(1).integers(0, 4, len(X))
    rows = np.repeat(np.arange(len(X)), weights)
    options = {"alpha": 0.3, "solver": solver, "landmarks": landmarks, "tol": 1e-10}
    if isinstance(landmarks, str):
        options["n_landmarks"] = 40
    weighted = KernelRidge("gaussian", **options).fit(X, y, weights)
    repeated = KernelRidge("gaussian", **options).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.predict(NEW), repeated.predict(NEW), atol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
def test_saved_models_predict_the_same_and_few_functions_keep_no_rows(solver, tmp_path):
    options = {"n_landmarks": 30} if solver in ("nystrom", "falkon") else {}
    rows, labels = problem(120, targets=2)
    model = KernelRidge(Gaussian(1.5), alpha=1.0, solver=solver, tol=1e-3, **options).fit(rows, labels)
    model.save(tmp_path / "m.safetensors")
    loaded = mercer.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.predict(NEW), model.predict(NEW))
    assert str(loaded.report()) == str(model.report())
    assert loaded.solver_report_.solver == solver
    assert (tmp_path / "m.safetensors").stat().st_size < (20_000 if options else 10**6)
    if solver in ("nystrom", "falkon"):
        assert model.X_fit_.shape == (30, 3)
        assert model.dual_coef_.shape == (30, 2)
        np.testing.assert_allclose(model.function_(NEW) + model.intercept_, model.predict(NEW), atol=1e-8)
        with pytest.raises(InputError, match="does not keep them"):
            loaded.loo_predictions_  # noqa: B018
        with pytest.raises(InputError, match="pass X and y"):
            KernelRidge(solver=solver, n_landmarks=5).fit(X, y).plot()


def test_a_new_fit_forgets_the_old_one():
    model = KernelRidge(Gaussian(1.5), solver="random_features", n_features=20, alpha=1.0).fit(X, y)
    model.set_params(solver="auto", n_features=None).fit(X, y)
    assert not hasattr(model, "coef_")
    np.testing.assert_allclose(model.predict(NEW), reference(alpha=1.0), atol=1e-10)


def test_strings_can_be_landmarks():
    words = ["kernel", "kennel", "colonel", "channel", "funnel", "tunnel"]
    model = KernelRidge(Spectrum(2), alpha=0.1, solver="nystrom", n_landmarks=4).fit(words, np.arange(6.0))
    assert len(model.X_fit_) == 4
    assert model.predict(["kernels"]).shape == (1,)


def test_what_does_not_fit_or_makes_no_sense_is_refused():
    for wrong in (0, -3, 2.5, True):
        with pytest.raises((InputError, InputTypeError), match="n_landmarks="):
            KernelRidge(solver="nystrom", n_landmarks=wrong).fit(X, y)
    with pytest.raises(InputError, match="landmarks='best'"):
        KernelRidge(solver="nystrom", landmarks="best", n_landmarks=5).fit(X, y)
    with pytest.raises(InputError, match="landmarks have 2 columns but X has 3"):
        KernelRidge(solver="nystrom", landmarks=X[:5, :2]).fit(X, y)
    with pytest.raises(InputError, match="precomputed"):
        KernelRidge("precomputed", solver="nystrom").fit(X @ X.T, y)
    with pytest.raises(MemoryBudgetError, match="landmarks fit"):
        KernelRidge(solver="nystrom", n_landmarks=150, memory_budget="500KiB").fit(X, y)


def test_a_solve_that_does_not_converge_says_so_and_stays_finite():
    rows, labels = problem(300)
    for solver in ("pcg", "falkon"):
        few = {"n_landmarks": 200} if solver == "falkon" else {}
        with pytest.warns(ConvergenceWarning, match="NOT CONVERGED"):
            model = KernelRidge(Gaussian(3.0), alpha=1e-9, solver=solver, tol=1e-12, max_iter=2, **few).fit(
                rows, labels
            )
        assert not model.solver_report_.converged
        assert np.isfinite(model.predict(NEW)).all()
        assert re.search("not solved to its tolerance|predictions may be off", str(model.report()))


def test_float32_rows_iterate_in_float32_and_still_reach_the_tolerance():
    rows, labels = problem(400)
    model = KernelRidge(Gaussian(1.5), alpha=0.05, solver="pcg", tol=1e-9).fit(rows.astype(np.float32), labels)
    assert model.solver_report_.converged
    exact = KernelRidge(Gaussian(1.5), alpha=0.05).fit(rows.astype(np.float32).astype(float), labels)
    np.testing.assert_allclose(model.dual_coef_, exact.dual_coef_, atol=1e-6)
    assert model.predict(NEW.astype(np.float32)).dtype == np.float32


def test_progress_is_printed(capsys):
    KernelRidge(solver="nystrom", n_landmarks=5, verbose=True).fit(X, y)
    assert "sums: 200 rows in" in capsys.readouterr().out


def test_landmarks_that_were_given_are_saved_once_and_come_back(tmp_path):
    model = KernelRidge(Gaussian(1.5), solver="nystrom", landmarks=X[:30]).fit(X, y)
    model.save(tmp_path / "m.safetensors")
    loaded = mercer.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.landmarks, X[:30])
    np.testing.assert_array_equal(loaded.fit(X, y).predict(NEW), model.predict(NEW))


# What is told is true


def test_label_weights_of_iterations_add_up_to_the_prediction():
    rows, target, new = (values.astype(np.float32) for values in (X, y, NEW))
    model = KernelRidge(Gaussian(1.0), alpha=1e-4, solver="pcg").fit(rows, target)
    np.testing.assert_allclose(model.label_weights(new) @ target, model.predict(new), atol=1e-3)


def test_label_weights_say_when_iterations_fell_short():
    model = KernelRidge(Gaussian(0.3), alpha=1e-4, solver="pcg", max_iter=2, tol=1e-9, memory_budget="200KiB")
    with pytest.warns(ConvergenceWarning, match="KernelRidge: pcg"):
        model.fit(X, y)
    with pytest.warns(ConvergenceWarning, match="label_weights: pcg: NOT CONVERGED"):
        model.label_weights(NEW[:3])


@pytest.mark.parametrize("solver", ["eigenpro", "gd"])
def test_descents_to_a_ridge_use_all_rows_and_tell_the_true_residual(solver):
    model = KernelRidge(Gaussian(1.0), alpha=10.0, solver=solver, tol=1e-6, max_iter=2000).fit(X, y)
    c = model.dual_coef_
    missed = y - model.intercept_ - Gaussian(1.0)(X) @ c - 10.0 * c
    true = np.linalg.norm(missed - missed.mean()) / np.linalg.norm(y - y.mean())
    assert model.solver_report_.residual == pytest.approx(true, rel=0.1)
    assert true < 2e-6
    assert (c != 0).all()


@pytest.mark.parametrize("solver", ["eigenpro", "gd"])
def test_descents_with_a_path_of_alpha_have_a_report_and_ask_for_data_to_draw(solver):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = KernelRidge(Gaussian(1.0), alpha="loo", solver=solver, max_iter=20).fit(X, y)
    assert "R2" in str(model.report())
    with pytest.raises(InputError, match="pass X and y to plot"):
        model.plot()
    assert model.plot(X, y) is not None


@pytest.mark.parametrize(("solver", "most"), [("cholesky", 2.0), ("pcg", 1.0), ("eigenpro", 1.0), ("gd", 1.0)])
def test_a_function_of_the_user_is_not_called_again_and_again(solver, most):
    calls = 0

    def bump(x, z):
        nonlocal calls
        calls += 1
        return float(np.exp(-np.sum((x - z) ** 2)))

    KernelRidge(Callable(bump), alpha=0.1, solver=solver, tol=1e-3).fit(X[:40], y[:40])
    assert calls <= most * 40**2 + 40  # the diagonal once more


def test_a_function_of_the_user_beyond_the_budget_is_not_tested_and_that_is_said():
    kernel = Callable(lambda x, z: float(np.exp(-np.sum((x - z) ** 2))))
    model = KernelRidge(kernel, alpha=0.1, memory_budget="190KiB").fit(X[:160], y[:160])
    assert model.solver_report_.solver == "pcg"
    assert "was not tested" in model.solver_report_.reason
    expected = KernelRidge(kernel, alpha=0.1).fit(X[:160], y[:160]).predict(NEW)
    np.testing.assert_allclose(model.predict(NEW), expected, atol=1e-5)


def test_a_matrix_too_large_for_a_path_is_refused_with_what_would_fit():
    with pytest.raises(MemoryBudgetError, match="solver='eigh'.*would do"):
        KernelRidge(Precomputed(), alpha="loo", memory_budget="100KiB").fit(Gaussian()(X), y)


@pytest.mark.parametrize("setting", [{"tol": "a"}, {"tol": None}, {"tol": 1.0}, {"max_iter": 2.5}, {"max_iter": 0}])
def test_limits_of_iterations_are_checked(setting):
    with pytest.raises((InputError, InputTypeError), match=f"{next(iter(setting))}="):
        KernelRidge(Gaussian(), **setting).fit(X, y)


@pytest.mark.parametrize("solver", ["pcg", "falkon"])
@pytest.mark.parametrize("alpha", [1e-2, 1e-6])
def test_float32_data_are_predicted_as_well_as_in_float64(solver, alpha):
    rows, target, new = (values.astype(np.float32) for values in (*problem(600), NEW))
    few = {} if solver == "pcg" else {"landmarks": rows[:100]}
    model = KernelRidge(Gaussian(1.0), alpha=alpha, solver=solver, **few).fit(rows, target)
    assert model.solver_report_.converged
    exact = KernelRidge(Gaussian(1.0), alpha=alpha, solver=solver, **few).fit(rows.astype(float), target.astype(float))
    found = model.predict(new)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact.predict(new.astype(float)), atol=2e-4)


def test_float32_that_is_asked_for_stays_float32():
    rows, target = (values.astype(np.float32) for values in problem(600))
    settings = {"alpha": 1e-2, "solver": "falkon", "landmarks": rows[:100]}
    assert "float64" in KernelRidge(Gaussian(1.0), **settings).fit(rows, target).solver_report_.reason
    model = KernelRidge(Gaussian(1.0), dtype="float32", **settings)
    with pytest.warns(ConvergenceWarning, match="best residual that float32 products reach"):
        model.fit(rows, target)


@pytest.mark.parametrize("kernel", [Polynomial(2, scale=1e-3), Linear(1.0)], ids=repr)
def test_float32_predictions_look_at_all_points(kernel):
    rows = np.sort(np.random.default_rng(0).uniform(0, 1000, size=(500, 1)), axis=0).astype(np.float32)
    model = KernelRidge(kernel, alpha=1.0, solver="pcg").fit(rows, rows[:, 0] / 1000 - np.float32(0.3))
    exact = model.function_(rows.astype(float)) + model.intercept_
    assert np.abs(model.predict(rows) - exact).max() < 1e-4 * np.sqrt(np.mean(exact**2))


def test_a_float32_matrix_may_be_symmetric_to_its_rounding():
    matrix = Gaussian(1.5)(X.astype(np.float32))
    np.testing.assert_allclose(
        KernelRidge(Precomputed(), alpha=0.1).fit(matrix, y).predict(matrix),
        KernelRidge(Gaussian(1.5), alpha=0.1).fit(X, y).predict(X),
        atol=1e-4,
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_auto_finds_least_squares_where_few_rows_are_different(seed):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 5, (3000, 1)).astype(float)
    noisy = np.sin(x[:, 0]) + rng.standard_normal(3000)
    model = KernelRidge(Gaussian(1.0), alpha=0.0, memory_budget="60MiB", random_state=seed).fit(x, noisy)
    means = [noisy[x[:, 0] == k].mean() for k in range(5)]
    np.testing.assert_allclose(model.predict(np.arange(5.0)[:, None]), means, atol=1e-8)
    assert "only 5 of 3,000 rows are distinct" in model.solver_report_.reason


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"kernel": Gaussian(5.0)}, "kernel"),
        ({"landmarks": X[:20]}, "landmarks"),
        ({"landmarks": "pivoted"}, "landmarks"),
    ],
)
def test_rows_are_not_added_under_other_parameters(changed, name):
    model = KernelRidge(KERNEL, alpha=0.1, solver="nystrom", landmarks=X[:50]).partial_fit(X[:100], y[:100])
    model.set_params(landmarks=X[:50].copy(), alpha=0.2).partial_fit(X[100:], y[100:])
    before = model.predict(NEW)
    with pytest.raises(InputError, match=f"another {name}"):
        model.set_params(**changed).partial_fit(X, y)
    np.testing.assert_array_equal(model.predict(NEW), before)


@pytest.mark.parametrize("name", ["X", "y", "sample_weight"])
def test_masked_entries_are_refused(name):
    values = {"X": X, "y": y, "sample_weight": np.ones(len(X))}
    values[name] = np.ma.masked_array(values[name], mask=values[name] > 0.5)
    for use in (lambda: KernelRidge(KERNEL).fit(**values), lambda: ArrayRows(*values.values())):
        with pytest.raises(TypeError, match=f"{name} is an array with masked entries"):
            use()
    with pytest.raises(TypeError, match=f"{name} of chunk 0 is an array with masked entries"):
        chunk_rows([tuple(values.values())])


@pytest.mark.parametrize("solver", ["nystrom", "random_features"])
def test_a_source_without_weight_is_refused(solver):
    landmarks = X[:20] if solver == "nystrom" else "uniform"
    with pytest.raises(InputError, match="no rows to"):
        KernelRidge(KERNEL, solver=solver, landmarks=landmarks).fit(ArrayRows(X, y, np.zeros(len(X))))


def test_leave_one_out_that_does_not_fit_says_what_does():
    rows, targets = problem(1500)
    model = KernelRidge(KERNEL, alpha=0.1, solver="pcg", memory_budget="10MiB").fit(rows, targets)
    with pytest.raises(MemoryBudgetError, match=r"leave-one-out of 1,500 rows.*plot\(X, y\)"):
        model.loo_predictions_  # noqa: B018


@pytest.mark.parametrize("solver", ["gd", "eigenpro"])
def test_iterations_evaluate_a_small_gram_matrix_once(solver):
    calls = []

    def counted(rows):
        calls.append(len(rows))
        return torch.cat([rows, rows**2, rows**3], dim=1)

    X = np.linspace(0.1, 1.0, 12).reshape(-1, 2)
    kernel = FeatureMap(counted)

    def evaluations(max_iter):
        calls.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = KernelRidge(kernel, alpha=1e-3, solver=solver, max_iter=max_iter, tol=1e-12).fit(X, X[:, 0])
        return len(calls), model.n_iter_

    (few, short), (many, long) = evaluations(1), evaluations(5)
    assert long > short
    assert many == few
