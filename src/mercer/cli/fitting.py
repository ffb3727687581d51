"""The job of `mercer fit` for rows in memory: fit, and compare with simpler models on rows held out."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss
from sklearn.model_selection import KFold, StratifiedKFold

from mercer.cli.dials import CLEAR, FEWEST_FOR_INTERVALS, LEVEL
from mercer.cli.frame_model import FrameModel, marks_of
from mercer.cli.regression import RIDGE_ALPHAS, Settings
from mercer.cli.scores import Score, score, verdict
from mercer.cli.task import CLASSIFICATION, Task, split
from mercer.estimators import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelClassifier,
    KernelRidge,
    TabularEstimator,
)


@dataclass(frozen=True)
class ClassScore:
    """Accuracy and log loss of probabilities, rows counted with their weights."""

    accuracy: float
    log_loss: float


@dataclass(frozen=True)
class Tested:
    """What the models predict for test rows, and how good that is."""

    rows: Task
    predictions: dict[str, np.ndarray]
    scores: dict[str, Any]
    verdict: str
    confusion: tuple[tuple[str, ...], np.ndarray] | None = None
    inside: float | None = None
    width: float | None = None


@dataclass(frozen=True)
class Fitted:
    """What was found, and how; `counts` are the rows of training and test where `train` and `test` are some of them."""

    model: FrameModel
    settings: Settings
    train: Task
    loo: Score | None
    loo_predictions: np.ndarray | None
    tried: dict[str, float]
    test: Tested | None
    seconds: float
    notes: tuple[str, ...]
    folds: tuple[Any, ...] = field(default=())
    counts: tuple[int, int] | None = None
    reading: str = "all at once"

    @property
    def n_rows(self) -> tuple[int, int]:
        """The rows to learn from and those held out."""
        return self.counts or (len(self.train), 0 if self.test is None else len(self.test.rows))

    @property
    def estimator(self) -> Any:
        """The estimator inside."""
        return self.model.model.estimator_

    @property
    def name(self) -> str:
        """What to call the model."""
        return NAMES[type(self.estimator)]


NAMES: dict[type, str] = {
    KernelRidge: "kernel ridge",
    KernelClassifier: "kernel classifier",
    GaussianProcessRegressor: "Gaussian process",
    GaussianProcessClassifier: "Gaussian process",
}


def fit_task(task: Task, settings: Settings, step: Callable[[str], None] = lambda text: None) -> Fitted:
    """Fit the best of the kernels to the training rows; `step` is told what is going on."""
    start = time.perf_counter()
    train, held_out = split(task, settings.test_fraction, settings.seed)
    tried: dict[str, float] = {}
    best: TabularEstimator | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name in settings.kernels:
            step(f"{'tuning' if settings.tune else 'fitting'} the {name} kernel on {len(train):,} rows")
            candidate = _fit(TabularEstimator(estimator_for(task.kind, name, settings)), train)
            tried[name] = _own_error(candidate, train)
            if best is None or tried[name] <= min(tried.values()):
                best = candidate
    assert best is not None
    report = best.report()
    notes = [*task.notes, *(f"{t.name!r} is left out: {t.why}." for t in best.encoder_.left_out)]
    notes += [str(w.message) for w in caught if not issubclass(w.category, DeprecationWarning)]
    notes += [concern for concern in report.concerns if "is left out" not in concern]
    loo_predictions = getattr(best.estimator_, "loo_predictions_", None)
    loo = None if loo_predictions is None else score(train.y, loo_predictions, train.weights)
    step("comparing with simpler models")
    tested = None if held_out is None else tested_on(best, train, held_out, intervals=True)
    folds = _cross_validated(best, task, settings, step)
    model = FrameModel(best, task.target, task.weight_column, marks_of(best, train.table))
    seconds = time.perf_counter() - start
    return Fitted(
        model, settings, train, loo, loo_predictions, tried, tested, seconds, tuple(dict.fromkeys(notes)), folds
    )


def estimator_for(kind: str, kernel: str, settings: Settings) -> Any:
    """The estimator of a task, not fitted yet."""
    shared: dict[str, Any] = {"memory_budget": settings.memory, "random_state": settings.seed}
    if settings.model == "gp":
        process: Any = GaussianProcessClassifier if kind == CLASSIFICATION else GaussianProcessRegressor
        return process(kernel, **shared)
    chosen: dict[str, Any] = {
        "kernel": kernel,
        "alpha": settings.alpha,
        "fit_intercept": True,
        "tune": settings.tune,
        **shared,
    }
    if kind != CLASSIFICATION:
        return KernelRidge(solver=settings.solver, **chosen)
    known = KernelClassifier().get_params()
    return KernelClassifier(**{name: value for name, value in chosen.items() if name in known})


def tested_on(model: TabularEstimator, train: Task, test: Task, *, intervals: bool) -> Tested:
    """The model, a linear one and a constant on rows that none of them has seen."""
    name, encoder = NAMES[type(model.estimator_)], model.encoder_
    X, X_test = encoder.encode(train.table), encoder.encode(test.table)
    if train.kind == CLASSIFICATION:
        return _classes_tested(name, model, train, test, X, X_test)
    mean = float(np.average(train.y, weights=train.weights))
    ridge = RidgeCV(alphas=RIDGE_ALPHAS).fit(X, train.y, sample_weight=train.weights)
    predictions = {
        name: model.predict(test.table),
        "ridge regression": ridge.predict(X_test),
        "mean": np.full(len(test), mean),
    }
    scores = {who: score(test.y, values, test.weights) for who, values in predictions.items()}
    words = verdict(test.y, predictions[name], predictions["ridge regression"], mean, test.weights)
    words = words.replace("Kernel ridge", name[0].upper() + name[1:]).replace("kernel ridge", name)
    if len(train) < FEWEST_FOR_INTERVALS or not intervals:
        return Tested(test, predictions, scores, words)
    low, high = model.predict_interval(test.table, LEVEL)
    inside = float(np.average((low <= test.y) & (test.y <= high), weights=test.weights))
    width = float(np.average(high - low, weights=test.weights))
    return Tested(test, predictions, scores, words, None, inside, width)


def _classes_tested(
    name: str, model: TabularEstimator, train: Task, test: Task, X: np.ndarray, X_test: np.ndarray
) -> Tested:
    classes = model.classes_
    unknown = sorted(set(test.y) - set(classes))
    if unknown:
        test = test.take(np.flatnonzero(np.isin(test.y, classes)))
        X_test = model.encoder_.encode(test.table)
    linear = LogisticRegression(max_iter=1000).fit(X, train.y, sample_weight=train.weights)
    shares = np.array([np.average(train.y == c, weights=train.weights) for c in classes])
    p = {
        name: np.asarray(model.predict_proba(test.table)),
        "logistic regression": linear.predict_proba(X_test),
        "class shares": np.tile(shares, (len(test), 1)),
    }
    scores = {who: class_score(test.y, q, classes, test.weights) for who, q in p.items()}
    found = classes[p[name].argmax(1)]
    confusion = confusion_matrix(test.y, found, labels=classes, sample_weight=test.weights)
    losses = {
        who: -np.log(np.maximum(q[np.arange(len(test)), np.searchsorted(classes, test.y)], 1e-15))
        for who, q in p.items()
    }
    return Tested(test, p, scores, class_verdict(name, losses), (tuple(map(str, classes)), confusion))


def class_score(y: np.ndarray, p: np.ndarray, classes: np.ndarray, weights: np.ndarray | None) -> ClassScore:
    """Compare probabilities with the truth.

    >>> class_score(np.array(["a", "b"]), np.array([[0.5, 0.5], [0.25, 0.75]]), np.array(["a", "b"]), None).accuracy
    1.0
    """
    accuracy = accuracy_score(y, classes[p.argmax(1)], sample_weight=weights)
    return ClassScore(float(accuracy), float(log_loss(y, p, labels=classes, sample_weight=weights)))


def class_verdict(name: str, losses: dict[str, np.ndarray]) -> str:
    """Which model to prefer, from the log loss of each test row."""
    ours, title = losses[name], name[0].upper() + name[1:]

    def gain(other: str) -> float:
        drop = losses[other] - ours
        spread = drop.std() / np.sqrt(len(drop))
        return float(drop.mean() / spread) if spread > 0 else 0.0

    if gain("logistic regression") < -CLEAR:
        return f"Logistic regression wins: the log loss of the {name} is larger. A linear model does better here."
    if gain("class shares") < CLEAR:
        return (
            f"{title} is not clearly better than the shares of the classes: these features say little about the "
            "target, or there are too few rows."
        )
    if gain("logistic regression") > CLEAR:
        return f"{title} wins: its log loss is clearly below that of logistic regression: the borders are not linear."
    return (
        f"No clear winner: {len(ours):,} test rows cannot tell the {name} from logistic regression. "
        "A linear model does about as well here."
    )


def _fit(model: TabularEstimator, task: Task) -> TabularEstimator:
    weights = {} if task.weights is None else {"sample_weight": task.weights}
    return model.fit(task.table, task.y, **weights)


def _own_error(model: TabularEstimator, train: Task) -> float:
    """What kernels are compared by: an error at rows left out, or minus the evidence."""
    inner = model.estimator_
    if isinstance(inner, KernelRidge) and hasattr(inner, "loo_predictions_"):
        return score(train.y, inner.loo_predictions_, train.weights).rmse
    if isinstance(inner, KernelClassifier) and inner.alpha_path_ is not None:
        return float(inner.alpha_path_.errors.min())
    return -float(getattr(inner, "log_marginal_likelihood_value_", getattr(inner, "log_marginal_likelihood_", np.nan)))


def _cross_validated(
    model: TabularEstimator, task: Task, settings: Settings, step: Callable[[str], None]
) -> tuple[Any, ...]:
    """The scores of the same estimator on rows of each of some folds, fitted to the others."""
    if not settings.cv:
        return ()
    folds: Any = StratifiedKFold if task.kind == CLASSIFICATION else KFold
    found: list[Any] = []
    for i, (rows, others) in enumerate(
        folds(settings.cv, shuffle=True, random_state=settings.seed).split(task.y, task.y)
    ):
        step(f"fold {i + 1} of {settings.cv}")
        train, test = task.take(rows), task.take(others)
        fitted = _fit(clone(model), train)
        if task.kind == CLASSIFICATION:
            p = np.asarray(fitted.predict_proba(test.table))
            found.append(class_score(test.y, p, fitted.classes_, test.weights))
        else:
            found.append(score(test.y, fitted.predict(test.table), test.weights))
    return tuple(found)
