"""Wrong settings of a Gaussian process say what is wrong, and reports what is true."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

from mercer import GaussianProcessRegressor
from mercer.core.errors import MemoryBudgetError
from mercer.kernels import Gaussian

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 2))
Y = X[:, 0] + 0.1 * rng.normal(size=30)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kernel": Gaussian((1.0, 2.0, 3.0))}, "length_scale has 3 entries but X has 2 columns"),
        ({"mean": float("nan")}, "mean=nan: must be"),
        ({"priors": {"noise": lambda v: v * float("nan")}}, r"priors\['noise'\] is NaN"),
        ({"priors": {"noise": lambda v: "a"}}, r"priors\['noise'\] returned 'a'"),
        ({"bounds": {"noise": ("a", "b")}}, r"bounds\['noise'\]=\('a', 'b'\): give"),
        ({"noise": None}, "noise=None: must be"),
        ({"noise": True}, "noise=True: must be"),
        ({"tune": "no"}, "tune='no': must be True, False, 'scale' or 'ard'"),
    ],
)
def test_settings_are_checked_by_name(options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        GaussianProcessRegressor(n_restarts=0, **options).fit(X, Y)


def test_a_budget_that_is_too_small_is_called_that():
    with pytest.raises(MemoryBudgetError):
        GaussianProcessRegressor(n_restarts=0, method="exact", memory_budget="1KiB").fit(X, Y)


def test_variances_come_in_any_array_and_in_the_right_place():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GaussianProcessRegressor(Gaussian(), tune=False, noise=pd.Series(np.full(30, 0.1))).fit(X, Y)
    shared = GaussianProcessRegressor(Gaussian(), tune=False, noise=0.3).fit(X, Y)
    assert model.log_marginal_likelihood(noise=0.2) == pytest.approx(shared.log_marginal_likelihood_)
    with pytest.raises(ValueError, match="one variance for all rows is needed"):
        model.log_marginal_likelihood(noise=np.full(30, 0.1))
    with pytest.raises(ValueError, match="first call of partial_fit fits the model"):
        GaussianProcessRegressor().partial_fit(X, Y, noise=np.full(30, 0.1))


def test_calibration_takes_finite_observations():
    model = GaussianProcessRegressor(Gaussian(), tune=False, noise=0.1).fit(X, Y)
    with pytest.raises(ValueError, match="first: position 2|first at position 2"):
        model.calibration(X, np.where(np.arange(30) == 2, np.nan, Y))


def test_several_targets_are_those_of_one_process_times_their_scale():
    both = np.c_[Y, 3.0 - 100 * Y]
    model = GaussianProcessRegressor(n_restarts=0).fit(X, both)
    np.testing.assert_allclose((model.target_scale_**2).mean(), 1.0)
    assert "target_scale_" in model.report().as_dict()["noise"]
    again = GaussianProcessRegressor(model.kernel_, noise=model.noise_, tune=False)
    again.fit(X, both / model.target_scale_)
    for ours, theirs in zip(model.predict(X, return_std=True), again.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(ours, theirs * model.target_scale_, rtol=1e-6, atol=1e-8)
    assert GaussianProcessRegressor(n_restarts=0).fit(X, Y).target_scale_.tolist() == [1.0]


def test_reports_of_small_and_strange_data():
    concerns = GaussianProcessRegressor(n_restarts=0).fit(X, np.full(30, 3.0)).report().concerns
    assert any("targets are constant" in line for line in concerns)
    assert not any("noise" in line for line in concerns)
    assert GaussianProcessRegressor().fit(X[:1], Y[:1]).report().as_dict()["data"].startswith("1 row,")
    ready = GaussianProcessRegressor("precomputed", tune=False, noise=0.1).fit(Gaussian()(X), Y)
    assert ready.report().as_dict()["data"] == "30 rows"
