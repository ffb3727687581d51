"""Reports speak up where a fit is bad and are silent where it is good, on tables of both."""

import numpy as np
import pytest
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    load_wine,
    make_classification,
    make_friedman1,
    make_friedman2,
    make_moons,
    make_regression,
)

import mercer
from mercer import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelClassifier,
    KernelRegressor,
    KernelRidge,
    RFMRegressor,
)
from mercer.core.errors import InputError
from mercer.estimators.common import account
from mercer.kernels import Gaussian, Laplace
from mercer.rows import ArrayRows

RNG = np.random.default_rng(0)
WAVE = RNG.uniform(-3, 3, size=(200, 2))
NOISE = RNG.normal(size=200)


def wave(scale=1.0, shift=0.0):
    """A smooth function of two columns with some noise."""
    return WAVE, scale * (np.sin(WAVE[:, 0]) + 0.5 * WAVE[:, 1] + 0.1 * NOISE) + shift


def few():
    return tuple(part[:80] for part in wave())


def mixed():
    """The same in units far apart."""
    X, y = wave()
    return X * np.array([1e5, 1e-3]), y


def diabetes(shift=0.0):
    X, y = load_diabetes(return_X_y=True)
    return X, y + shift


def with_column(data, make):
    X, y = data
    return np.c_[X, make(np.asarray(y))], y


def twice(data, share=0.5):
    X, y = data
    n = int(share * len(y))
    return np.r_[X, X[:n]], np.r_[y, y[:n]]


def noise():
    return RNG.normal(size=(150, 3)), RNG.normal(size=150)


def coins():
    return RNG.normal(size=(150, 3)), RNG.integers(0, 2, 150)


def rare():
    """A class of few rows in the middle of others, whose labels the columns do not tell."""
    X = RNG.normal(size=(300, 2))
    y = (X[:, 0] > 0).astype(int)
    y[RNG.permutation(300)[:12]] = 2
    return X, y


def extreme():
    """Five rows of 500 in a class of their own, whose labels the columns do not tell."""
    return RNG.normal(size=(500, 3)), (np.arange(500) % 100 == 0).astype(float)


def counts():
    X, _ = wave()
    return X, RNG.poisson(np.exp(0.5 * np.sin(X[:, 0]) + 0.5)).astype(float)


def grid():
    """A table of few values, whose rows repeat by chance."""
    X = RNG.integers(0, 3, size=(200, 3)).astype(float)
    return X, X @ np.array([1.0, 2.0, -1.0]) + 0.3 * RNG.normal(size=200)


RIDGE = {"alpha": "auto", "fit_intercept": True}

GOOD = {
    "diabetes": (KernelRidge(**RIDGE), diabetes()),
    "diabetes, a number": (KernelRidge(fit_intercept=True), diabetes()),
    "wave": (KernelRidge("gaussian", **RIDGE), wave()),
    "wave without an intercept": (KernelRidge("gaussian", alpha=0.01, fit_intercept=False), wave()),
    "wave without noise": (KernelRidge("gaussian", **RIDGE), (WAVE, np.sin(WAVE[:, 0]) * WAVE[:, 1])),
    "mixed units, one length scale each": (KernelRidge("gaussian", **RIDGE), mixed()),
    "one length scale, like units": (KernelRidge(Gaussian(2.0), **RIDGE), wave()),
    "far from zero": (KernelRidge("gaussian", **RIDGE), wave(shift=1e4)),
    "friedman": (KernelRidge("gaussian", **RIDGE), make_friedman1(200, noise=0.5, random_state=0)),
    "friedman tuned": (KernelRidge("gaussian", tune=True, **RIDGE), make_friedman1(120, noise=0.5, random_state=0)),
    "currents": (KernelRidge("gaussian", **RIDGE), make_friedman2(200, noise=10.0, random_state=0)),
    "a line": (KernelRidge("gaussian", **RIDGE), make_regression(150, 5, noise=20.0, random_state=0)),
    "counts": (KernelRidge(**RIDGE), counts()),
    "few values": (KernelRidge(**RIDGE), grid()),
    "landmarks": (KernelRidge("gaussian", solver="nystrom", n_landmarks=30, **RIDGE), wave()),
    "landmarks, small alpha": (KernelRidge("gaussian", alpha=1e-4, solver="nystrom", n_landmarks=30), wave()),
    "random features": (KernelRidge("gaussian", alpha=0.01, solver="random_features", n_features=60), wave()),
    "huber": (KernelRegressor("gaussian", loss="huber", **RIDGE), diabetes()),
    "support vectors": (KernelRegressor("gaussian", loss="epsilon_insensitive", alpha=0.1, fit_intercept=True), few()),
    "quantiles": (KernelRegressor("gaussian", loss="quantile", quantiles=[0.1, 0.5, 0.9], alpha=0.1), few()),
    "process": (GaussianProcessRegressor(n_restarts=0), wave()),
    "machine": (RFMRegressor(max_iter=3), make_friedman1(200, noise=0.5, random_state=0)),
    "iris": (KernelClassifier(**RIDGE), load_iris(return_X_y=True)),
    "wine": (KernelClassifier(**RIDGE), load_wine(return_X_y=True)),
    "cancer": (KernelClassifier(loss="squared", **RIDGE), load_breast_cancer(return_X_y=True)),
    "moons": (KernelClassifier("gaussian", **RIDGE), make_moons(150, noise=0.2, random_state=0)),
    "moons, process": (GaussianProcessClassifier(n_restarts=0), make_moons(100, noise=0.2, random_state=0)),
}

