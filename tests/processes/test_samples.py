"""Samples of a process have its mean and covariance, joint or as functions, before and after data."""

import numpy as np
import pytest
import torch

from mercer import GaussianProcessRegressor
from mercer.core.errors import NotPositiveDefiniteError
from mercer.kernels import Constant, FeatureMap, Gaussian, Linear, Matern, Periodic, Polynomial, Subspace
from mercer.processes.joint import joint_samples

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(12, 2))
y = np.sin(2 * X[:, 0]) + X[:, 1]
NEW = np.concatenate([rng.uniform(-3, 3, size=(5, 2)), X[:1]])
COUNT = 4000

KERNELS = {
    "matern": 1.3 * Matern(2.5, (0.8, 1.4)),
    "gaussian and constant": Gaussian(1.0) + 0.5,
    "quasi-periodic": Gaussian(2.0) * Subspace(Periodic(1.0, 1.5), 0) + 0.3 * Matern(1.5, 0.7),
    "with a linear trend": 0.7 * Gaussian(0.9) + 0.4 * Linear(0.5),
    "scaled by a function": (lambda X: 1.0 + X[:, 0] ** 2) * Gaussian(1.0),
    "features": FeatureMap(lambda X: torch.stack([X[:, 0], X[:, 1] ** 2], dim=1)) + Gaussian(1.0),
    "product with a linear kernel": 0.5 * Linear(1.0) * Gaussian(1.5),
    "constant": Constant(2.0),
}


def model(kernel, noise=0.1):
    return GaussianProcessRegressor(kernel, mean=0.5, noise=noise, tune=False)


def has_moments(samples, mean, cov, bias=0.0):
    """Whether samples (count, m) have that mean and covariance, within 5 standard errors and a bias of features."""
    count = len(samples)
    size = np.sqrt(np.diag(cov).clip(1e-12))
    np.testing.assert_array_less(np.abs(samples.mean(0) - mean), 5 * size / np.sqrt(count) + 1e-6 + bias)
    error = np.abs(np.cov(samples.T) - cov)
    np.testing.assert_array_less(error, (5 * np.sqrt(2 / count) + bias) * np.outer(size, size) + 1e-6 + bias)


@pytest.mark.parametrize("name", KERNELS)
def test_joint_samples_have_the_moments_of_the_posterior(name):
    fitted = model(KERNELS[name]).fit(X, y)
    mean, cov = fitted.predict(NEW, return_cov=True, latent=True)
    has_moments(fitted.sample_y(NEW, COUNT, latent=True).T, mean, cov)
    mean, cov = fitted.predict(NEW, return_cov=True)
    has_moments(fitted.sample_y(NEW, COUNT, random_state=1).T, mean, cov)


@pytest.mark.parametrize("name", KERNELS)
def test_functions_have_the_moments_of_the_posterior(name):
    fitted = model(KERNELS[name]).fit(X, y)
    mean, cov = fitted.predict(NEW, return_cov=True, latent=True)
    has_moments(fitted.sample_functions(COUNT)(NEW), mean, cov, bias=0.02)


@pytest.mark.parametrize("name", KERNELS)
def test_functions_and_samples_before_any_data_have_the_moments_of_the_prior(name):
    kernel = KERNELS[name]
    prior = model(kernel)
    expected = kernel(NEW)
    scale = 1.0 + 20.0 * (name in ("scaled by a function", "product with a linear kernel"))
    has_moments(prior.sample_functions(COUNT)(NEW), np.full(6, 0.5), expected, bias=0.02 * scale)
    has_moments(prior.sample_y(NEW, COUNT, latent=True).T, np.full(6, 0.5), expected)
    has_moments(prior.sample_y(NEW, COUNT).T, np.full(6, 0.5), expected + 0.1 * np.eye(6))


def test_functions_through_noise_free_data_meet_them():
    fitted = model(KERNELS["matern"], noise=0.0).fit(X, y)
    np.testing.assert_allclose(fitted.sample_functions(5)(X), np.tile(y, (5, 1)), atol=1e-6)


def test_a_function_is_the_same_at_every_call():
    functions = model(KERNELS["matern"]).fit(X, y).sample_functions(4)
    together = functions(NEW)
    alone = np.concatenate([functions(NEW[i : i + 1]) for i in range(len(NEW))], axis=1)
    np.testing.assert_allclose(together, alone, atol=1e-10)
    assert len(functions) == 4


@pytest.mark.parametrize("fitted", [True, False])
def test_functions_are_differentiable(fitted):
    process = model(KERNELS["with a linear trend"])
    if fitted:
        process.fit(X, y)
    functions = process.sample_functions(3)
    at = torch.from_numpy(NEW).requires_grad_()
    values = functions(at)
    assert values.shape == (3, 6)
    (slope,) = torch.autograd.grad(values[1].sum(), at)
    for j in range(2):
        shift = 1e-6 * np.eye(2)[j]
        expected = (functions(NEW + shift)[1] - functions(NEW - shift)[1]) / 2e-6
        np.testing.assert_allclose(slope[:, j].numpy(), expected, atol=1e-5)


def test_parts_do_not_change_a_function(monkeypatch):
    functions = model(KERNELS["matern"]).fit(X, y).sample_functions(2)
    whole = functions(NEW)
    monkeypatch.setattr("mercer.processes.pathwise.FEATURE_TILE", 2 * 8 * 4096)
    np.testing.assert_allclose(functions(NEW), whole, atol=1e-12)


def test_a_polynomial_kernel_has_no_functions_but_joint_samples():
    fitted = model(Polynomial(2)).fit(X, y)
    with pytest.raises(ValueError, match="sample_y"):
        fitted.sample_functions(1)
    assert fitted.sample_y(NEW, 2).shape == (6, 2)


def test_samples_of_a_process_known_for_certain_are_its_mean():
    fitted = model(Constant(1.0), noise=0.0)
    fitted.fit(X[:1], y[:1])
    np.testing.assert_allclose(fitted.sample_y(NEW, 3, latent=True), y[0], atol=1e-4)


@pytest.mark.parametrize("kernel", [Gaussian(3.0), Polynomial(3), Linear() + Gaussian(1.0)], ids=repr)
@pytest.mark.parametrize("noise", [0.0, 1e-10])
def test_samples_of_a_process_that_is_known_to_rounding_are_near_its_mean(kernel, noise):
    rows = np.linspace(-3, 3, 30)[:, None]
    new = np.linspace(-3, 3, 200)[:, None]
    fitted = model(kernel, noise).fit(rows, rows[:, 0] ** 2)
    mean = fitted.predict(new)
    assert np.abs(fitted.sample_y(new, 3, latent=True) - mean[:, None]).max() < 1e-2 * np.abs(mean).max()


def test_a_covariance_with_negative_eigenvalues_beyond_rounding_is_refused():
    cov = torch.tensor([[1.0, 2.0], [2.0, 1.0]]).double()
    with pytest.raises(NotPositiveDefiniteError):
        joint_samples(torch.zeros(2, 1).double(), cov, 3, 0, cov.diagonal())
