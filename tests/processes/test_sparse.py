"""Inducing points give a lower bound that is exact for all rows, its derivative, and a posterior to match."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.kernels import Matern, Precomputed
from mercer.operators.placement import Placement
from mercer.processes import ExactEvidence, ExactPosterior, Hyperparameters, Observations, as_mean
from mercer.processes.pathwise import PosteriorFunctions
from mercer.processes.prior_functions import PriorFunctions
from mercer.processes.sparse import Sparse
from mercer.processes.sparse_evidence import SparseEvidence, inducing_points
from mercer.processes.sparse_posterior import SparsePosterior

PLACE = Placement(torch.device("cpu"), torch.float64)
rng = np.random.default_rng(1)
N = 80
VALUES = torch.from_numpy(rng.normal(size=(N, 2)))
X = Points(VALUES)
Y = torch.stack([VALUES[:, 0].sin() + 3.0, VALUES[:, 1] ** 2], dim=1) + 0.2 * torch.from_numpy(rng.normal(size=(N, 2)))
ROW_NOISE = torch.from_numpy(rng.uniform(0.0, 0.3, size=N))
NEW = Points(torch.from_numpy(rng.normal(size=(7, 2))))
HYPER = Hyperparameters.of(1.5 * Matern(1.5, (0.8, 1.7)), 0.05, learn_noise=True)
THETA = HYPER.start
KERNEL, NOISE = HYPER.kernel_at(THETA), HYPER.noise_at(THETA)


def evidence(m, data, mean="constant"):
    return SparseEvidence(data, HYPER, as_mean(mean, X), PLACE, m)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("mercer.processes.sparse_evidence.BLOCK_NUMBERS", {"cpu": 600})


@pytest.mark.parametrize("noise", [None, ROW_NOISE])
@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
def test_all_rows_as_inducing_points_give_the_exact_evidence_and_gradient(noise, mean):
    data = Observations(X, Y, noise)
    expected, slope = ExactEvidence(data, HYPER, as_mean(mean, X), PLACE)(THETA)
    value, gradient = evidence(N, data, mean)(THETA)
    assert value == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(gradient, slope, rtol=0, atol=1e-6 * np.abs(slope).max())


@pytest.mark.parametrize("noise", [None, ROW_NOISE])
@pytest.mark.parametrize("mean", ["zero", "linear"])
def test_the_gradient_is_the_derivative(noise, mean):
    found = evidence(12, Observations(X, Y, noise), mean)
    _, gradient = found(THETA)
    step = 1e-5
    for i, slope in enumerate(gradient):
        ahead, behind = (found(THETA + s * step * np.eye(len(THETA))[i])[0] for s in (1, -1))
        assert slope == pytest.approx((ahead - behind) / (2 * step), rel=1e-5, abs=1e-4)


def test_it_is_a_lower_bound_that_rises_with_more_points():
    data = Observations(X, Y[:, :1])
    truth = ExactEvidence(data, HYPER, as_mean("constant", X), PLACE)(THETA)[0]
    bounds = [evidence(m, data)(THETA)[0] for m in (5, 15, 40)]
    assert bounds == sorted(bounds)
    assert bounds[-1] <= truth


@pytest.mark.parametrize("noise", [None, ROW_NOISE])
def test_all_rows_as_inducing_points_give_the_exact_posterior(noise):
    data, mean = Observations(X, Y, noise), as_mean("constant", X)
    dense = ExactPosterior.condition(KERNEL, NOISE, data, mean, PLACE)
    found = SparsePosterior.condition(KERNEL, NOISE, data, mean, PLACE, X)
    torch.testing.assert_close(found.mean(NEW), dense.mean(NEW), rtol=0, atol=1e-8)
    torch.testing.assert_close(found.variance(NEW), dense.variance(NEW), rtol=0, atol=1e-9)
    torch.testing.assert_close(found.covariance(NEW), dense.covariance(NEW), rtol=0, atol=1e-9)
    assert found.log_marginal_likelihood() == pytest.approx(dense.log_marginal_likelihood(), rel=1e-9)


def test_the_posterior_is_that_of_the_textbook():
    data, mean = Observations(X, Y[:, :1]), as_mean("zero", X)
    found = Sparse(PLACE, n_landmarks=10).posterior(KERNEL, NOISE, data, mean)
    Z = found.Z.values
    Kuu, Kuf, Kxu = KERNEL(Z), KERNEL(Z, VALUES), KERNEL(NEW.values, Z)
    middle = torch.linalg.inv(Kuu + Kuf @ Kuf.T / NOISE)
    torch.testing.assert_close(found.mean(NEW), Kxu @ middle @ Kuf @ Y[:, :1] / NOISE, rtol=0, atol=1e-7)
    covariance = KERNEL(NEW.values) - Kxu @ torch.linalg.inv(Kuu) @ Kxu.T + Kxu @ middle @ Kxu.T
    torch.testing.assert_close(found.covariance(NEW), covariance, rtol=0, atol=1e-7)
    torch.testing.assert_close(found.variance(NEW), covariance.diagonal(), rtol=0, atol=1e-7)
    assert "10 inducing points" in found.report.reason


def test_functions_have_the_mean_and_covariance_of_the_posterior():
    data, mean = Observations(X, Y[:, :1]), as_mean("constant", X)
    found = SparsePosterior.condition(KERNEL, NOISE, data, mean, PLACE, X.take(slice(0, 15)))
    count = 4000
    prior = PriorFunctions.draw(KERNEL, X, count, seed=0, n_features=2048)
    values = PosteriorFunctions(found, prior, seed=1)(NEW)[:, :, 0]
    covariance = found.covariance(NEW)
    error = 5 * (covariance.diagonal() / count).sqrt()
    assert bool(((values.mean(0) - found.mean(NEW)[:, 0]).abs() < error + 0.01).all())
    torch.testing.assert_close(torch.cov(values.T), covariance, rtol=0, atol=0.12)


def test_inducing_points_are_rows_and_a_ready_matrix_has_none():
    data = Observations(X, Y[:, :1])
    Z = inducing_points(KERNEL, NOISE, data, PLACE, 12, seed=0).values
    assert len(Z.unique(dim=0)) == 12
    assert bool((torch.cdist(Z, VALUES).min(1).values < 1e-12).all())
    square = Observations(Points(KERNEL(VALUES)), Y[:, :1], square=True)
    with pytest.raises(InputError, match="precomputed"):
        inducing_points(Precomputed(), NOISE, square, PLACE, 12, seed=0)
