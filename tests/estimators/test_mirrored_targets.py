"""Predictions follow y -> -y and y -> y + c, also where more than one intercept is best: the middle one is taken."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from sklearn.svm import SVC, SVR

from mercer.estimators import KernelClassifier, KernelRegressor
from mercer.kernels import Gaussian
from mercer.losses import LOSSES, EpsilonInsensitive, Huber, Loss, PiecewiseLinear, Quantile, Squared
from mercer.solvers.objective import Objective


@dataclass(frozen=True)
class DeadZone(Loss):
    """A smooth loss that is zero in an interval."""

    def value(self, y, f):
        return ((y - f).abs() - 0.5).clamp(min=0.0).square()


LABELLED = {name for name, loss in LOSSES.items() if name in ("logistic", "multinomial", "hinge", "squared_hinge")}
REGRESSIONS = [Squared(), Huber(delta=0.05), Quantile(), EpsilonInsensitive(epsilon=0.5), DeadZone()]
SEEDS = range(6)


def data(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 14))
    return rng.normal(size=(n, 2)), 3 * rng.normal(size=n)


def predictions(loss, X, y, alpha, **settings):
    settings = {"fit_intercept": True, "tol": 1e-10} | settings
    return KernelRegressor(Gaussian(1.0), loss=loss, alpha=alpha, **settings).fit(X, y).predict(X)


def test_every_loss_for_numbers_is_looked_at():
    assert {loss.name for loss in REGRESSIONS if loss.name in LOSSES} | LABELLED == set(LOSSES)


@pytest.mark.parametrize("solver", ["dense", "pcg", "nystrom"])
@pytest.mark.parametrize("alpha", [0.02, 0.5, 5.0])
@pytest.mark.parametrize("loss", REGRESSIONS, ids=repr)
def test_predictions_follow_mirrored_and_shifted_targets(loss, alpha, solver):
    for seed in SEEDS:
        X, y = data(seed)
        plain = predictions(loss, X, y, alpha, solver=solver)
        mirrored = predictions(loss, X, -y, alpha, solver=solver)
        shifted = predictions(loss, X, y + 5.0, alpha, solver=solver)
        np.testing.assert_allclose(-mirrored, plain, atol=1e-7)
        np.testing.assert_allclose(shifted - 5.0, plain, atol=1e-7)


def test_other_quantiles_mirror_each_other():
    for seed in SEEDS:
        X, y = data(seed)
        low, high = predictions(Quantile(0.25), X, y, 1.0), predictions(Quantile(0.75), X, -y, 1.0)
        np.testing.assert_allclose(low, -high, atol=1e-7)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 5.0])
def test_the_intercept_is_that_of_libsvm(alpha):
    for seed in range(20):
        X, y = data(seed)
        settings = {"kernel": Gaussian(1.0), "C": 1 / (2 * alpha), "tol": 1e-10}
        ours = predictions(EpsilonInsensitive(0.5), X, y, alpha)
        np.testing.assert_allclose(ours, SVR(epsilon=0.5, **settings).fit(X, y).predict(X), atol=1e-5)
        labels = y > np.median(y)
        model = KernelClassifier(Gaussian(1.0), loss="hinge", alpha=alpha, fit_intercept=True, tol=1e-10)
        svc = SVC(**settings).fit(X, labels)
        np.testing.assert_allclose(model.fit(X, labels).decision_function(X), svc.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("loss", sorted(LABELLED - {"multinomial"}))
def test_decisions_change_their_sign_with_the_labels(loss):
    for seed in SEEDS:
        X, y = data(seed)
        labels = y > np.median(y)
        model = KernelClassifier(Gaussian(1.0), loss=loss, alpha=0.5, fit_intercept=True, tol=1e-10)
        decisions = model.fit(X, labels).decision_function(X)
        np.testing.assert_allclose(-model.fit(X, ~labels).decision_function(X), decisions, atol=1e-7)


@pytest.mark.parametrize("loss", REGRESSIONS, ids=repr)
def test_the_best_intercept_is_the_middle_of_all(loss):
    targets = torch.tensor([[-3.0], [-2.0], [1.0], [4.0]], dtype=torch.float64)
    objective = Objective(loss, targets, alpha=1.0, intercept=True)
    grid = torch.linspace(-4, 4, 80_001, dtype=torch.float64)
    values = torch.stack([objective.losses(b.expand(4, 1)).sum() for b in grid])
    best = grid[values <= values.min() + (1e-12 if isinstance(loss, PiecewiseLinear) else 0.0) + 1e-14]
    found = float(objective.best_intercept(torch.zeros(4, 1, dtype=torch.float64)))
    assert found == pytest.approx(float(best[0] + best[-1]) / 2, abs=2e-4)