BAD = {
    "noise": (KernelRidge(alpha=1e-3), noise(), "no better than the mean"),
    "noise, huber": (KernelRegressor(loss="huber", alpha=1e-3), noise(), "no better than the mean"),
    "noise, process": (GaussianProcessRegressor(n_restarts=0), noise(), "no better than the mean"),
    "noise, quantiles": (KernelRegressor(loss="quantile", quantiles=[0.5], alpha=1e-3), noise(), "no better than"),
    "noise, landmarks": (KernelRidge(alpha=1e-6, solver="nystrom", n_landmarks=60), noise(), "no better than the mean"),
    "coins": (KernelClassifier(alpha=1e-3), coins(), "no better than the shares of the classes"),
    "coins, process": (GaussianProcessClassifier(n_restarts=0), coins(), "no better than the shares of the classes"),
    "a line, too short": (
        KernelRidge(Laplace(0.3), **RIDGE),
        make_regression(150, 5, noise=1.0, random_state=0),
        "a linear model predicts better",
    ),
    "mixed units": (KernelRidge(Gaussian(2.0), **RIDGE), mixed(), "differ too much in units"),
    "mixed units, median": (KernelRidge(Gaussian("median"), **RIDGE), mixed(), "differ too much in units"),
    "mixed units, classes": (
        KernelClassifier(Gaussian(2.0), **RIDGE),
        (mixed()[0], (mixed()[1] > 0).astype(int)),
        "differ too much in units",
    ),
    "far from zero": (KernelRidge(alpha="auto", fit_intercept=False), diabetes(1000.0), "use fit_intercept=True"),
    "far from zero, huber": (
        KernelRegressor(loss="huber", fit_intercept=False, alpha=1.0),
        diabetes(1000.0),
        "use fit_intercept=True",
    ),
    "too short a path": (
        KernelRidge("gaussian", alpha="auto", alphas=[10.0, 100.0], fit_intercept=True),
        wave(),
        "smallest of its path and the error still falls",
    ),
    "too large a path": (
        KernelRidge("gaussian", alpha="auto", alphas=[1e-9, 1e-6], fit_intercept=True),
        (WAVE, wave()[1] + 2 * NOISE),
        "largest of its path and the error still falls",
    ),
    "zero kernel": (KernelRidge(Gaussian(1e-3), **RIDGE), wave(), "zero between different rows"),
    "constant kernel": (KernelRidge(Gaussian(1e6), alpha=1.0), wave(), "same for all pairs of rows"),
    "a rare class": (KernelClassifier(**RIDGE), rare(), "class 2 (12 rows) is never predicted"),
    "copies": (KernelRidge("gaussian", **RIDGE), twice(wave()), "rows repeat others"),
    "copies of labels": (KernelClassifier(**RIDGE), twice(load_wine(return_X_y=True)), "rows repeat others"),
    "the target": (KernelRidge(**RIDGE), with_column(diabetes(), lambda y: 3 * y - 2), "'10' alone determines y"),
    "the target upside down": (
        KernelRidge(**RIDGE),
        with_column(wave(), lambda y: -(y**3)),
        "'2' alone determines y",
    ),
    "the target after tuning": (KernelRidge(tune=True), with_column(wave(), np.exp), "'2' alone determines y"),
    "one in a hundred": (KernelRidge(**RIDGE), extreme(), "use KernelClassifier"),
    "one in a hundred, classes": (KernelClassifier(**RIDGE), extreme(), "class 1.0 (5 rows) is never predicted"),
    "copies, process": (GaussianProcessRegressor(n_restarts=0), twice(wave()), "rows repeat others"),
    "an order of the target": (KernelRidge(**RIDGE), with_column(wave(), np.exp), "'2' alone determines y"),
    "nearly the target": (
        KernelRidge(**RIDGE),
        with_column(
            (np.random.default_rng(1).normal(size=(200, 3)), np.random.default_rng(2).normal(size=200)),
            lambda y: y + 0.1 * np.random.default_rng(3).normal(size=200),
        ),
        "'3' alone explains 9",
    ),
    "a code of the target": (
        KernelRidge(**RIDGE),
        with_column((WAVE, np.round(wave()[1])), lambda y: (7 * y) % 11),
        "'2' alone determines y",
    ),
    "labels by another name": (
        KernelClassifier(**RIDGE),
        with_column(load_iris(return_X_y=True), lambda y: 5 - y),
        "'4' alone determines y",
    ),
    "a machine that sees the target": (
        RFMRegressor(max_iter=2),
        with_column(make_friedman1(120, random_state=0), lambda y: 2 * y),
        "'x10' alone determines y",
    ),
    "labels 0 and 1": (KernelRidge(**RIDGE), make_moons(100, noise=0.2, random_state=0), "use KernelClassifier"),
    "labels 0, 1, 2": (KernelRegressor(**RIDGE), load_iris(return_X_y=True), "use KernelClassifier"),
    "a process of labels": (
        GaussianProcessRegressor(n_restarts=0),
        make_classification(100, 4, random_state=0),
        "use KernelClassifier",
    ),
    "a process that doubts too much": (
        GaussianProcessRegressor(Gaussian(1.0), noise=4.0, tune=False),
        wave(),
        "too wide",
    ),
}

