"""The iterative and the sparse method of GaussianProcessRegressor against the exact one."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import mercer
from mercer import GaussianProcessRegressor
from mercer.kernels import Matern
from mercer.operators.placement import Placement
from mercer.processes.methods import choose_method

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 2))
Y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=300) + 5.0
NEW = rng.normal(size=(11, 2))
KERNEL = 1.5 * Matern(1.5, (1.0, 2.0))
NARROW = 11 * 300 * 300  # bytes that leave no room for a factor
FIXED = {"kernel": KERNEL, "noise": 0.04, "tune": False}


def test_given_hyperparameters_give_the_exact_prediction_without_a_matrix():
    exact = GaussianProcessRegressor(method="exact", **FIXED).fit(X, Y)
    found = GaussianProcessRegressor(method="iterative", memory_budget=NARROW, **FIXED).fit(X, Y)
    assert found._fit.posterior.report.solver == "pcg"
    for latent in (True, False):
        expected, actual = (m.predict(NEW, return_std=True, latent=latent) for m in (exact, found))
        np.testing.assert_allclose(actual, expected, rtol=0, atol=2e-3)
    cov = found.predict(NEW, return_cov=True)[1]
    np.testing.assert_allclose(cov, exact.predict(NEW, return_cov=True)[1], rtol=0, atol=2e-3)
    assert found.log_marginal_likelihood_ == pytest.approx(exact.log_marginal_likelihood_, abs=6.0)


@pytest.mark.parametrize("options", [{"memory_budget": NARROW}, {}])
def test_learning_ends_near_the_exact_maximum(options):
    exact = GaussianProcessRegressor("matern32", method="exact", n_restarts=0).fit(X, Y)
    found = GaussianProcessRegressor("matern32", method="iterative", n_restarts=0, **options).fit(X, Y)
    same = GaussianProcessRegressor(found.kernel_, noise=found.noise_, tune=False, method="exact").fit(X, Y)
    assert exact.log_marginal_likelihood_ - same.log_marginal_likelihood_ < 1.0


def test_all_rows_as_inducing_points_are_exact():
    exact = GaussianProcessRegressor(method="exact", **FIXED).fit(X, Y)
    found = GaussianProcessRegressor(method="sgpr", n_landmarks=300, **FIXED).fit(X, Y)
    np.testing.assert_allclose(
        found.predict(NEW, return_std=True), exact.predict(NEW, return_std=True), rtol=0, atol=1e-6
    )
    assert found.log_marginal_likelihood_ == pytest.approx(exact.log_marginal_likelihood_, rel=1e-7)


def test_few_inducing_points_learn_too_and_are_said_to_be_an_approximation():
    found = GaussianProcessRegressor("matern32", method="sgpr", n_landmarks=30, n_restarts=0).fit(X, Y)
    assert found.score(X, Y) > 0.9
    assert "an approximation with 30 inducing points" in found._fit.posterior.report.reason
    with pytest.raises(ValueError, match="n_landmarks"):
        GaussianProcessRegressor(method="sgpr", n_landmarks=0, **FIXED).fit(X, Y)


@pytest.mark.parametrize(
    "options", [{"method": "iterative", "memory_budget": NARROW}, {"method": "iterative"}, {"method": "sgpr"}]
)
def test_models_go_through_files_and_draw_the_same_functions_after(options, tmp_path):
    found = GaussianProcessRegressor(**FIXED, **options).fit(X, Y)
    found.save(tmp_path / "model.mercer")
    again = mercer.load(tmp_path / "model.mercer")
    # a file holds no memory budget: with more memory, iterations to 1e-6 become a factor
    close = {"rtol": 0, "atol": 1e-3 if "memory_budget" in options else 1e-9}
    np.testing.assert_allclose(again.predict(NEW, return_std=True), found.predict(NEW, return_std=True), **close)
    functions, others = (m.sample_functions(2, random_state=3)(NEW) for m in (found, again))
    np.testing.assert_allclose(functions, others, **close)


@pytest.mark.parametrize(
    "options", [{"method": "iterative", "memory_budget": NARROW}, {"method": "sgpr", "n_landmarks": 300}]
)
def test_more_rows_are_as_all_at_once(options):
    once = GaussianProcessRegressor(**FIXED, **options).fit(X, Y)
    grown = GaussianProcessRegressor(**FIXED, **options).fit(X[:200], Y[:200]).partial_fit(X[200:], Y[200:])
    np.testing.assert_allclose(grown.predict(NEW), once.predict(NEW), rtol=0, atol=2e-3)


@pytest.mark.parametrize("method", ["exact", "iterative", "sgpr"])
def test_hyperparameters_of_some_rows_condition_on_all(method):
    options = {"method": method, "n_restarts": 0, "random_state": 0}
    found = GaussianProcessRegressor("matern32", n_learn=120, **options).fit(X, Y)
    assert found.optimum_.n_rows == 120
    assert " of 120 rows, " in found.report().as_dict()["learning"]
    assert len(found.X_fit_) == 300
    fixed = {"tune": False, "noise": found.noise_}
    same = GaussianProcessRegressor(found.kernel_, **options, **fixed).fit(X, Y)
    np.testing.assert_allclose(found.predict(NEW), same.predict(NEW), rtol=0, atol=1e-8)
    best = GaussianProcessRegressor("matern32", **options).fit(X, Y)
    assert 0.0 < best.log_marginal_likelihood_ - found.log_marginal_likelihood_ < 30.0


def test_as_many_rows_to_learn_from_as_there_are_change_nothing():
    models = [GaussianProcessRegressor(n_restarts=0, n_learn=n).fit(X, Y) for n in (None, 300, 9999)]
    assert len({model.log_marginal_likelihood_ for model in models}) == 1
    assert {model.optimum_.n_rows for model in models} == {300}


@pytest.mark.parametrize("copies", [1, 40])
def test_copies_are_a_concern_and_not_learned_from(copies, tmp_path):
    more, values = np.r_[X, X[:copies]], np.r_[Y, Y[:copies]]
    model = GaussianProcessRegressor(n_restarts=0).fit(more, values)
    alone = GaussianProcessRegressor(n_restarts=0).fit(X, Y)
    assert model.noise_ == pytest.approx(alone.noise_, rel=1e-3)
    assert len(model.X_fit_) == 300 + copies
    words = "1 row repeats another in X and y and was" if copies == 1 else "40 rows repeat others in X and y and were"
    (line,) = [line for line in model.report().concerns if "repeat" in line]
    assert line.startswith(f"{words} not learned from, since copies make the noise look small; predictions count")
    given = GaussianProcessRegressor(n_restarts=0, noise=0.04).fit(more, values)
    assert not any("look small" in line for line in given.report().concerns)
    model.save(tmp_path / "model")
    assert mercer.load(tmp_path / "model").report().concerns == model.report().concerns
    everything = GaussianProcessRegressor(n_restarts=0, n_learn=len(more)).fit(more, values)
    assert not any("not learned from" in line for line in everything.report().concerns)
    assert everything.log_marginal_likelihood_ > model.log_marginal_likelihood_


def test_memory_is_planned_for_the_rows_that_are_learned_from():
    place = Placement(torch.device("cpu"), torch.float64, 12 * 3000**2)  # a factor of 3,000 rows, no inverse beside it
    assert [choose_method("auto", 3000, taught, place)[0] for taught in (3000, 500, 0)] == [
        "iterative",
        "exact",
        "exact",
    ]


def test_rows_that_teach_what_the_others_contradict_are_a_concern():
    twice = np.r_[X, X]
    values = np.r_[np.sin(X[:, 0]), np.sin(X[:, 0]) + rng.normal(size=300)]
    model = GaussianProcessRegressor(n_restarts=0, n_learn=10, random_state=0)
    model.fit(twice, values)
    likely = dataclasses.replace(model.optimum_, value=50.0)
    model._fit = dataclasses.replace(model._fit, optimum=likely)
    assert any("unlike the others" in line and "raise n_learn" in line for line in model.report().concerns)
    assert not any("unlike" in line for line in GaussianProcessRegressor(n_learn=150).fit(X, Y).report().concerns)
