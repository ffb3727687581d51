"""Gaussian processes given rows that are read in parts, by inducing points."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest

import mercer
from mercer import GaussianProcessRegressor
from mercer.core.errors import InputError
from mercer.estimators.common import parts
from mercer.estimators.gaussian import streamed
from mercer.kernels import Gaussian
from mercer.rows import ArrayRows

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, size=(900, 2))
y = 50 + np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(900)
NEW = rng.uniform(-3, 3, size=(50, 2))
GIVEN = {"kernel": 2.0 * Gaussian(1.0), "noise": 0.01, "tune": False, "method": "sgpr", "n_landmarks": 60}


def test_rows_in_parts_give_the_process_of_rows_in_memory():
    for mean in ("zero", "constant", "linear"):
        whole = GaussianProcessRegressor(mean=mean, **GIVEN).fit(X, y)
        for size in (400, 137):
            model = GaussianProcessRegressor(mean=mean, **GIVEN).fit(ArrayRows(X, y, rows_at_once=size))
            expected, found = whole.predict(NEW, return_std=True), model.predict(NEW, return_std=True)
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
            assert model.log_marginal_likelihood() == pytest.approx(whole.log_marginal_likelihood(), rel=1e-6)


def test_rows_beyond_the_sample_count(monkeypatch, tmp_path):
    monkeypatch.setattr(streamed, "FEWEST_SAMPLED", 200)
    model = GaussianProcessRegressor(mean="constant", **GIVEN).fit(ArrayRows(X, y, rows_at_once=250))
    few = GaussianProcessRegressor(mean="constant", **GIVEN).fit(ArrayRows(model.X_fit_, np.zeros(200)))
    assert len(model.X_fit_) == 200
    mean, std = model.predict(NEW, return_std=True)
    assert (std < few.predict(NEW, return_std=True)[1] + 1e-12).all()  # what all rows tell, beside those of the sample
    truth = 50 + np.sin(2 * NEW[:, 0]) + NEW[:, 1] ** 2
    assert np.abs(mean - truth).mean() < 0.1
    np.testing.assert_allclose(model.predict(ArrayRows(NEW, rows_at_once=7), return_std=True), (mean, std), atol=1e-9)
    model.save(tmp_path / "m")
    again = mercer.load(tmp_path / "m")
    np.testing.assert_allclose(again.predict(NEW, return_std=True), (mean, std), rtol=1e-9)
    assert "900 rows" in str(again.report())


def test_rows_can_be_added_to_all_rows():
    whole = GaussianProcessRegressor(mean="constant", **GIVEN).fit(ArrayRows(X, y))
    landmarks = GaussianProcessRegressor(mean="constant", **GIVEN).fit(ArrayRows(X[:700], y[:700]))
    before = landmarks.predict(NEW, return_std=True)[1]
    landmarks.partial_fit(X[700:], y[700:])
    assert (landmarks.predict(NEW, return_std=True)[1] <= before + 1e-9).all()
    np.testing.assert_allclose(landmarks.predict(NEW), whole.predict(NEW), atol=0.3)


def test_dask_arrays_are_learned_from_and_predicted_later():
    model = GaussianProcessRegressor(n_landmarks=40).fit(
        da.from_array(X, chunks=(300, 2)), da.from_array(y, chunks=300)
    )
    found = model.predict(da.from_array(NEW, chunks=(20, 2)))
    assert isinstance(found, da.Array)
    np.testing.assert_allclose(found.compute(), model.predict(NEW), atol=1e-9)
    assert model.score(ArrayRows(X, y)) > 0.95


def test_what_does_not_go_in_parts_is_said():
    assert parts.FEWEST_SAMPLED == 20_000
    with pytest.raises(InputError, match="method='exact' needs all rows in memory: use method='sgpr'"):
        GaussianProcessRegressor(method="exact").fit(ArrayRows(X, y))
    with pytest.raises(InputError, match="has sample weights, which a Gaussian process does not take"):
        GaussianProcessRegressor().fit(ArrayRows(X, y, np.ones(900) / 2))
