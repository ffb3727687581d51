"""Laws of the path of alphas from one eigendecomposition."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from mercer.losses import Huber, Logistic, Multinomial, Squared
from mercer.selection import spectral_path
from mercer.selection.approximate_loo import approximate_loo
from mercer.selection.smoothed import loss_of_left_out
from mercer.selection.spectral_path import Spectral, select_alpha_of_spectrum
from mercer.solvers.full_span import FullSpan
from mercer.solvers.minimise import minimise
from mercer.solvers.objective import Objective

rng = np.random.default_rng(1)
X = rng.normal(size=(60, 2))
K = torch.from_numpy(np.exp(-((X[:, None] - X[None]) ** 2).sum(2)))
CODES = torch.from_numpy((X[:, 0] > 0).astype(float) + (X[:, 0] + X[:, 1] > 1))
VALUES = torch.from_numpy(np.sin(X[:, :1]) + 0.3 * rng.normal(size=(60, 1)))
WEIGHTS = torch.from_numpy(rng.integers(1, 4, size=60).astype(float))


def problem(loss, alpha, weights=None, intercept=True):
    targets = {True: CODES, False: VALUES}[loss.joint]
    targets = torch.sign(VALUES) if isinstance(loss, Logistic) else targets
    return Objective(loss, targets, alpha, weights, intercept, 3 if loss.joint else 1)


def left_out(span, objective, exact):
    """Predictions for rows left out at the minimum over the full span, which is theta = Phi' c and b here."""
    theta = torch.cat([span.features.T @ exact.value, torch.zeros(1, objective.outputs).double()])
    theta[-1] = (exact.fitted - span.at(theta))[0]
    return span.left_out(objective, span.around(objective, theta))


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weights"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", [Squared(), Logistic(), Multinomial(), Huber(0.3)], ids=lambda loss: loss.name)
@pytest.mark.parametrize("unknowns", [0, 250], ids=["L-BFGS", "Newton"])
def test_its_minimum_is_the_least(unknowns, loss, intercept, weights, monkeypatch):
    monkeypatch.setattr(spectral_path, "NEWTON_UNKNOWNS", unknowns)
    objective = problem(loss, 0.05, weights, intercept)
    exact = minimise(FullSpan.of(None, matrix=K.clone()), objective, tol=1e-12)
    span = Spectral.of_matrix(K.clone(), weights, intercept)
    theta = span.minimum(objective, span.around(objective))
    found = objective.loss_sum(span.at(theta)) + 0.05 * float(theta[:-1].square().sum())
    assert found == pytest.approx(exact.objective, rel=1e-9)
    shift = K @ span.coefficients(theta) - span.at(theta)
    assert torch.allclose(shift, shift.mean(0).expand_as(shift), atol=1e-5)  # the same function, but for the constant


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["alike", "weights"])
@pytest.mark.parametrize("intercept", [False, True])
def test_rows_left_out_are_exact_for_the_squared_loss(intercept, weights):
    objective = problem(Squared(), 0.05, weights, intercept)
    full = FullSpan.of(None, matrix=K.clone())
    exact = minimise(full, objective, tol=1e-12)
    found = left_out(Spectral.of_matrix(K.clone(), weights, intercept), objective, exact)
    assert torch.allclose(found, approximate_loo(full, objective, exact), atol=1e-8)


@pytest.mark.parametrize("intercept", [False, True])
def test_a_row_of_a_heavy_or_a_light_class_is_left_out_as_a_whole(intercept):
    units = torch.where(VALUES[:, 0] > 0, 100.0, 0.01).double()
    objective = replace(problem(Squared(), 0.05, units, intercept), units=units)
    full = FullSpan.of(None, matrix=K.clone())
    exact = minimise(full, objective, tol=1e-12)
    found = left_out(Spectral.of_matrix(K.clone(), units, intercept), objective, exact)
    gone = torch.stack(
        [
            minimise(full, replace(objective, weights=units * (torch.arange(60) != i)), tol=1e-12).fitted[i]
            for i in range(60)
        ]
    )
    assert torch.allclose(found, gone, atol=1e-6)
    assert torch.allclose(approximate_loo(full, objective, exact), gone, atol=1e-6)


