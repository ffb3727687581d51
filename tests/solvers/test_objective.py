"""The best intercept: least over all others, found with few derivatives."""

import pytest
import torch

from mercer.losses import LOSSES, EpsilonInsensitive, Hinge, Quantile, get_loss
from mercer.solvers.dual import Smoothed
from mercer.solvers.objective import Objective

SCALAR = [name for name in LOSSES if name != "multinomial"]


def problem(loss, columns=3, n=40):
    generator = torch.Generator().manual_seed(0)
    y, f = torch.randn(2, n, columns, generator=generator, dtype=torch.float64)
    weights = torch.randint(0, 3, (n,), generator=generator).double()
    targets = y.sign() if loss.name in ("logistic", "hinge", "squared_hinge") else y
    return Objective(loss, targets, 1.0, weights, True, columns), f


class Counted:
    """A loss that counts how often its derivative is asked for."""

    def __init__(self, loss):
        self.loss, self.calls = loss, 0

    def __getattr__(self, name):
        return getattr(self.loss, name)

    def gradient(self, y, f):
        self.calls += 1
        return self.loss.gradient(y, f)


@pytest.mark.parametrize("name", SCALAR)
def test_no_other_intercept_has_a_smaller_loss(name):
    objective, f = problem(get_loss(name))
    least = objective.losses(f + objective.best_intercept(f)).sum(0)
    for b in torch.linspace(-4, 4, 2001).double():
        assert bool((least <= objective.losses(f + b).sum(0) + 1e-9).all())


def test_a_smoothed_loss_has_a_best_intercept_at_any_width():
    objective, f = problem(Hinge())
    for delta in (1.0, 1e-3, 1e-8):
        smooth = Smoothed.of(objective, delta, None)
        rounded = Objective(smooth, objective.targets, 1.0, objective.weights, True, 3)
        b = rounded.best_intercept(f)
        below, above = (rounded.gradient(f + b + step).sum(0) for step in (-1e-9, 1e-9))
        assert bool((below <= 1e-6).all() and (above >= -1e-6).all())


@pytest.mark.parametrize("name", ["squared", "huber", "logistic", "squared_hinge"])
def test_a_smooth_loss_needs_few_derivatives(name):
    objective, f = problem(get_loss(name))
    counted = Counted(objective.loss)
    Objective(counted, objective.targets, 1.0, objective.weights, True, 3).best_intercept(f)
    assert counted.calls <= 20


@pytest.mark.parametrize("loss", [Hinge(), Quantile(0.3), EpsilonInsensitive(0.2)])
def test_a_loss_with_kinks_needs_no_derivative(loss, monkeypatch):
    objective, f = problem(loss)
    monkeypatch.setattr(type(loss), "gradient", None)
    assert objective.best_intercept(f).shape == (3,)


def test_of_equally_good_intercepts_the_middle_is_taken():
    y = torch.tensor([[0.0], [1.0]]).double()
    assert float(Objective(Quantile(0.5), y, 1.0, None, True).best_intercept(torch.zeros_like(y))) == 0.5


def test_labels_of_one_sign_have_a_best_intercept():
    y = torch.ones(3, 1).double()
    f = torch.tensor([[0.0], [0.5], [-1.0]]).double()
    for sign in (1.0, -1.0):
        objective = Objective(Hinge(), sign * y, 1.0, None, True)
        assert objective.loss_sum(f + objective.best_intercept(f)) == 0.0