KNOWN = ("irrelevant", "bound", "learning features hardly helped", "quantiles crossed")
"""What is worth a look and says nothing of the quality of predictions."""


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", GOOD)
def test_no_alarm_on_a_good_fit(name):
    model, (X, y) = GOOD[name]
    report = model.fit(X, y).report()
    assert not [words for words in report.concerns if not any(known in words for known in KNOWN)]
    assert {"R2", "log loss", "score"} & set(report.as_dict())
    assert all(line == "" or len(line) < 400 for line in str(report).splitlines())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", BAD)
def test_an_alarm_on_a_bad_fit(name):
    model, (X, y), words = BAD[name]
    report = model.fit(X, y).report()
    assert any(words in concern for concern in report.concerns), str(report)


def test_a_regression_refuses_labels_that_are_text():
    X, y = load_iris(return_X_y=True)
    for model in (KernelRidge(), KernelRegressor(), GaussianProcessRegressor(), RFMRegressor()):
        with pytest.raises(InputError, match="KernelClassifier"):
            model.fit(X, np.array(["setosa", "versicolor", "virginica"])[y])


def test_the_error_and_r2_are_those_of_the_rows_left_out():
    X, y = diabetes()
    model = KernelRidge(**RIDGE).fit(X[:150], y[:150])
    left = np.array(
        [
            KernelRidge(alpha=model.alpha_, kernel=model.kernel_, fit_intercept=True)
            .fit(np.delete(X[:150], i, 0), np.delete(y[:150], i))
            .predict(X[i : i + 1])[0]
            for i in range(150)
        ]
    )
    mean = np.array([np.delete(y[:150], i).mean() for i in range(150)])
    lines = model.report().as_dict()
    r2 = 1 - np.sum((y[:150] - left) ** 2) / np.sum((y[:150] - mean) ** 2)
    assert float(lines["R2"].split()[0]) == pytest.approx(r2, abs=1e-3)
    assert float(lines["error"].split()[0]) == pytest.approx(np.sqrt(np.mean((y[:150] - left) ** 2)), rel=1e-3)


@pytest.mark.parametrize("solver", ["cholesky", "pcg"])
def test_many_rows_are_judged_by_some_of_them(monkeypatch, solver):
    monkeypatch.setattr(account, "MOST_LEFT_OUT", 150)
    monkeypatch.setattr(account, "SOME_ROWS", 120)
    X, y = wave()
    report = KernelRidge("gaussian", alpha=0.01, fit_intercept=True, solver=solver).fit(X, y).report()
    assert "of a fit to 120 of 200 rows" in report.as_dict()["R2"]
    assert not report.concerns


def test_a_stream_is_judged_too_and_so_is_its_file(tmp_path):
    X, y = wave()
    model = KernelRidge("gaussian", alpha=1e-3, solver="nystrom", n_landmarks=30).fit(ArrayRows(X, y))
    assert float(model.report().as_dict()["R2"].split()[0]) > 0.9
    model.save(tmp_path / "model")
    assert str(mercer.load(tmp_path / "model").report()) == str(model.report())
    bad = KernelRidge(alpha=1e-6, solver="nystrom", n_landmarks=60).fit(ArrayRows(*noise()))
    assert any("no better than the mean" in words for words in bad.report().concerns)


def test_a_report_of_ordered_rows_judges_forecasts_and_not_only_rows_between_others():
    t = np.arange(120.0).reshape(-1, 1)
    trend, wave = 0.1 * t[:, 0] + np.sin(t[:, 0] / 5), np.sin(t[:, 0]) * np.cos(t[:, 0] + 0.5)
    far = KernelRidge().fit(t, trend, order=t[:, 0]).report()
    assert any("later rows are predicted worse" in words for words in far.concerns)
    assert float(far.as_dict()["forecasts"].split()[1]) < 0.8
    near = KernelRidge("gaussian").fit(np.c_[np.sin(t), np.cos(t)], wave, order=t[:, 0]).report()
    assert not near.concerns
    assert "forecasts" not in KernelRidge().fit(t, trend).report().as_dict()
