"""A fit that fails or is interrupted leaves the estimator as it was."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from mercer import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelClassifier,
    KernelPCA,
    KernelRegressor,
    KernelRidge,
    MercerDecomposition,
    NystromFeatures,
    RandomFourierFeatures,
)
from mercer.core.errors import MercerError
from mercer.kernels import Callable, Gaussian

X = np.random.default_rng(0).normal(size=(40, 2))
y = np.sin(X[:, 0])
LABELS = np.where(y > 0, "up", "down")
NEW = X[:7] + 0.1

ESTIMATORS = [
    (KernelRidge(Gaussian()), y, "predict"),
    (KernelRidge(Gaussian(), solver="nystrom", n_landmarks=10), y, "predict"),
    (KernelClassifier(Gaussian()), LABELS, "predict_proba"),
    (KernelRegressor(Gaussian(), loss="huber"), y, "predict"),
    (GaussianProcessRegressor(n_restarts=0), y, "predict"),
    (GaussianProcessClassifier(n_restarts=0), LABELS, "predict_proba"),
    (KernelPCA(3, Gaussian()), None, "transform"),
    (MercerDecomposition(5, Gaussian()), None, "transform"),
    (NystromFeatures(5, Gaussian()), None, "transform"),
    (RandomFourierFeatures(6, Gaussian(), random_state=0), None, "transform"),
]


def interrupted(x, z):
    raise KeyboardInterrupt


@pytest.mark.parametrize(("model", "target", "use"), ESTIMATORS, ids=lambda value: type(value).__name__)
def test_an_earlier_fit_survives_one_that_fails(model, target, use):
    kernel = model.kernel
    model.fit(X, target)
    expected, report = getattr(model, use)(NEW), str(model.report())
    attempts = [(X, None if target is None else target[:3], model.kernel), (np.full((5, 3), np.nan), target, kernel)]
    for rows, labels, other in [*attempts[target is None :], (X[:20], target, Callable(interrupted))]:
        model.set_params(kernel=other)
        with pytest.raises((MercerError, ValueError, KeyboardInterrupt)):
            model.fit(rows, None if labels is None else labels[: len(rows)])
        model.set_params(kernel=kernel)
        np.testing.assert_array_equal(getattr(model, use)(NEW), expected)
        assert str(model.report()) == report


def test_a_first_fit_that_fails_leaves_nothing():
    model = KernelRidge(Callable(lambda x, z: -float(x @ z)))
    before = dict(vars(model))
    with pytest.raises(MercerError):
        model.fit(X, y)
    assert vars(model) == before
    with pytest.raises(NotFittedError):
        model.predict(X)
