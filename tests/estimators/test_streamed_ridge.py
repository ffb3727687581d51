"""KernelRidge from rows that are read in parts."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from mercer import KernelRidge
from mercer.core.errors import InputError, ModelFileError
from mercer.data.checkpoint import Checkpoint
from mercer.data.rows import ArrayRows
from mercer.kernels import Gaussian

rng = np.random.default_rng(0)
X = rng.standard_normal((1500, 3))
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(1500)
w = rng.integers(0, 3, 1500).astype(float)
NEW = rng.standard_normal((100, 3))


@pytest.mark.parametrize(
    "options",
    [
        {"solver": "nystrom", "n_landmarks": 40},
        {"solver": "nystrom", "n_landmarks": 40, "alpha": "loo"},
        {"solver": "nystrom", "landmarks": X[:40], "alpha": "gcv"},
        {"solver": "falkon", "n_landmarks": 40, "landmarks": "pivoted", "tol": 1e-10},
        {"solver": "random_features", "n_features": 50},
    ],
)
@pytest.mark.parametrize("weights", [None, w])
def test_streamed_rows_give_the_fit_of_rows_in_memory(options, weights):
    model = KernelRidge(Gaussian(1.5), **({"alpha": 0.3} | options))
    whole = model.fit(X, y, weights).predict(NEW)
    scale, alpha = model.lambda_, model.alpha_
    for size in (1500, 400, 37):
        model.fit(ArrayRows(X, y, weights, rows_at_once=size))
        np.testing.assert_allclose(model.predict(NEW), whole, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(model.predict(ArrayRows(NEW, rows_at_once=13)), whole, rtol=1e-6, atol=1e-7)
        assert model.lambda_ == pytest.approx(scale)
        assert model.alpha_ == pytest.approx(alpha)
    assert "1,500 rows" in str(model.report())
    assert "41 parts" in model.solver_report_.reason


def test_median_and_tuning_come_from_a_sample_of_the_rows():
    model = KernelRidge("gaussian", alpha=0.3, tune=True, n_landmarks=30).fit(ArrayRows(X, y, rows_at_once=500))
    assert model.score(X, y) > 0.9
    assert model.solver_report_.solver == "nystrom"


def test_several_targets_stream_too():
    Y = np.stack([y, -y], axis=1)
    model = KernelRidge(Gaussian(1.5), alpha=0.3, n_landmarks=40).fit(ArrayRows(X, Y, rows_at_once=500))
    assert model.predict(NEW).shape == (100, 2)
    np.testing.assert_allclose(model.predict(NEW)[:, 0], -model.predict(NEW)[:, 1], atol=1e-9)


def test_what_cannot_stream_is_refused():
    with pytest.raises(InputError, match="solver='cholesky' needs all rows in memory"):
        KernelRidge(solver="cholesky").fit(ArrayRows(X, y))
    with pytest.raises(InputError, match="has no targets"):
        KernelRidge().fit(ArrayRows(X))
    with pytest.raises(InputError, match="when creating the RowSource"):
        KernelRidge().fit(ArrayRows(X, y), y)
    model = KernelRidge(n_landmarks=10).fit(ArrayRows(X, y))
    with pytest.raises(InputError, match="2 features but 3 are expected"):
        model.predict(ArrayRows(X[:, :2]))
    with pytest.raises(InputError, match="no rows to predict at"):
        model.predict(ArrayRows(X[:0]))
    with pytest.raises(InputError, match="wrap arrays in mercer.rows.ArrayRows"):
        KernelRidge(solver="nystrom", checkpoint="c").fit(X, y)
    with pytest.raises(InputError, match="contains NaN: row 99"):
        KernelRidge(n_landmarks=10).fit(ArrayRows(np.where(np.arange(1500)[:, None] == 99, np.nan, X), y))


class Failing(ArrayRows):
    """A source whose tenth part fails when it is read for the second time: after the sample, in the pass."""

    def __init__(self, error):
        super().__init__(X, y, w, rows_at_once=100)
        self.error, self.read_before = error, False

    def load(self, part):
        if part.before == 900:
            if self.read_before:
                raise self.error
            self.read_before = True
        return super().load(part)


@pytest.mark.parametrize("options", [{"solver": "nystrom", "n_landmarks": 40}, {"solver": "random_features"}])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("gone")])
def test_a_fit_goes_on_from_its_checkpoint_to_the_same_bits(options, error, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("mercer.data.checkpoint.SECONDS", 0.0)
    path = tmp_path / "fit.checkpoint"
    whole = KernelRidge(Gaussian(1.5), alpha=0.3, checkpoint=tmp_path / "other", **options)
    expected = whole.fit(ArrayRows(X, y, w, rows_at_once=100)).predict(NEW)
    model = KernelRidge(Gaussian(1.5), alpha=0.3, checkpoint=path, verbose=True, **options)
    with pytest.raises(type(error)):
        model.fit(Failing(error))
    assert path.exists()
    model.fit(ArrayRows(X, y, w, rows_at_once=100))
    assert "going on after" in capsys.readouterr().out
    np.testing.assert_array_equal(model.predict(NEW), expected)
    assert model.lambda_ == whole.lambda_
    assert not path.exists()


def test_a_checkpoint_of_another_fit_or_a_damaged_one_is_refused(tmp_path):
    path = tmp_path / "fit.checkpoint"
    Checkpoint(path, {"rows": {}, "parameters": {}}).save(1, {"gram": torch.ones(1, 1)})
    model = KernelRidge(solver="nystrom", n_landmarks=10, checkpoint=path)
    with pytest.raises(InputError, match=r"belongs to another fit \(sums, rows, parameters, kernel"):
        model.fit(ArrayRows(X, y))
    path.write_bytes(b"damaged")
    with pytest.raises(ModelFileError, match=r"fit.checkpoint"):
        model.fit(ArrayRows(X, y))


def test_a_disk_that_is_full_costs_the_checkpoint_but_not_the_fit(tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.data.checkpoint.SECONDS", 0.0)

    def full(*_, **__):
        raise ModelFileError("no space left on device")

    monkeypatch.setattr("mercer.data.checkpoint.write_model", full)
    model = KernelRidge(Gaussian(1.5), solver="nystrom", n_landmarks=10, checkpoint=tmp_path / "c")
    with pytest.warns(UserWarning, match="no space left"):
        model.fit(ArrayRows(X, y, rows_at_once=100))
    assert model.score(X, y) > 0.2


class Flaky(ArrayRows):
    """A source that fails once, after so many reads of a part."""

    def __init__(self, reads):
        super().__init__(X, y, w, rows_at_once=500)
        self.left = reads

    def load(self, part):
        self.left -= 1
        if self.left == 0:
            raise OSError("gone")
        return super().load(part)


@pytest.mark.parametrize("reads", [16, 19, 25])
def test_falkon_goes_on_from_its_last_iteration_to_the_same_bits(reads, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("mercer.data.checkpoint.SECONDS", 0.0)
    options = {"alpha": 0.3, "solver": "falkon", "n_landmarks": 40, "tol": 1e-10}
    whole = KernelRidge(Gaussian(1.5), **options).fit(ArrayRows(X, y, w, rows_at_once=500))
    model = KernelRidge(Gaussian(1.5), checkpoint=tmp_path / "c", **options)
    with pytest.raises(OSError, match="gone"):
        model.fit(Flaky(reads))
    assert (tmp_path / "c").exists()
    model.set_params(verbose=True).fit(ArrayRows(X, y, w, rows_at_once=500))
    iterations = re.findall(r"iteration (\d+): relative residual", capsys.readouterr().out)
    assert int(iterations[0]) > 1
    np.testing.assert_array_equal(model.predict(NEW), whole.predict(NEW))
    assert not (tmp_path / "c").exists()
