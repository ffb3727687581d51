"""What a linear model predicts for rows left out: what every report is held against."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from torch import Tensor

from mercer.core.arrays import Points
from mercer.data.sample import Sample
from mercer.estimators.dials import LINEAR_FOLDS, MOST_ENTRIES, STEPS
from mercer.solvers.decompose import left_singular

RIDGES = 10.0 ** np.arange(-6.0, 4.5, 0.5)
"""Ridges in units of the number of rows, of standardised columns."""


def table_of(rows: Points, square: bool = False) -> np.ndarray | None:
    """The rows as a table of numbers; None for objects and for ready Gram matrices."""
    if square or not rows.is_tensor or rows.values.ndim != 2:
        return None
    return np.asarray(rows.values.detach().cpu().to(torch.float64))


def linear_left_out(sample: Sample) -> Tensor | None:
    r"""For each row (n, t) what a ridge regression with an intercept says that was fitted to the others.

    Columns are standardised. The ridge of each target is that of least error,
    :math:`e_i = r_i / (1 - h_i / \max(w_i, 1))`. None where there is no table of numbers, or a very large one.
    """
    X = table_of(sample.rows, sample.square)
    if X is None or X.size > MOST_ENTRIES or len(X) < 3:
        return None
    w = np.ones(len(X)) if sample.weights is None else sample.weights.numpy()
    size = np.abs(sample.targets.cpu().numpy()).max(axis=0)
    unit = np.where(size > 0, size, 1.0)  # squares of what is beyond 1e154 are no numbers
    Y = sample.targets.cpu().numpy() / unit
    Z, mean = _standardised(X, w), np.average(Y, axis=0, weights=w)
    root = np.sqrt(w)[:, None]
    U, s = (t.numpy() for t in left_singular(torch.from_numpy(root * Z), "The table of features"))
    inside = U.T @ (root * (Y - mean))
    best, found = np.full(Y.shape[1], np.inf), np.tile(mean, (len(Y), 1))
    for ridge in RIDGES * w.sum():
        kept = s**2 / (s**2 + ridge)
        leverage = (U**2 @ kept + w / w.sum()) / np.maximum(w, 1.0)
        residual = Y - mean - (U @ (kept[:, None] * inside)) / root
        left = residual / np.maximum(1.0 - leverage, 1e-12)[:, None]
        error = np.average(left**2, axis=0, weights=w)
        better = error < best
        best[better], found[:, better] = error[better], (Y - left)[:, better]
    return torch.from_numpy(found * unit)


def linear_probabilities(sample: Sample, classes: int) -> Tensor | None:
    """For each row the probabilities (n, classes) of a logistic regression fitted to other folds.

    Targets are codes of classes. None where there is no table of numbers, or a class has fewer rows than folds.
    """
    X, codes = table_of(sample.rows, sample.square), sample.targets[:, 0].long().numpy()
    if X is None or X.size > MOST_ENTRIES or np.bincount(codes, minlength=classes).min() < LINEAR_FOLDS:
        return None
    w = np.ones(len(X)) if sample.weights is None else sample.weights.numpy()
    folds = StratifiedKFold(LINEAR_FOLDS, shuffle=True, random_state=0)
    model = LogisticRegression(max_iter=STEPS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a rough fit is enough here
        found = cross_val_predict(
            model, _standardised(X, w), codes, cv=folds, method="predict_proba", params={"sample_weight": w}
        )
    return torch.from_numpy(np.asarray(found, dtype=np.float64))


def _standardised(X: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Columns of mean zero and deviation one; those that are constant are zero."""
    size = np.abs(X).max(axis=0)
    Z = X / np.where(size > 0, size, 1.0)
    Z = Z - np.average(Z, axis=0, weights=w)
    deviation = np.sqrt(np.average(Z**2, axis=0, weights=w))
    moving = deviation > 1e-12
    return np.where(moving, Z, 0.0) / np.where(moving, deviation, 1.0)
