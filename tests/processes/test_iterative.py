"""Iterative methods agree with dense ones: exactly where probes leave nothing to chance, else within their error."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.kernels import Gaussian, Matern
from mercer.operators.placement import Placement
from mercer.processes import ExactEvidence, ExactPosterior, Hyperparameters, Observations, as_mean, maximise
from mercer.processes.iterative import Iterative
from mercer.processes.iterative_evidence import IterativeEvidence
from mercer.processes.iterative_posterior import IterativePosterior
from mercer.processes.pathwise import PosteriorFunctions
from mercer.processes.prior_functions import PriorFunctions
from mercer.processes.probed_evidence import ProbedEvidence
from mercer.solvers.pcg import PCG

PLACE = Placement(torch.device("cpu"), torch.float64)
SINGLE = replace(PLACE, dtype=torch.float32)
rng = np.random.default_rng(0)
N = 150
VALUES = torch.from_numpy(rng.normal(size=(N, 2)))
X = Points(VALUES)
Y = torch.stack([VALUES[:, 0].sin() + 3.0, VALUES[:, 1] ** 2], dim=1) + 0.2 * torch.from_numpy(rng.normal(size=(N, 2)))
ROW_NOISE = torch.from_numpy(rng.uniform(0.0, 0.3, size=N))
NEW = Points(torch.from_numpy(rng.normal(size=(9, 2))))
HYPER = Hyperparameters.of(1.5 * Matern(1.5, (0.8, 1.7)), 0.05, learn_noise=True)
THETA = HYPER.start
KERNEL, NOISE = HYPER.kernel_at(THETA), HYPER.noise_at(THETA)


def observations(t=1, noise=None):
    return Observations(X, Y[:, :t], noise)


def exact(data, mean="constant"):
    return ExactEvidence(data, HYPER, as_mean(mean, X), PLACE)(THETA)


@pytest.mark.parametrize("t", [1, 2])
@pytest.mark.parametrize("noise", [None, ROW_NOISE])
@pytest.mark.parametrize("mean", ["zero", "constant", "linear"])
def test_probes_that_span_everything_give_the_exact_evidence_and_gradient(t, noise, mean):
    data, rank = observations(t, noise), 30
    found = IterativeEvidence(data, HYPER, as_mean(mean, X), PLACE, rank=rank, probes=N + rank, tol=1e-10)
    found(THETA)
    pivots, _ = found._fixed
    found._fixed = pivots, (N + rank) ** 0.5 * torch.eye(N + rank).double()
    value, gradient = found(THETA)
    expected, slope = exact(data, mean)
    assert value == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(gradient, slope, rtol=0, atol=1e-6 * np.abs(slope).max())


@pytest.mark.parametrize("t", [1, 2])
@pytest.mark.parametrize("noise", [None, ROW_NOISE])
def test_the_probed_evidence_is_exact_and_so_is_its_gradient_for_probes_that_span_everything(t, noise):
    data = observations(t, noise)
    found = ProbedEvidence(data, HYPER, as_mean("constant", X), PLACE)
    expected, slope = exact(data)
    value, estimate = found(THETA)
    assert value == pytest.approx(expected, rel=1e-12)
    assert np.abs(estimate - slope).max() < 5 * t * (2 * N / 64) ** 0.5
    found.normal = N**0.5 * torch.eye(N).double()
    np.testing.assert_allclose(found(THETA)[1], slope, rtol=0, atol=1e-9 * np.abs(slope).max())


def test_random_probes_are_right_in_the_mean_of_seeds():
    data, mean = observations(), as_mean("constant", X)
    expected, slope = exact(data)
    each = [IterativeEvidence(data, HYPER, mean, PLACE, rank=30, tol=1e-4, seed=s)(THETA) for s in range(30)]
    found = np.array([[value, *gradient] for value, gradient in each])
    error = 4 * found.std(0) / 30**0.5 + 1e-3
    assert (np.abs(found.mean(0) - [expected, *slope]) < error).all()


def test_the_default_tolerance_costs_little():
    data, mean = observations(), as_mean("constant", X)
    coarse, fine = (IterativeEvidence(data, HYPER, mean, PLACE, rank=30, tol=tol)(THETA) for tol in (1e-2, 1e-10))
    assert coarse[0] == pytest.approx(fine[0], abs=0.05)


def test_the_evidence_repeats_and_is_smooth_in_theta():
    found = IterativeEvidence(observations(), HYPER, as_mean("constant", X), PLACE, rank=30, tol=1e-8)
    first = found(THETA)
    assert found(THETA)[0] == first[0]
    steps = np.linspace(-0.02, 0.02, 9)
    values = np.array([found(THETA + h)[0] for h in steps])
    fitted = np.polynomial.Polynomial.fit(steps, values, 3)(steps)
    assert np.abs(values - fitted).max() < 1e-4 * np.ptp(values)


def test_float32_products_do_for_noisy_data_and_give_way_to_float64_where_they_are_too_coarse():
    data = Observations(Points(VALUES.float()), Y[:, :1])
    mean = as_mean("constant", X)
    single = IterativeEvidence(data, HYPER, mean, SINGLE, rank=30)
    double = IterativeEvidence(data, HYPER, mean, PLACE, rank=30)
    assert single(THETA)[0] == pytest.approx(double(THETA)[0], abs=0.02)
    assert single.place.dtype == torch.float32
    steep = Hyperparameters.of(1e6 * Gaussian(3.0), 1e-4, learn_noise=True)
    found = IterativeEvidence(data, steep, mean, SINGLE, rank=10)
    assert np.isfinite(found(steep.start)[0])
    assert found.place.dtype == torch.float64


def test_learning_ends_near_the_exact_maximum():
    data, mean = observations(), as_mean("constant", X)
    truth = ExactEvidence(data, HYPER, mean, PLACE)
    best = maximise(truth).value
    for found in (
        maximise(IterativeEvidence(data, HYPER, mean, PLACE, rank=60), tol=1e-5),
        maximise(ProbedEvidence(data, HYPER, mean, PLACE), tol=1e-5),
    ):
        assert best - truth(found.theta)[0] < 2.0


@pytest.mark.parametrize("t", [1, 2])
@pytest.mark.parametrize("noise", [None, ROW_NOISE])
def test_the_posterior_is_the_exact_one_to_the_tolerance(t, noise):
    data, mean = observations(t, noise), as_mean("constant", X)
    dense = ExactPosterior.condition(KERNEL, NOISE, data, mean, PLACE)
    solver = PCG(tol=1e-8, rank=20)
    found = IterativePosterior.condition(KERNEL, NOISE, data, mean, PLACE, solver)
    assert found.report.converged
    torch.testing.assert_close(found.mean(NEW), dense.mean(NEW), rtol=0, atol=1e-6)
    torch.testing.assert_close(found.variance(NEW), dense.variance(NEW), rtol=0, atol=1e-9)
    torch.testing.assert_close(found.covariance(NEW), dense.covariance(NEW), rtol=0, atol=1e-6)
    torch.testing.assert_close(found.mean_function.coef, dense.mean_function.coef, rtol=0, atol=1e-5)
    likelihood = dense.log_marginal_likelihood()
    assert found.log_marginal_likelihood() == pytest.approx(likelihood, abs=6.0 * t)


def test_coarse_variances_are_too_large_by_no_more_than_the_squared_residual():
    data, mean = observations(), as_mean("zero", X)
    dense = ExactPosterior.condition(KERNEL, NOISE, data, mean, PLACE)
    coarse = IterativePosterior.condition(KERNEL, NOISE, data, mean, PLACE, PCG(tol=0.05, rank=2))
    excess = coarse.variance(NEW) - dense.variance(NEW)
    squares = coarse.cross(NEW).square().sum(1) / NOISE
    assert float(excess.min()) >= -1e-12
    assert bool((excess <= 0.05**2 * squares).all())
    assert float(excess.max()) > 1e-9


def test_functions_by_iterative_solves_are_those_of_the_factor():
    data, mean = observations(), as_mean("constant", X)
    dense = ExactPosterior.condition(KERNEL, NOISE, data, mean, PLACE)
    found = IterativePosterior.condition(KERNEL, NOISE, data, mean, PLACE, PCG(tol=1e-9, rank=20))
    prior = PriorFunctions.draw(KERNEL, X, 3, seed=0, n_features=256)
    first, second = (PosteriorFunctions(p, prior, seed=1)(NEW) for p in (dense, found))
    torch.testing.assert_close(first, second, rtol=0, atol=1e-6)


def test_float32_posteriors_reach_their_tolerance_and_turn_to_float64_where_they_cannot():
    data, mean = Observations(Points(VALUES.float()), Y[:, :1]), as_mean("constant", X)
    found = IterativePosterior.condition(KERNEL, NOISE, data, mean, SINGLE)
    dense = ExactPosterior.condition(KERNEL, NOISE, data, mean, PLACE)
    assert found.report.converged
    torch.testing.assert_close(found.mean(NEW), dense.mean(NEW), rtol=0, atol=1e-3)
    solver = PCG(tol=1e-4, rank=60, max_iter=60)
    steep = IterativePosterior.condition(1e6 * Gaussian(3.0), 1e-4, data, mean, SINGLE, solver)
    assert "switched to float64" in steep.report.reason
    assert steep.place.dtype == torch.float64


def test_more_rows_are_as_all_at_once():
    mean = as_mean("constant", X)
    first, second = (observations().take(part) for part in (slice(0, 90), slice(90, N)))
    grown = IterativePosterior.condition(KERNEL, NOISE, first, mean, PLACE, PCG(tol=1e-9)).extended(second)
    once = IterativePosterior.condition(KERNEL, NOISE, observations(), mean, PLACE, PCG(tol=1e-9))
    torch.testing.assert_close(grown.mean(NEW), once.mean(NEW), rtol=0, atol=1e-7)
    assert "60 rows were added" in grown.report.reason


def test_a_pickled_posterior_predicts_the_same():
    found = IterativePosterior.condition(KERNEL, NOISE, observations(), as_mean("constant", X), PLACE)
    again = pickle.loads(pickle.dumps(found))
    assert again._prepared is None
    torch.testing.assert_close(again.variance(NEW), found.variance(NEW), rtol=0, atol=0)


def test_rows_without_noise_are_refused():
    with pytest.raises(InputError, match="method='exact'"):
        IterativePosterior.condition(KERNEL, 0.0, observations(), as_mean("zero", X), PLACE)


def test_a_factor_is_used_where_it_fits_the_memory_and_only_there():
    data, mean = observations(), as_mean("constant", X)
    roomy, narrow = Iterative(PLACE), Iterative(replace(PLACE, memory_budget=8 * N * N))
    assert isinstance(roomy.evidence(data, HYPER, mean), ProbedEvidence)
    assert isinstance(narrow.evidence(data, HYPER, mean), IterativeEvidence)
    dense = roomy.posterior(KERNEL, NOISE, data, mean)
    assert isinstance(dense, ExactPosterior)
    assert "one dense factor fits the memory budget" in dense.report.reason
    assert isinstance(narrow.posterior(KERNEL, NOISE, data, mean), IterativePosterior)
