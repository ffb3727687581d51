"""Classes and losses other than the squared one, from rows that are read in parts."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import mercer
from mercer import KernelClassifier, KernelRegressor, KernelRidge
from mercer.core.errors import InputError, InputTypeError
from mercer.engines import SerialEngine
from mercer.estimators.common import parts
from mercer.kernels import Gaussian, Laplace
from mercer.rows import ArrayRows, DaskRows, ParquetRows

rng = np.random.default_rng(0)
X = rng.standard_normal((1500, 3))
f = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
y = f + 0.3 * rng.standard_normal(1500)
TWO = (y > 0).astype(int)
THREE = np.array(["high", "low", "mid"])[np.digitize(y, [-0.5, 0.8])]
w = rng.integers(0, 3, 1500).astype(float)
NEW = rng.standard_normal((100, 3))
SHARED = {"landmarks": X[:40], "alpha": 0.3, "solver": "nystrom"}

CASES = [
    (KernelClassifier(Gaussian(1.5)), TWO, 1e-4),
    (KernelClassifier(Laplace(2.0), class_weight="balanced"), THREE, 1e-4),
    (KernelClassifier(Gaussian(1.5), loss="squared_hinge", fit_intercept=False), THREE, 1e-4),
    (KernelClassifier(Gaussian(1.5), loss="squared", class_weight={"mid": 2.0}), THREE, 1e-7),
    (KernelRegressor(Gaussian(1.5), loss="huber", units="raw"), y, 1e-4),
    (KernelRegressor(Laplace(2.0), loss="squared"), y, 1e-7),
    (KernelClassifier(Laplace(2.0), loss="hinge"), TWO, 5e-3),
    (KernelRegressor(Laplace(2.0), loss="quantile", quantiles=[0.2, 0.9]), y, 5e-3),
]
NAMES = [f"{type(m).__name__}-{m.loss}" for m, _, _ in CASES]


@pytest.fixture
def small_sample(monkeypatch):
    """A sample of a fifth of the rows, so that passes have something to find."""
    monkeypatch.setattr(parts, "FEWEST_SAMPLED", 300)


def values(model, rows):
    return model.decision_function(rows) if hasattr(model, "decision_function") else model.predict(rows)


@pytest.mark.parametrize(("model", "target", "close"), CASES, ids=NAMES)
def test_rows_in_parts_give_the_fit_of_rows_in_memory(model, target, close, small_sample):
    model.set_params(**SHARED)
    whole = model.fit(X, target, w)
    expected, scale, objective = values(whole, NEW), whole.lambda_, whole.objective_
    found = []
    for size in (400, 211):
        model.fit(ArrayRows(X, target, w, rows_at_once=size))
        found.append(values(model, NEW))
        np.testing.assert_allclose(found[-1], expected, rtol=close, atol=close)
        np.testing.assert_allclose(values(model, ArrayRows(NEW, rows_at_once=13)), found[-1], rtol=1e-9, atol=1e-9)
        assert model.lambda_ == pytest.approx(scale)
        assert model.objective_ == pytest.approx(objective, rel=2e-6)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-7, atol=1e-7)
    assert "8 parts" in model.solver_report_.reason
    assert "1,500 rows" in str(model.report())


def test_an_engine_gives_the_fit_of_one_process(small_sample):
    source = ArrayRows(X, THREE, w, rows_at_once=100)
    model = KernelClassifier(Gaussian(1.5), **SHARED).fit(source)
    expected = model.predict_proba(NEW)
    engine = SerialEngine(group_rows=250)
    again = KernelClassifier(Gaussian(1.5), client=engine, **SHARED).fit(source)
    np.testing.assert_allclose(again.predict_proba(NEW), expected, atol=1e-7)
    np.testing.assert_array_equal(again.predict(ArrayRows(NEW)), model.predict(NEW))


def test_alpha_and_probabilities_come_from_a_sample(small_sample):
    model = KernelClassifier("gaussian", loss="hinge", n_landmarks=20).fit(ArrayRows(X, TWO, rows_at_once=500))
    p = model.predict_proba(X)[:, 1]
    assert model.score(X, TWO) > 0.8
    assert np.log(np.where(TWO == 1, p, 1 - p)).mean() > -0.5
    assert model.alpha_path_ is not None
    smooth = KernelClassifier("gaussian", n_landmarks=30).fit(ArrayRows(X, THREE, rows_at_once=500))
    assert smooth.score(X, THREE) > 0.8


def test_a_class_that_the_sample_lacks_is_learned(small_sample):
    labels = TWO.copy()
    labels[1400:1403] = 7
    rows = X.copy()
    rows[1400:1403] = 9.0 + rng.standard_normal((3, 3)) / 10
    model = KernelClassifier(Gaussian(1.5), alpha=0.1, landmarks=np.vstack([X[:20], rows[1400:1401]]))
    model.fit(ArrayRows(rows, labels, rows_at_once=500))
    assert model.classes_.tolist() == [0, 1, 7]
    assert (model.predict(rows[1400:1403]) == 7).all()
    assert (model.predict(rows[:1400]) != 7).all()


def test_labels_are_text_in_every_kind_of_source(tmp_path):
    frame = pd.DataFrame(X, columns=list("abc")).assign(kind=THREE)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=400)
    sources = [
        ArrayRows(X, THREE),
        ParquetRows(tmp_path / "rows.parquet", target="kind"),
        DaskRows(dd.from_pandas(frame, npartitions=3), "kind"),
    ]
    model = KernelClassifier(Gaussian(1.5), **SHARED)
    expected = model.fit(X, THREE).predict_proba(NEW)
    for source in sources:
        model.fit(source)
        assert model.classes_.tolist() == ["high", "low", "mid"]
        np.testing.assert_allclose(model.predict_proba(NEW), expected, atol=1e-4)
        assert model.score(source) == pytest.approx(model.score(X, THREE), abs=2e-3)
    with pytest.raises(InputTypeError, match="The target is text, such as 'high'.*KernelClassifier takes labels"):
        KernelRidge().fit(sources[1])
    gap = frame.copy()
    gap.loc[7, "kind"] = None
    gap.to_parquet(tmp_path / "gap.parquet")
    with pytest.raises(InputError, match="NaN: row 7, column 'kind'"):
        model.fit(ParquetRows(tmp_path / "gap.parquet", target="kind"))


def test_dask_collections_are_predicted_later():
    lazy = da.from_array(X, chunks=(400, 2))
    model = KernelClassifier(Gaussian(1.5), **SHARED).fit(lazy, da.from_array(TWO, chunks=500))
    for method in ("predict", "predict_proba", "decision_function"):
        found = getattr(model, method)(da.from_array(NEW, chunks=(30, 3)))
        assert isinstance(found, da.Array)
        np.testing.assert_allclose(found.compute(), getattr(model, method)(NEW), atol=1e-9)
    quantiles = KernelRegressor(Gaussian(1.5), loss="quantile", quantiles=[0.1, 0.9], **SHARED).fit(lazy, y)
    found = quantiles.predict(da.from_array(NEW, chunks=(30, 3)))
    np.testing.assert_allclose(found.compute(), quantiles.predict(NEW), atol=1e-9)


class Failing(ArrayRows):
    """A source that fails after so many reads of a part."""

    left = -1

    def load(self, part):
        self.left -= 1
        if self.left == 0:
            raise OSError("gone")
        return super().load(part)


@pytest.mark.parametrize(
    ("case", "reads"), [(1, (29, 37)), (3, (19, 20)), (6, (45, 96))], ids=["smooth", "sums", "kinks"]
)
def test_a_fit_goes_on_from_its_checkpoint_to_the_same_bits(case, reads, small_sample, tmp_path, monkeypatch):
    model, target, _ = CASES[case]
    monkeypatch.setattr("mercer.data.checkpoint.SECONDS", 0.0)
    model.set_params(**SHARED, checkpoint=tmp_path / "c")
    source = Failing(X, target, w, rows_at_once=200)
    whole = values(model.fit(source), NEW)
    for source.left in reads:  # after the labels and the sample
        with pytest.raises(OSError, match="gone"):
            model.fit(source)
        assert (tmp_path / "c").exists()
    np.testing.assert_array_equal(values(model.fit(source), NEW), whole)
    assert not (tmp_path / "c").exists()
    model.set_params(checkpoint=None)


def test_models_of_parts_are_saved(tmp_path, small_sample):
    for made, target in ((KernelClassifier(loss="hinge"), THREE), (KernelRegressor(loss="huber"), y)):
        model = made.set_params(**SHARED, client=SerialEngine()).fit(ArrayRows(X, target, rows_at_once=400))
        model.save(tmp_path / "m")
        again = mercer.load(tmp_path / "m")
        np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))


def test_partial_fit_adds_rows_for_the_squared_loss():
    whole = KernelClassifier(Gaussian(1.5), loss="squared", **SHARED).fit(X, THREE, w)
    parts_ = KernelClassifier(Gaussian(1.5), loss="squared", **SHARED)
    for i in range(0, 1500, 500):
        some = slice(i, i + 500)
        parts_.partial_fit(
            X[some], THREE[some], classes=["low", "mid", "high"] if i == 0 else None, sample_weight=w[some]
        )
    np.testing.assert_allclose(parts_.decision_function(NEW), whole.decision_function(NEW), atol=1e-8)
    assert parts_.objective_ == pytest.approx(whole.objective_)
    assert parts_.predict_proba(NEW).sum(1) == pytest.approx(1.0)
    with pytest.raises(InputError, match="label 'none' in row 1, which is none of"):
        parts_.partial_fit(X[:2], ["low", "none"])
    with pytest.raises(InputError, match="another landmarks"):
        parts_.set_params(landmarks=X[:30]).partial_fit(X[:2], ["low", "mid"])
    with pytest.raises(InputError, match="needs classes= at its first call"):
        KernelClassifier(loss="squared").partial_fit(X, TWO)
    regressor, at_once = (KernelRegressor(Gaussian(1.5), loss="squared", **SHARED) for _ in range(2))
    for some in (slice(0, 700), slice(700, None)):
        regressor.partial_fit(X[some], y[some])
    np.testing.assert_allclose(regressor.predict(NEW), at_once.fit(X, y).predict(NEW), atol=1e-8)
    with pytest.raises(InputError, match="do not store the sums that partial_fit needs"):
        at_once.partial_fit(X, y)
    begun = KernelRegressor(Gaussian(1.5), alpha=0.3, landmarks=X[:40], solver="auto", n_landmarks=None)
    begun.set_params(landmarks="uniform").fit(X[:700], y[:700]).partial_fit(X[700:], y[700:])
    assert begun.lambda_ == pytest.approx(0.3 / 1500)
    assert begun.score(X, y) > 0.8


def test_what_does_not_do_is_said():
    model = KernelClassifier(n_landmarks=10)
    with pytest.raises(InputError, match="solver='dense' needs all rows in memory"):
        KernelClassifier(solver="dense").fit(ArrayRows(X, TWO))
    with pytest.raises(InputError, match="one class, 1, among the rows"):
        model.fit(ArrayRows(X, np.ones(1500)))
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        model.fit(ArrayRows(X, y))
    with pytest.raises(InputError, match="wrap arrays in mercer.rows.ArrayRows"):
        KernelClassifier(checkpoint="c").fit(X, TWO)
    with pytest.raises(InputError, match="has no targets"):
        model.fit(ArrayRows(X))
    with pytest.raises(InputError, match="2 features but 3 are expected"):
        model.fit(ArrayRows(X, TWO)).predict(ArrayRows(X[:, :2]))
    with pytest.raises(InputError, match="y has 2 columns"):
        KernelRegressor(loss="huber").fit(ArrayRows(X, np.stack([y, y], 1)))
