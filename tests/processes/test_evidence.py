"""The log marginal likelihood is that of a normal density, and its gradient is the derivative."""

import numpy as np
import pytest
import scipy.stats
import torch

from mercer.core.arrays import Points
from mercer.kernels import Gaussian, Linear, Matern, Periodic, RationalQuadratic, Subspace
from mercer.operators.placement import Placement
from mercer.processes import ExactEvidence, Hyperparameters, Observations, as_mean

PLACE = Placement(torch.device("cpu"), torch.float64)
rng = np.random.default_rng(0)
X = Points(torch.from_numpy(rng.uniform(0, 3, size=(25, 2))))
Y = torch.from_numpy(rng.normal(size=(25, 2)) + 3.0)
ROW_NOISE = torch.from_numpy(rng.uniform(0.05, 0.5, size=25))

KERNELS = {
    "ard": 1.5 * Matern(2.5, (0.7, 1.9)),
    "gaussian": 0.5 * Gaussian(0.8),
    "composed": 2.0 * Gaussian(1.3) * Subspace(Periodic(1.1, 1.7), 0)
    + 0.3 * RationalQuadratic(0.5, 0.8)
    + 0.1 * Linear(1.0),
}


def evidence(kernel, mean="zero", noise=None, learn_noise=True, t=1, **kwargs):
    data = Observations(X, Y[:, :t], noise)
    hyper = Hyperparameters.of(kernel, 0.2, learn_noise, **kwargs)
    return ExactEvidence(data, hyper, as_mean(mean, X), PLACE)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("row_noise", [None, ROW_NOISE])
def test_the_evidence_is_the_density_of_the_data(name, row_noise):
    kernel = KERNELS[name]
    found = evidence(kernel, noise=row_noise)
    cov = kernel(X.values.numpy()) + 0.2 * np.eye(25) + (0 if row_noise is None else np.diag(row_noise.numpy()))
    expected = scipy.stats.multivariate_normal.logpdf(Y[:, 0].numpy(), np.zeros(25), cov)
    assert found(found.hyperparameters.start)[0] == pytest.approx(expected, rel=1e-11)


def test_targets_are_independent_given_the_kernel():
    kernel = KERNELS["ard"]
    both = evidence(kernel, t=2)
    alone = [ExactEvidence(Observations(X, Y[:, [j]]), both.hyperparameters, as_mean("zero", X), PLACE) for j in (0, 1)]
    theta = both.hyperparameters.start
    assert both(theta)[0] == pytest.approx(sum(e(theta)[0] for e in alone), rel=1e-12)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("mean", ["zero", "constant", "linear", 2.0])
@pytest.mark.parametrize("learn_noise", [True, False])
def test_the_gradient_is_the_derivative(name, mean, learn_noise):
    found = evidence(KERNELS[name], mean, ROW_NOISE, learn_noise, t=2)
    theta = found.hyperparameters.start + 0.1
    _, gradient = found(theta)
    step = 1e-5
    for i in range(len(theta)):
        e = np.zeros_like(theta)
        e[i] = step
        slope = (found(theta + e)[0] - found(theta - e)[0]) / (2 * step)
        assert gradient[i] == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_the_gradient_of_tied_length_scales_is_the_derivative():
    kernel = 1.5 * Matern(2.5, (0.7, 1.9))
    found = evidence(kernel, tied=frozenset({"kernel__length_scale"}))
    theta = found.hyperparameters.start
    assert len(theta) == 3
    assert found.hyperparameters.kernel_at(theta).kernel.length_scale == pytest.approx((0.7, 1.9))
    moved = theta + np.array([np.log(2.0), 0.0, 0.0])
    assert found.hyperparameters.kernel_at(moved).kernel.length_scale == pytest.approx((1.4, 3.8))
    e = np.array([1e-5, 0.0, 0.0])
    slope = (found(theta + e)[0] - found(theta - e)[0]) / 2e-5
    assert found(theta)[1][0] == pytest.approx(slope, rel=1e-6)


def test_tiles_do_not_change_the_gradient(monkeypatch):
    found = evidence(KERNELS["composed"])
    theta = found.hyperparameters.start
    _, whole = found(theta)
    monkeypatch.setitem(__import__("mercer.operators.pull_back", fromlist=["x"]).TILE_NUMBERS, "cpu", 1)
    np.testing.assert_allclose(found(theta)[1], whole, rtol=1e-10)


@pytest.mark.parametrize("mean", ["constant", "linear"])
def test_coefficients_of_the_mean_maximise_the_likelihood(mean):
    kernel = KERNELS["ard"]
    found = evidence(kernel, mean, ROW_NOISE)
    theta = found.hyperparameters.start
    A = kernel(X.values.numpy()) + 0.2 * np.eye(25) + np.diag(ROW_NOISE.numpy())
    H = np.ones((25, 1)) if mean == "constant" else np.c_[np.ones(25), X.values.numpy()]
    y = Y[:, 0].numpy()
    inverse = np.linalg.inv(A)
    beta = np.linalg.solve(H.T @ inverse @ H, H.T @ inverse @ y)
    expected = scipy.stats.multivariate_normal.logpdf(y, H @ beta, A)
    assert found(theta)[0] == pytest.approx(expected, rel=1e-10)


def test_a_mean_with_dependent_columns_still_has_a_likelihood():
    rows = Points(torch.cat([X.values, X.values[:, :1]], dim=1))
    data = Observations(rows, Y[:, :1])
    hyper = Hyperparameters.of(Gaussian(1.0), 0.2, True)
    twice = ExactEvidence(data, hyper, as_mean("linear", rows), PLACE)(hyper.start)[0]
    once = ExactEvidence(Observations(X, Y[:, :1]), hyper, as_mean("linear", X), PLACE)
    kernel = Subspace(Gaussian(1.0), (0, 1))
    other = Hyperparameters.of(kernel, 0.2, True)
    twice = ExactEvidence(data, other, as_mean("linear", rows), PLACE)(other.start)[0]
    assert twice == pytest.approx(once(hyper.start)[0], rel=1e-8)


def test_priors_are_added_with_their_derivative():
    from mercer.processes import Gamma, LogNormal

    hyper = Hyperparameters.of(
        1.5 * Matern(2.5, (0.7, 1.9)), 0.2, True, priors={"length_scale": LogNormal(1.0, 0.5), "noise": Gamma(2.0, 3.0)}
    )
    value, slope = hyper.log_prior(hyper.start)
    expected = scipy.stats.lognorm.logpdf([0.7, 1.9], 0.5).sum() + scipy.stats.gamma.logpdf(0.2, 2.0, scale=1 / 3)
    assert value == pytest.approx(expected)
    for i in range(4):
        e = np.zeros(4)
        e[i] = 1e-6
        numeric = (hyper.log_prior(hyper.start + e)[0] - hyper.log_prior(hyper.start - e)[0]) / 2e-6
        assert slope[i] == pytest.approx(numeric, abs=1e-6)