def test_features_are_as_good_as_their_matrix():
    B = torch.from_numpy(rng.normal(size=(60, 5)))
    objective = problem(Multinomial(), 0.5, WEIGHTS)
    alphas = torch.logspace(-4, 2, 13).double()
    by_matrix = select_alpha_of_spectrum(Spectral.of_matrix(B @ B.T, WEIGHTS, True), [objective], alphas)[0]
    by_features = select_alpha_of_spectrum(Spectral.of_features(B.clone(), WEIGHTS, True), [objective], alphas)[0]
    assert torch.equal(by_matrix.alpha, by_features.alpha)
    assert torch.allclose(by_matrix.errors, by_features.errors, rtol=1e-2)


def test_integer_weights_equal_repeated_rows():
    again = torch.from_numpy(np.repeat(np.arange(60), WEIGHTS.int().numpy()))
    objective = problem(Multinomial(), 0.1, WEIGHTS)
    repeated = replace(objective, targets=CODES[again], weights=None)
    alphas = torch.logspace(-3, 1, 9).double()
    one = select_alpha_of_spectrum(Spectral.of_matrix(K.clone(), WEIGHTS, True), [objective], alphas)[0]
    two = select_alpha_of_spectrum(Spectral.of_matrix(K[again][:, again], None, True), [repeated], alphas)[0]
    assert torch.equal(one.alpha, two.alpha)
    assert torch.allclose(one.errors, two.errors, rtol=1e-2)


@pytest.mark.parametrize("loss", [Logistic(), Multinomial()], ids=lambda loss: loss.name)
def test_its_alpha_loses_little_against_that_of_approximate_leave_one_out(loss):
    span, full = Spectral.of_matrix(K.clone(), None, True), FullSpan.of(None, matrix=K.clone())
    alphas = torch.logspace(-3, 1, 9).double()
    path, _ = select_alpha_of_spectrum(span, [problem(loss, 1.0)], alphas)

    def exact(alpha):
        objective = problem(loss, float(alpha))
        return loss_of_left_out(objective, approximate_loo(full, objective, minimise(full, objective)))

    losses = [exact(alpha) for alpha in alphas]
    assert exact(path.alpha) < 1.1 * min(losses)
    assert max(losses) > 1.3 * min(losses)


@pytest.mark.parametrize("loss", [Logistic(), Multinomial(), Huber(0.3)], ids=lambda loss: loss.name)
@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1e3])
def test_few_unknowns_and_many_have_the_same_minimum_at_any_alpha(loss, alpha, monkeypatch):
    objective, span, least = problem(loss, alpha, WEIGHTS), Spectral.of_matrix(K.clone(), WEIGHTS, True), []
    for unknowns in (0, 250):
        monkeypatch.setattr(spectral_path, "NEWTON_UNKNOWNS", unknowns)
        theta = span.minimum(objective, span.around(objective))
        least.append(span.around(objective, theta).value(objective))
    assert least[1] == pytest.approx(least[0], rel=1e-6)


def test_rounding_of_products_costs_a_descent_few_looks(monkeypatch):
    monkeypatch.setattr(spectral_path, "NEWTON_UNKNOWNS", 0)
    monkeypatch.setattr(spectral_path, "SMALL_FEATURES", 0)  # products in float32
    span, looks, steps, of = Spectral.of_matrix(K.clone(), None, True), [], [], spectral_path.descended

    class Counted(Objective):
        def look(self, f):
            looks.append(1)
            return super().look(f)

    def told(*given, **more):
        theta, count = of(*given, **more)
        steps.append(count)
        return theta, count

    monkeypatch.setattr(spectral_path, "descended", told)
    alphas = torch.logspace(-4, 3, 15).tolist()
    for alpha in alphas:
        objective = Counted(Logistic(), torch.sign(VALUES), alpha, None, True)
        span.minimum(objective, span.around(objective))
    assert sum(steps) > 50
    assert len(looks) < 1.5 * sum(steps) + 2 * len(alphas)  # a line search that rounding ends takes 20
