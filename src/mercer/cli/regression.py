"""What a fit to rows that are read in parts was asked for, and what it found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from mercer.cli.model import TableModel
from mercer.cli.problem import Problem, quoted
from mercer.cli.scores import Score
from mercer.estimators import KernelRidge

RIDGE_ALPHAS = np.logspace(-4, 5, 46)


@dataclass(frozen=True)
class Settings:
    """What the user may choose."""

    kernels: tuple[str, ...] = ("laplace",)
    alpha: float | str = "auto"
    tune: bool = True
    standardize: bool = True
    test_fraction: float = 0.2
    seed: int = 0
    memory: int | None = None
    solver: str = "auto"
    landmarks: int | None = None
    checkpoint: Path | None = None
    resume: bool = False
    model: str = "kernel"
    cv: int = 0


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
