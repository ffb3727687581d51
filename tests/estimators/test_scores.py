"""Scores of tensors that numpy cannot read, as on a GPU, are those of the same numbers in numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.base import is_classifier
from sklearn.metrics import accuracy_score, mean_pinball_loss, r2_score

from mercer import GaussianProcessClassifier, GaussianProcessRegressor, KernelClassifier, KernelRegressor, KernelRidge
from mercer.kernels import Gaussian

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
Y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=60)
LABELS = (Y > 0).astype(np.int64)
WEIGHTS = rng.uniform(0.1, 1.0, size=60).round(3)


class Away(torch.Tensor):
    """A tensor that has to be asked for its numbers."""

    def __array__(self, dtype=None):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


def away(values):
    return torch.from_numpy(values).as_subclass(Away)


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (KernelRidge(Gaussian()), Y),
        (KernelRidge(Gaussian()), np.c_[Y, Y**2]),
        (KernelRegressor(Gaussian(), loss="huber"), Y),
        (KernelRegressor(Gaussian(), loss="quantile", quantiles=[0.2, 0.7]), Y),
        (KernelClassifier(Gaussian()), LABELS),
        (GaussianProcessRegressor(n_restarts=0), Y),
        (GaussianProcessClassifier(tune=False), LABELS),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else str(value.shape),
)
def test_scores_of_tensors_elsewhere(model, target):
    model.fit(X, target)
    for weights in (None, WEIGHTS):
        there = None if weights is None else away(weights)
        score = model.score(away(X), away(target), sample_weight=there)
        assert isinstance(score, float)
        assert score == pytest.approx(expected(model, target, weights), abs=1e-12)
        assert score > 0.1


def expected(model, target, weights):
    predicted = model.predict(X)
    if is_classifier(model):
        return accuracy_score(target, predicted, sample_weight=weights)
    if predicted.shape == target.shape:
        return r2_score(target, predicted, sample_weight=weights)
    counts = np.ones(60, dtype=int) if weights is None else (1000 * weights).round().astype(int)
    levels = model.quantiles_
    constant = np.quantile(target.repeat(counts), levels, method="inverted_cdf")
    losses = [
        sum(mean_pinball_loss(target, values[i], sample_weight=weights, alpha=q) for i, q in enumerate(levels))
        for values in (predicted.T, constant[:, None].repeat(60, 1))
    ]
    return 1 - losses[0] / losses[1]


def test_constant_quantiles_heed_the_weights():
    model = KernelRegressor(Gaussian(), loss="quantile", quantiles=[0.2, 0.7]).fit(X, Y)
    repeats = rng.integers(1, 4, size=60)
    again = model.score(X.repeat(repeats, axis=0), Y.repeat(repeats))
    assert model.score(X, Y, sample_weight=repeats) == pytest.approx(again, abs=1e-12)
