"""Tuning: the gradient, what it finds, and that integer weights equal repeated rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from refitting import loo_by_refitting

from mercer import KernelRidge
from mercer.core.arrays import Points
from mercer.core.errors import NotPositiveDefiniteError
from mercer.kernels import (
    Callable,
    Constant,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Precomputed,
    RationalQuadratic,
    Subspace,
)
from mercer.selection import tune_kernel
from mercer.selection.alpha import CRITERIA
from mercer.selection.dials import FAILED
from mercer.selection.objective import Objective
from mercer.selection.rows import merged_rows, subsample


def points(X):
    return Points(torch.from_numpy(np.asarray(X, dtype=float)))


def problem(n=80, d=2, noise=0.1, seed=0):
    """A wiggly function of the first column; the others do not matter."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, d))
    return X, np.sin(3 * X[:, 0]) + noise * rng.normal(size=n)


KERNELS = [
    Gaussian(0.7),
    Laplace((0.7, 1.3)),
    Laplace(0.9, metric="l1"),
    2.0 * Matern(1.5, 0.8) + 0.5 * Linear(bias=0.3),
    RationalQuadratic(0.7, 2.0) * Gaussian((1.0, 3.0)),
    Subspace(Gaussian(0.8), [1]) + Laplace(1.0),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("criterion", ["loo", "gcv"])
@pytest.mark.parametrize("fixed", [None, torch.tensor([0.1, 0.1, 2.0]).double()], ids=["free", "fixed"])
def test_the_gradient_is_that_of_finite_differences(kernel, criterion, fixed):
    X, y = problem(25)
    X = np.concatenate([X, X[:5]])  # duplicated rows with other targets: distances of zero
    Y = np.stack([y, y**2, X[:25, 1]], axis=1)
    Y = np.concatenate([Y, Y[:5] + 0.3])
    w = torch.linspace(0.5, 3.0, 30, dtype=torch.float64)
    objective = Objective(kernel, merged_rows(points(X), torch.from_numpy(Y), w), fixed, CRITERIA[criterion])
    theta = objective.start() if fixed is not None else np.append(objective.start(), np.log(1e-3))
    value, gradient = objective(theta)
    assert value == pytest.approx(objective.value(theta), rel=1e-12)
    h = 1e-5
    for j in range(len(theta)):
        step = h * (np.arange(len(theta)) == j)
        difference = (objective.value(theta + step) - objective.value(theta - step)) / (2 * h)
        assert gradient[j] == pytest.approx(difference, rel=1e-4, abs=1e-7)


def test_the_objective_is_the_log_of_the_relative_leave_one_out_error():
    X, y = problem(20)
    w = np.linspace(0.5, 3.0, 20)
    objective = Objective(
        Laplace(0.8),
        merged_rows(points(X), torch.from_numpy(y), torch.from_numpy(w)),
        torch.tensor([0.2]),
        CRITERIA["loo"],
    )
    e = loo_by_refitting(Laplace(0.8)(X), y, w, float(torch.tensor([0.2])))
    mean = w @ y / w.sum()
    expected = np.log((w @ e**2) / (w @ (y - mean) ** 2))
    assert objective.value(objective.start()) == pytest.approx(expected, rel=1e-8)


def test_tuning_finds_the_length_scale_of_the_data_from_far_away():
    X, y = problem(80, d=1)
    found = [tune_kernel(Gaussian(start), points(X), torch.from_numpy(y), None, "loo") for start in (0.01, 1.0, 50.0)]
    for tuned in found:
        assert 0.3 < tuned.kernel.length_scale < 1.5
        assert tuned.error < 0.05
        assert tuned.error <= tuned.start_error
        assert "converged" in tuned.message
        assert "all 80 distinct rows" in tuned.message
    assert found[0].error < 0.5 * found[0].start_error


def test_irrelevant_columns_get_long_length_scales():
    X, y = problem(200, d=4)
    tuned = tune_kernel(Gaussian((1.0,) * 4), points(X), torch.from_numpy(y), None, "loo")
    scales = tuned.kernel.length_scale
    assert isinstance(scales, tuple)
    assert all(isinstance(s, float) for s in scales)
    assert min(scales[1:]) > 8 * scales[0]
    assert tuned.error < 0.5 * tuned.start_error


def test_the_tuned_alpha_matches_the_noise():
    X, y = problem(120, d=1, noise=0.3)
    tuned = tune_kernel(1.0 * Gaussian(0.5), points(X), torch.from_numpy(y), None, "loo")
    quiet = tune_kernel(1.0 * Gaussian(0.5), points(X), torch.from_numpy(np.sin(3 * X[:, 0])), None, "loo")
    assert quiet.alpha / quiet.kernel.factor < 1e-3 * tuned.alpha / tuned.kernel.factor
    assert tuned.error == pytest.approx(0.3**2 / np.var(y), rel=0.3)


@pytest.mark.parametrize("alpha", ["loo", "gcv", 0.05, torch.tensor([0.01, 0.5]).double()])
def test_integer_weights_equal_repeated_rows(alpha):
    X, y = problem(40, noise=0.3)
    Y = np.stack([y, X[:, 1] ** 2], axis=1)
    X, Y = np.concatenate([X, X[:3]]), np.concatenate([Y, Y[:3] + 0.2])  # the same x with other targets
    rng = np.random.default_rng(0)
    w = rng.integers(1, 5, 43)
    index = rng.permutation(np.repeat(np.arange(43), w))
    options = {"max_rows": 30, "max_iter": 15}
    weighted = tune_kernel(
        Laplace(1.0), points(X), torch.from_numpy(Y), torch.from_numpy(w.astype(float)), alpha, **options
    )
    repeated = tune_kernel(Laplace(1.0), points(X[index]), torch.from_numpy(Y[index]), None, alpha, **options)
    plain = tune_kernel(Laplace(1.0), points(X), torch.from_numpy(Y), None, alpha, **options)
    assert repeated.kernel == weighted.kernel
    assert repeated.error == weighted.error
    assert torch.equal(torch.as_tensor(repeated.alpha), torch.as_tensor(weighted.alpha))
    assert plain.kernel != weighted.kernel  # the weights matter here


def test_a_subsample_is_stated_and_alpha_is_scaled_to_all_rows():
    X, y = problem(200, d=1, noise=0.3)
    part = tune_kernel(Gaussian(0.5), points(X), torch.from_numpy(y), None, "loo", max_rows=50)
    assert part.rows_used == 50
    assert "subsample of 50 of 200" in part.message
    whole = tune_kernel(Gaussian(0.5), points(X), torch.from_numpy(y), None, "loo")
    assert whole.alpha / 20 < part.alpha < whole.alpha * 20
    rows = subsample(merged_rows(points(X), torch.from_numpy(y)), 50, seed=0)
    alone = tune_kernel(Gaussian(0.5), rows.X, rows.Y, None, "loo")
    assert part.alpha == pytest.approx(4 * alone.alpha, rel=0.05)
    other = tune_kernel(Gaussian(0.5), points(X), torch.from_numpy(y), None, "loo", max_rows=50, seed=1)
    assert other.kernel != part.kernel
    again = tune_kernel(Gaussian(0.5), points(X), torch.from_numpy(y), None, "loo", max_rows=50)
    assert again.kernel == part.kernel


def test_a_fixed_alpha_means_the_same_lambda_on_a_subsample():
    X, y = problem(60)
    rows = subsample(merged_rows(points(X), torch.from_numpy(y)), 20, seed=0)
    part = tune_kernel(Laplace(1.0), points(X), torch.from_numpy(y), None, 3.0, max_rows=20, max_iter=5)
    alone = tune_kernel(Laplace(1.0), rows.X, rows.Y, None, 1.0, max_iter=5)
    assert part.alpha == 3.0
    assert part.start_error == pytest.approx(alone.start_error, rel=1e-9)


def test_a_first_descent_on_few_rows_keeps_lambda_and_leads_to_the_descent_on_all(monkeypatch):
    X, y = problem(60)
    rows = merged_rows(points(X), torch.from_numpy(y), torch.linspace(1.0, 2.0, 60))
    few = Objective(Laplace(1.0), rows, torch.tensor([3.0]), CRITERIA["loo"]).on(slice(20))
    assert len(few.rows) == 20
    assert float(few.alpha) / few.rows.total == pytest.approx(3.0 / rows.total)
    at_once = tune_kernel(Laplace(1.0), points(X), torch.from_numpy(y), None, "loo")
    monkeypatch.setattr("mercer.selection.tuning.FEW_ROWS", 30)
    in_two_steps = tune_kernel(Laplace(1.0), points(X), torch.from_numpy(y), None, "loo")
    assert in_two_steps.rows_used == 60
    assert in_two_steps.error == pytest.approx(at_once.error, rel=0.02)


def wide(n, d=8, seed=0):
    """A function of the first two of many columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)


def test_scale_keeps_the_ratios_of_length_scales_and_ard_gives_each_column_its_own():
    X, y = wide(120, d=3)
    given = (1.0, 2.0, 4.0)
    scale = tune_kernel(Gaussian(given), points(X), torch.from_numpy(y), None, "loo", tune="scale")
    assert np.allclose(np.divide(scale.kernel.length_scale, given) / scale.kernel.length_scale[0], 1.0)
    assert scale.kernel.length_scale != given
    one = tune_kernel(Gaussian(1.0), points(X), torch.from_numpy(y), None, "loo", tune="scale")
    assert isinstance(one.kernel.length_scale, float)
    each = tune_kernel(Gaussian(1.0), points(X), torch.from_numpy(y), None, "loo", tune="ard")
    assert len(each.kernel.length_scale) == 3
    assert each.error < one.error


@pytest.mark.parametrize("n", [150, 1000], ids=["folds", "rows left over"])
def test_the_rows_tell_how_many_length_scales_they_can_find(n, monkeypatch):
    monkeypatch.setattr("mercer.selection.tuning.FEW_ROWS", 150)
    X, y = wide(n)
    tuned = tune_kernel(Gaussian(2.0), points(X), torch.from_numpy(y), None, "loo", tune=True, max_rows=400)
    assert tuned.tune == "ard"
    assert tuned.judged[2] < 0.7 * tuned.judged[1]
    noise = np.random.default_rng(1).normal(size=n)
    nothing = tune_kernel(Gaussian(2.0), points(X), torch.from_numpy(noise), None, "loo", tune=True, max_rows=400)
    assert nothing.tune != "ard"  # though its leave-one-out error can be made the smallest
    assert min(nothing.judged) > 0.8


def test_what_was_given_is_kept_where_nothing_is_better():
    X, y = problem(60, d=1)
    best = tune_kernel(Gaussian(0.5), points(X), torch.from_numpy(y), None, "loo", tune="scale")
    again = tune_kernel(best.kernel, points(X), torch.from_numpy(y), None, best.alpha, tune=True)
    assert again.error <= again.start_error
    assert again.error == pytest.approx(best.error, rel=1e-2)


@pytest.mark.parametrize("intercept", [False, True])
def test_candidates_are_judged_by_the_predictions_of_ridge_regression(intercept):
    X, y = problem(50)
    rows = merged_rows(points(X), torch.from_numpy(y + 3.0), torch.linspace(0.5, 2.0, 50))
    some, rest = rows.take(slice(35)), rows.take(slice(35, None))
    objective = Objective(Gaussian(0.7), some, None, CRITERIA["loo"], intercept)
    theta = np.append(objective.start(), np.log(1e-3))
    model = KernelRidge(Gaussian(0.7), alpha=objective.ridge_at(theta), fit_intercept=intercept)
    model.fit(some.X.values.numpy(), some.Y.numpy(), sample_weight=some.weights.numpy())
    assert np.allclose(objective.predictions(theta, rest), model.predict(rest.X.values.numpy()), atol=1e-9)


def test_progress_and_history_follow_the_iterations():
    X, y = problem(50)
    seen = []
    tuned = tune_kernel(
        Gaussian(1.0), points(X), torch.from_numpy(y), None, "loo", progress=lambda i, error: seen.append((i, error))
    )
    assert [i for i, _ in seen] == list(range(1, len(seen) + 1))
    assert tuple(error for _, error in seen) == tuned.history
    assert tuned.history[-1] == pytest.approx(tuned.error, rel=1e-6)
    assert all(b <= a * (1 + 1e-12) for a, b in zip(tuned.history, tuned.history[1:], strict=False))


def test_the_limit_of_iterations_holds():
    X, y = problem(60, d=4)
    tuned = tune_kernel(Gaussian((1.0,) * 4), points(X), torch.from_numpy(y), None, "loo", max_iter=2)
    assert len(tuned.history) <= 5 * 2  # three descents of one number, two of all
    assert "limit after 2 iterations" in tuned.message
    options = {"tune": "scale", "max_iter": 0, "n_starts": 1}
    untouched = tune_kernel(Gaussian(0.6), points(X), torch.from_numpy(y), None, 0.1, **options)
    assert untouched.kernel.length_scale == pytest.approx(0.6)
    assert untouched.error == untouched.start_error


def test_ridgeless_tuning_works():
    X = np.linspace(0, 6, 40).reshape(-1, 1)
    tuned = tune_kernel(Gaussian(0.1), points(X), torch.from_numpy(np.sin(X[:, 0])), None, 0.0)
    assert tuned.alpha == 0.0
    assert tuned.error < 1e-6 * tuned.start_error


def test_kernels_without_parameters_only_get_an_alpha():
    X, y = problem(30)
    fixed = tune_kernel(Linear(bias=0.0), points(X), torch.from_numpy(y), None, 1.0)
    assert fixed.kernel == Linear(bias=0.0)
    assert "no parameters" in fixed.message
    free = tune_kernel(Linear(bias=0.0), points(X), torch.from_numpy(X[:, 0]), None, "loo")
    assert free.error < 1e-6


def test_strings_and_ready_matrices_are_tuned_in_what_they_have():
    words = Points(["aa", "ab", "aa", "bb", "ba"])
    y = torch.tensor([1.0, 2.0, 1.0, 3.0, 2.0])
    same = 2.0 * Callable(lambda a, b: float(a == b)) + 1.0 * Constant(1.0)
    tuned = tune_kernel(same, words, y, None, "loo")
    assert tuned.rows_used == 4
    X, target = problem(30)
    ready = tune_kernel(1.0 * Precomputed(), points(Laplace(0.8)(X)), torch.from_numpy(target), None, 0.5, max_rows=20)
    assert ready.rows_used == 20
    assert ready.error <= ready.start_error


def test_targets_that_are_zero_or_constant_do_no_harm():
    X, _ = problem(30)
    for constant in (0.0, 5.0):
        tuned = tune_kernel(Gaussian(1.0), points(X), torch.full((30,), constant), None, "loo")
        assert np.isfinite(tuned.error)
        assert np.isfinite(tuned.alpha)
        assert np.isfinite(tuned.kernel.length_scale).all()


def test_failures_are_a_large_finite_value_without_direction():
    X, y = problem(20)
    rows = merged_rows(points(X), torch.from_numpy(y))
    objective = Objective(Gaussian(1.0), rows, torch.tensor([0.1]), CRITERIA["loo"])
    value, gradient = objective(np.array([1e4]))  # an infinite length scale
    assert value == FAILED
    assert gradient.tolist() == [0.0]
    assert objective.best is None


def test_what_is_not_a_kernel_is_refused():
    X, y = problem(20)
    bad = 1.0 * Callable(lambda a, b: float(-(a @ b)))
    with pytest.raises(NotPositiveDefiniteError, match="check_kernel"):
        tune_kernel(bad, points(X), torch.from_numpy(y), None, 1e-3)
    with pytest.raises(ValueError, match="length_scale has 3 entries but X has 2 columns"):
        tune_kernel(Gaussian((1.0, 1.0, 1.0)), points(X), torch.from_numpy(y), None, 1.0)
    with pytest.raises(ValueError, match="criterion='bic'"):
        tune_kernel(Gaussian(1.0), points(X), torch.from_numpy(y), None, "bic")
    with pytest.raises(ValueError, match="tune='each'"):
        tune_kernel(Gaussian(1.0), points(X), torch.from_numpy(y), None, 1.0, tune="each")
    with pytest.raises(ValueError, match="max_rows=1"):
        tune_kernel(Gaussian(1.0), points(X), torch.from_numpy(y), None, 1.0, max_rows=1)
    with pytest.raises(ValueError, match="alpha=-1"):
        tune_kernel(Gaussian(1.0), points(X), torch.from_numpy(y), None, -1.0)


def test_merging_adds_weights_and_keeps_different_targets_apart():
    X = torch.tensor([[1.0], [0.0], [1.0], [1.0]])
    rows = merged_rows(Points(X, ("a",)), torch.tensor([2.0, 3.0, 2.0, 5.0]), torch.tensor([1.0, 1.0, 2.5, 1.0]))
    assert rows.X.values.flatten().tolist() == [0.0, 1.0, 1.0]
    assert rows.Y.flatten().tolist() == [3.0, 2.0, 5.0]
    assert rows.weights.tolist() == [1.0, 3.5, 1.0]
    assert rows.X.names == ("a",)
    words = merged_rows(Points(["b", "a", "b"]), torch.tensor([1.0, 1.0, 1.0]))
    assert words.X.values == ["a", "b"]
    assert words.weights.tolist() == [1.0, 2.0]
    loose = merged_rows(Points([{1}, {1}]), torch.tensor([1.0, 1.0]))
    assert len(loose) == 2


def test_one_column_of_many_that_are_noise_is_found():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (200, 20))
    y = np.sin(3 * X[:, 3]) + 0.05 * rng.normal(size=200)
    for kernel in (Gaussian((3.0,) * 20), Laplace((5.0,) * 20)):
        tuned = tune_kernel(kernel, points(X), torch.from_numpy(y), None, "loo", tune="ard")
        assert tuned.start_error > 0.9
        assert tuned.error < 0.3, "no slope is left where one factor ended"


def test_the_kernel_that_suits_the_function_is_taken():
    """Steps in each column for itself ask for the L1 distance, a smooth function of a sum for a smooth kernel."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (300, 3))
    kernels = Laplace((2.0,) * 3), Laplace((4.0,) * 3, metric="l1"), Gaussian((2.0,) * 3)
    for y, place in ((np.floor(2 * X).sum(1), 1), (np.sin(X.sum(1)), 2)):
        tuned = tune_kernel(kernels[0], points(X), torch.from_numpy(y), None, "loo", tune=True, rivals=kernels[1:])
        assert type(tuned.kernel) is type(kernels[place])
        assert getattr(tuned.kernel, "metric", "") == getattr(kernels[place], "metric", "")
        names = [name for name, _ in tuned.compared]
        assert names == ["laplace", "laplace_l1", "gaussian"]
        assert min(tuned.compared, key=lambda pair: pair[1])[0] == names[place]
        assert tuned.error < tuned.start_error


def test_only_an_open_kernel_is_replaced_by_tuning():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (120, 2))
    y = np.sin(X.sum(1))
    assert KernelRidge("laplace", tune=True).fit(X, y).kernel_.metric == "l2"
    open_ = KernelRidge(tune=True).fit(X, y)
    assert not isinstance(open_.kernel_, Laplace)
    assert len(open_.tuning_.compared) > 2
    assert KernelRidge().fit(X, y).kernel_ == KernelRidge("laplace").fit(X, y).kernel_


def test_a_row_that_comes_often_is_not_judged_by_its_copies_with_the_other_label():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(4000, 5)).astype(float)
    y = (rng.random(4000) < 1 / (1 + np.exp(1 - X.sum(1) / 3))).astype(float)
    judged = KernelRidge(Laplace(2.0), tune=True).fit(X, y).tuning_.judged
    assert min(judged) < 1.0  # a constant has 1
