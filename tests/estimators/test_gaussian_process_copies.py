"""Data of which some rows are copies teach a Gaussian process what they teach without them."""

from __future__ import annotations

import numpy as np
import pytest

from mercer import GaussianProcessRegressor

rng = np.random.default_rng(0)
OPTIONS = {"n_restarts": 0, "random_state": 0}


def learned(X, y, **options):
    return GaussianProcessRegressor(**OPTIONS, **options).fit(X, y)


@pytest.mark.parametrize("digits", [0, 6])
def test_noise_of_a_bootstrap_is_that_of_its_distinct_rows(digits):
    X = rng.uniform(-2, 2, size=(120, 2))
    y = np.round(30 * np.sin(2 * X[:, 0]) + 9 * rng.normal(size=120), digits)
    index = rng.integers(0, 120, size=120)
    some = np.unique(index)
    model, alone = learned(X[index], y[index]), learned(X[some], y[some])
    assert model.optimum_.n_copies == 120 - len(some)
    assert model.noise_ == pytest.approx(alone.noise_, rel=0.05)


def test_length_scales_are_tied_by_the_number_of_distinct_rows():
    X = rng.normal(size=(25, 10))
    y = X.sum(1) / 3 + 0.3 * rng.normal(size=25)
    model, alone = learned(np.tile(X, (3, 1)), np.tile(y, 3)), learned(X, y)
    assert model._fit.plan.hyper.tied == alone._fit.plan.hyper.tied != frozenset()
    assert model.noise_ == pytest.approx(alone.noise_, rel=0.05)


def test_the_mean_function_is_chosen_without_copies():
    X = rng.uniform(-2, 2, size=(60, 1))
    y = np.sin(X[:, 0] + 2) + 0.2 * rng.normal(size=60)
    model, alone = learned(np.tile(X, (4, 1)), np.tile(y, 4), mean="auto"), learned(X, y, mean="auto")
    assert model._fit.mean_reason.split(" to the")[0] == alone._fit.mean_reason.split(" to the")[0]
    with pytest.raises(ValueError, match="too many for 4 rows"):
        learned(np.tile(rng.normal(size=(4, 3)), (5, 1)), np.tile(rng.normal(size=4), 5), mean="linear")


@pytest.mark.parametrize("count", [1, 2, 5])
def test_one_record_entered_several_times_teaches_nothing(count):
    model = learned([[1.0]] * count, [2.0] * count)
    assert model.optimum_ is None
    assert "one row teaches nothing" in model.report().as_dict()["learning"]
    assert model.predict([[5.0]], return_std=True)[1][0] > 1.0


def test_replicates_of_a_rounded_instrument_are_all_learned_from():
    X = np.repeat(np.linspace(0, 10, 20), 10)[:, None]
    y = np.round(300 * np.sin(X[:, 0]) + 0.3 * rng.normal(size=200), 1)
    model = learned(X, y)
    assert model.optimum_.n_copies == 0
    assert model.noise_ == pytest.approx(0.09, rel=0.3)
