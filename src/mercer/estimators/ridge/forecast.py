"""What a full ridge regression says of itself and of more rows: diagnostics, learning curves, rows needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from mercer.core.memory import require, resolve_budget
from mercer.data.sample import Sample
from mercer.estimators.ridge.fit import RidgeFit
from mercer.estimators.ridge.full import system_of
from mercer.solvers.choose import memory_needed
from mercer.solvers.landmarks import row_keys
from mercer.theory import Diagnostics, Forecaster, diagnostics, forecasters

TUNED = "the kernel was tuned on these rows, so that errors of fits to fewer of them are too small"


def ridge_diagnostics(fit: RidgeFit) -> list[Diagnostics]:
    """The diagnostics of each target."""
    gram, targets, weights, _ = _problem(fit, "diagnostics")
    alphas = np.broadcast_to(np.atleast_1d(fit.given_alpha), targets.shape[1])
    return [diagnostics(gram, y, float(a), weights) for y, a in zip(targets.T, alphas, strict=True)]


def ridge_forecasters(fit: RidgeFit) -> list[Forecaster]:
    """The forecaster of each target."""
    gram, targets, weights, duplicates = _problem(fit, "A forecast")
    spectral = True if fit.tuning is None else TUNED
    seed = fit.plan.settings.seed
    return forecasters(gram, list(targets.T), weights, duplicates=duplicates, spectral=spectral, random_state=seed)


def _problem(fit: RidgeFit, what: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, float]:
    """The Gram matrix, targets and weights of the different rows, and the share of rows that repeat others."""
    sample = fit.all_rows(what).positive()[0]
    n = len(sample)
    place = fit.plan.place
    advice = "Fit and ask a random part of the rows, and forecast from there."
    needed = memory_needed(n, "eigh", sample.targets.shape[1])
    require(needed, resolve_budget(place.memory_budget, place.device), f"the eigendecomposition of {n:,} rows", advice)
    gram = system_of(fit.plan, replace(sample, weights=None), torch.float64).plain.dense().cpu().numpy()
    kept, targets, weights = _merged(sample)
    gram = gram[np.ix_(kept, kept)]
    if fit.plan.settings.fit_intercept:
        gram, targets = _centred(gram, targets, weights)
    return gram, targets, weights, 1 - len(kept) / n


def _centred(gram: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The Gram matrix and the targets less weighted means: what is left for the function beside the intercept."""
    share = np.full(len(gram), 1 / len(gram)) if weights is None else weights / weights.sum()
    means = gram @ share
    return gram - means - (means - share @ means)[:, None], targets - share @ targets


def _merged(sample: Sample) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """One row of each kind, with the mean of its targets and the sum of its weights."""
    targets = sample.targets.cpu().numpy()
    weights = None if sample.weights is None else sample.weights.cpu().numpy()
    keys = np.arange(len(sample)) if sample.square else row_keys(sample.rows).numpy()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if len(first) == len(keys):
        return np.arange(len(keys)), targets, weights
    w = np.ones(len(keys)) if weights is None else weights
    total = np.bincount(inverse, w)
    sums = np.column_stack([np.bincount(inverse, w * y) for y in targets.T])
    return first, sums / total[:, None], total
