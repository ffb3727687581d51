"""Drift of new rows from a reference."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mercer
from mercer.core.errors import InputError, ModelFileError
from mercer.files.modelfile import read_model, write_model
from mercer.stats import DriftDetector

RNG = np.random.default_rng(0)
FAST = {"n_resamples": 99, "max_rows": 200, "expected_run_length": 500, "random_state": 0}


def table(n, moved=0.0):
    X = pd.DataFrame(RNG.normal(size=(n, 3)), columns=["age", "bmi", "bp"])
    X["bmi"] += moved
    return X


def test_drift_is_found_and_its_columns_are_named():
    detector = DriftDetector(**FAST).fit(table(400))
    result = detector.test(table(100, 1.0))
    assert result.drift
    assert "bmi moved" in result.summary
    assert not detector.test(table(100)).drift
    assert "Kolmogorov" in result.plot().get_xlabel()
    assert "400 rows of 3 columns" in str(detector.report())


def test_batches_are_judged_at_the_level():
    rejected = 0
    for i in range(100):
        rng = np.random.default_rng(i)
        detector = DriftDetector(level=0.2, n_resamples=19, max_rows=30, random_state=i).fit(rng.poisson(2.0, (40, 1)))
        rejected += detector.test(rng.poisson(2.0, (12, 1))).drift
    assert rejected <= 33  # the binomial quantile of 0.999 at 0.2


def test_a_false_alarm_comes_about_as_late_as_stated():
    detector, found = DriftDetector(**FAST).fit(RNG.normal(size=(1000, 2))), []
    for i in range(30):
        rng, status = np.random.default_rng(i), None
        detector.reset()
        while status is None or not (status.drift or status.n_seen > 4000):
            status = detector.update(rng.normal(size=(100, 2)))
        found.append(status.at or status.n_seen)
    assert 250 < np.mean(found) < 1500


def test_single_rows_that_drift_raise_an_alarm_that_stays():
    detector = DriftDetector(**FAST).fit(table(300))
    assert not detector.update(table(1)).drift
    status = detector.update(table(200, 3.0))
    assert status.drift
    assert status.at < 60
    assert status.columns[0][0] == "bmi"
    assert detector.update(table(5)).at == status.at
    assert not detector.reset().update(table(3)).drift


def test_one_row_at_a_time_is_the_same_as_many():
    X, new = RNG.normal(size=(100, 2)), RNG.normal(size=(20, 2))
    together, alone = (DriftDetector(**FAST).fit(X) for _ in range(2))
    last = [alone.update(row[None]) for row in new][-1]
    assert together.update(new).statistic == pytest.approx(last.statistic, rel=1e-4)


@pytest.mark.parametrize("seen", [0, 7])
def test_a_saved_detector_goes_on_where_it_was(tmp_path, seen):
    detector = DriftDetector(**FAST).fit(table(150))
    if seen:
        detector.update(table(seen))
    detector.save(tmp_path / "drift.safetensors")
    loaded = mercer.load(tmp_path / "drift.safetensors")
    new = table(50, 0.5)
    assert loaded.test(new).pvalue == detector.test(new).pvalue
    a, b = loaded.update(new), detector.update(new)
    assert (a.n_seen, a.at, a.columns) == (b.n_seen, b.at, b.columns)
    assert a.statistic == pytest.approx(b.statistic)


def test_hostile_files_are_refused(tmp_path):
    detector, path = DriftDetector(**FAST).fit(table(50)), tmp_path / "drift.safetensors"
    detector.update(table(2))
    detector.save(path)
    name, meta, arrays = read_model(path, {"DriftDetector"})
    for change in (
        lambda m, a: m["params"].update(level=2.0),
        lambda m, a: m["reference"].update(columns=["age"]),
        lambda m, a: m.update(n_rows=0),
        lambda m, a: m["watch"].update(threshold="high"),
        lambda m, a: a.update(X=torch.zeros(3)),
        lambda m, a: a.update(watch_state=torch.zeros(1, 2)),
        lambda m, a: a.pop("watch_mean"),
        lambda m, a: a.update(more=torch.zeros(1)),
    ):
        m, a = json.loads(json.dumps(meta)), dict(arrays)
        change(m, a)
        write_model(path, name, m, a)
        with pytest.raises(ModelFileError, match="does not make a DriftDetector"):
            mercer.load(path)


def people(n, share=0.5, gaps=0.1, seed=1):
    rng = np.random.default_rng(seed)
    city = pd.Categorical(np.where(rng.random(n) < share, "Oslo", "Rome"))
    X = pd.DataFrame({"age": rng.normal(size=n), "city": city, "member": rng.random(n) < 0.5})
    X["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    X.loc[rng.random(n) < gaps, "age"] = np.nan
    return X


@pytest.fixture
def of_people():
    return DriftDetector(**FAST).fit(people(250, seed=0))


def test_categories_that_drift_are_found_by_batches_and_by_single_rows(of_people):
    moved = people(150, 0.95)
    assert of_people.test(moved).columns()[0].name.startswith("city")
    assert of_people.test(moved).drift
    assert not of_people.test(people(150)).drift
    gone = of_people.test(people(150, gaps=0.6))
    assert gone.drift
    assert gone.columns()[0].name == "age=missing"
    assert of_people.update(people(2).assign(since=None)).n_seen == 2
    status = of_people.update(moved)
    assert status.drift
    assert status.columns[0][0].startswith("city")


@pytest.mark.parametrize("seen", [0, 3])
def test_a_saved_detector_of_people_goes_on_where_it_was(of_people, tmp_path, seen):
    if seen:
        of_people.update(people(seen))
    of_people.save(tmp_path / "drift.safetensors")
    loaded, new = mercer.load(tmp_path / "drift.safetensors"), people(40)
    assert loaded.test(new).pvalue == of_people.test(new).pvalue
    assert loaded.update(new).statistic == pytest.approx(of_people.update(new).statistic)
    assert list(loaded.feature_names_in_) == ["age", "city", "member", "since"]


def test_hostile_files_of_people_are_refused(of_people, tmp_path):
    path = tmp_path / "drift.safetensors"
    of_people.save(path)
    name, meta, arrays = read_model(path, {"DriftDetector"})
    for change in (
        lambda m, a: m["reference"]["table"][1].update(kind="numbers"),
        lambda m, a: m["reference"]["table"][1].update(texts=[3]),
        lambda m, a: m["reference"]["table"].pop(),
        lambda m, a: m["reference"]["table"][1]["texts"].pop(),
        lambda m, a: m["reference"].update(table=[]),
        lambda m, a: a.pop("column_0"),
        lambda m, a: a.update(column_0=a["column_0"].float()),
        lambda m, a: m["reference"]["table"][0].update(gaps=[10**6]),
        lambda m, a: m["reference"]["table"][1].update(name="age"),
    ):
        m, a = json.loads(json.dumps(meta)), dict(arrays)
        change(m, a)
        write_model(path, name, m, a)
        with pytest.raises(ModelFileError, match="does not make a DriftDetector"):
            mercer.load(path)


def test_new_rows_of_other_kinds_are_clear_errors(of_people):
    new = people(20)
    with pytest.raises(InputError, match="Column 'city' holds text in the reference but numbers in X"):
        of_people.test(new.assign(city=1.0))
    with pytest.raises(InputError, match="columns of the reference are"):
        of_people.update(new.drop(columns="city"))
    with pytest.raises(InputError, match="X is not a data frame"):
        of_people.test(RNG.normal(size=(20, 4)))
    numbers = DriftDetector(**FAST).fit(table(50))
    with pytest.raises(InputError, match="Column 'bmi' of X holds text or dates"):
        numbers.test(table(20).assign(bmi="high"))


def test_it_is_an_estimator_of_scikit_learn():
    detector = DriftDetector(level=0.1, random_state=3)
    assert clone(detector).get_params() == detector.get_params()
    with pytest.raises(NotFittedError):
        detector.test([[0.0]])
    assert list(detector.fit(table(20)).feature_names_in_) == ["age", "bmi", "bp"]


@pytest.mark.parametrize(
    ("use", "match"),
    [
        (lambda d: d.fit([[1.0]]), "at least two"),
        (lambda d: d.fit([[1.0], [np.nan]]), "NaN"),
        (lambda d: d.set_params(level=0).fit(table(9)), "level=0"),
        (lambda d: d.set_params(n_resamples=5).fit(table(9)), "n_resamples=5"),
        (lambda d: d.set_params(expected_run_length=1).fit(table(9)), "expected_run_length=1"),
        (lambda d: d.fit(table(9)).test(table(1)), "at least two"),
        (lambda d: d.fit(table(9)).test([[1.0], [2.0]]), "X has 1 columns but the reference has 3"),
        (lambda d: d.fit(table(9)).update(table(9)[["bp", "age", "bmi"]]), "columns of X are"),
    ],
)
def test_wrong_use_is_a_clear_error(use, match):
    with pytest.raises(InputError, match=match):
        use(DriftDetector(**FAST))
