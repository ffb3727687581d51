"""The main job: choose a kernel and alpha by leave-one-out, fit, and compare with simpler models on test rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from sklearn.linear_model import RidgeCV

from mercer.cli.model import TableModel
from mercer.cli.problem import Problem, quoted, split
from mercer.cli.scores import Score, score, verdict
from mercer.estimators import KernelRidge

RIDGE_ALPHAS = np.logspace(-4, 5, 46)


@dataclass(frozen=True)
class Settings:
    """What the user may choose."""

    kernels: tuple[str, ...] = ("laplace",)
    alpha: float | str = "loo"
    tune: bool = True
    standardize: bool = True
    test_fraction: float = 0.2
    seed: int = 0
    memory: int | None = None
    solver: str = "auto"
    landmarks: int | None = None
    checkpoint: Path | None = None
    resume: bool = False


class TrainingRows(Protocol):
    """The names and the number of the rows learned from."""

    @property
    def features(self) -> tuple[str, ...]: ...
    @property
    def target(self) -> str: ...
    @property
    def weight_column(self) -> str | None: ...
    @property
    def source(self) -> str: ...
    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Comparison:
    """Scores of three models on the same `count` test rows, and their predictions for `rows`, all or some of them."""

    rows: Problem
    predictions: dict[str, np.ndarray]
    scores: dict[str, Score]
    verdict: str
    count: int


@dataclass(frozen=True)
class Outcome:
    """What was found, and how."""

    model: TableModel
    settings: Settings
    train: TrainingRows
    loo: Score | None
    loo_predictions: np.ndarray | None
    tried: dict[str, float]
    test: Comparison | None
    seconds: float
    notes: tuple[str, ...]
    reading: str = "all at once"

    @property
    def regressor(self) -> KernelRidge:
        """The fitted estimator."""
        return self.model.regressor


def regress(problem: Problem, settings: Settings, step: Callable[[str], None] = lambda text: None) -> Outcome:
    """Fit the best of the kernels to the training rows; `step` is told what is going on."""
    start = time.perf_counter()
    train, held_out = split(problem, settings.test_fraction, settings.seed)
    center, scale, notes = scaling(train, settings.standardize)
    mean = float(np.average(train.y, weights=train.weights))
    Z, y = (train.X - center) / scale, train.y - mean

    tried: dict[str, float] = {}
    best: KernelRidge | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name in settings.kernels:
            step(f"{'tuning' if settings.tune else 'fitting'} the {name} kernel on {len(train):,} rows")
            candidate = _estimator(name, settings).fit(Z, y, sample_weight=train.weights)
            tried[name] = score(y, candidate.loo_predictions_, train.weights).rmse
            if best is None or tried[name] <= min(tried.values()):
                best = candidate
    assert best is not None
    notes += list(problem.notes)
    notes += [str(warning.message) for warning in caught if not issubclass(warning.category, DeprecationWarning)]
    notes += [concern for concern in best.report().concerns if concern not in notes]
    model = TableModel(best, train.features, train.target, center, scale, mean, train.weight_column)
    loo_predictions = best.loo_predictions_ + mean
    loo = score(train.y, loo_predictions, train.weights)
    step("comparing with ridge regression")
    test = None if held_out is None else _compare(model, train, held_out)
    seconds = time.perf_counter() - start
    return Outcome(model, settings, train, loo, loo_predictions, tried, test, seconds, tuple(dict.fromkeys(notes)))


def _estimator(kernel: str, settings: Settings) -> KernelRidge:
    return KernelRidge(
        kernel,
        alpha=settings.alpha,
        tune=settings.tune,
        solver=settings.solver,
        memory_budget=settings.memory,
        random_state=settings.seed,
    )


def scaling(train: Problem, standardize: bool) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """The centre and scale of each feature, and a note on those that are constant."""
    d = train.X.shape[1]
    if not standardize:
        return np.zeros(d), np.ones(d), []
    center = np.average(train.X, axis=0, weights=train.weights)
    scale = np.sqrt(np.average((train.X - center) ** 2, axis=0, weights=train.weights))
    constant = np.ptp(train.X, axis=0) == 0
    scale[constant | (scale == 0)] = 1.0
    names = [name for name, same in zip(train.features, constant, strict=True) if same]
    return center, scale, [f"Constant in every training row, so of no use: {quoted(names)}."] if names else []


def _compare(model: TableModel, train: Problem, test: Problem) -> Comparison:
    ridge = RidgeCV(alphas=RIDGE_ALPHAS)
    center, scale, _ = scaling(train, True)
    ridge.fit((train.X - center) / scale, train.y, sample_weight=train.weights)
    predictions = {
        "kernel ridge": model.predict(test.X),
        "ridge regression": ridge.predict((test.X - center) / scale),
        "mean": np.full(len(test), model.target_mean),
    }
    scores = {name: score(test.y, values, test.weights) for name, values in predictions.items()}
    words = verdict(
        test.y, predictions["kernel ridge"], predictions["ridge regression"], model.target_mean, test.weights
    )
    return Comparison(test, predictions, scores, words, len(test))
