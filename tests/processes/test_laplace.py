"""Laplace's approximation: its mode, evidence, gradient and averages against slow, plain computations."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.special import expit, softmax

from mercer.core.arrays import Points
from mercer.kernels import Gaussian, Linear, Matern
from mercer.operators.placement import Placement
from mercer.processes import Hyperparameters, Observations
from mercer.processes.averages import contrasts, mean_sigmoid, mean_softmax
from mercer.processes.laplace import Labels, LaplaceEvidence, evidence_slope, find_mode

PLACE = Placement(torch.device("cpu"), torch.float64)
rng = np.random.default_rng(0)
X = rng.normal(size=(18, 2))
KERNEL = 2.3 * Matern(2.5, (0.9, 0.4))
CROSS = KERNEL(rng.normal(size=(4, 2)), X)


def codes(classes):
    return np.r_[np.arange(classes), np.random.default_rng(classes).integers(0, classes, size=len(X) - classes)]


def plain_laplace(K, y, classes):
    """Newton's method on the whole system of C n values, and the posterior covariance (K^-1 + W)^-1."""
    n = len(y)
    big, hot = np.kron(np.eye(classes), K), np.eye(classes)[y].T.ravel()
    f = np.zeros(classes * n)
    for _ in range(200):
        p = softmax(f.reshape(classes, n), axis=0).ravel()
        P = np.vstack([np.diag(part) for part in p.reshape(classes, n)])
        W = np.diag(p) - P @ P.T
        new = big @ np.linalg.solve(np.eye(classes * n) + W @ big, W @ f + hot - p)
        f, moved = 0.5 * (f + new), np.abs(new - f).max()
        if moved < 1e-12:
            break
    p = softmax(f.reshape(classes, n), axis=0).ravel()
    P = np.vstack([np.diag(part) for part in p.reshape(classes, n)])
    W = np.diag(p) - P @ P.T
    likelihood = np.log(p.reshape(classes, n)[y, np.arange(n)]).sum()
    B = np.eye(classes * n) + big @ W
    evidence = likelihood - 0.5 * f @ np.linalg.solve(big, f) - 0.5 * np.linalg.slogdet(B)[1]
    return f.reshape(classes, n).T, evidence, W @ np.linalg.inv(B)


@pytest.mark.parametrize("classes", [3, 4])
def test_several_classes_agree_with_the_system_of_all_their_rows(classes):
    K, y = KERNEL(X), codes(classes)
    mode = find_mode(torch.from_numpy(K), Labels(torch.from_numpy(y).double(), classes))
    f, evidence, R = plain_laplace(K, y, classes)
    np.testing.assert_allclose(mode.f.numpy(), f, atol=1e-9)
    assert mode.log_evidence == pytest.approx(evidence, abs=1e-9)
    n = len(y)
    blocks = R.reshape(classes, n, classes, n)
    np.testing.assert_allclose(mode.curvature.block_sum().numpy(), np.einsum("cicj->ij", blocks), atol=1e-10)
    V = rng.normal(size=(n, classes))
    reduced = (R @ V.T.ravel()).reshape(classes, n).T
    np.testing.assert_allclose(mode.curvature.reduce(torch.from_numpy(V)).numpy(), reduced, atol=1e-10)
    explained = np.einsum("mi,cidj,mj->mcd", CROSS, blocks, CROSS)
    np.testing.assert_allclose(mode.curvature.explained(torch.from_numpy(CROSS)).numpy(), explained, atol=1e-10)


def test_two_functions_of_half_the_variance_are_one_function():
    K, y = torch.from_numpy(KERNEL(X)), torch.from_numpy(codes(2)).double()
    one = find_mode(K, Labels(y, 2))

    class Two(Labels):
        outputs = 2

    two = find_mode(0.5 * K, Two(y, 2))
    np.testing.assert_allclose((two.f[:, 1] - two.f[:, 0]).numpy(), one.f[:, 0].numpy(), atol=1e-9)
    assert two.log_evidence == pytest.approx(one.log_evidence, abs=1e-9)


def test_the_weights_are_the_slope_of_the_labels_at_the_mode():
    for classes in (2, 5):
        K = torch.from_numpy(KERNEL(X))
        labels = Labels(torch.from_numpy(codes(classes)).double(), classes)
        mode = find_mode(K, labels)
        np.testing.assert_allclose(labels.slope(mode.f), mode.weights, atol=1e-11)
        np.testing.assert_allclose((K @ mode.weights).numpy(), mode.f.numpy(), atol=1e-11)
        assert mode.converged


def test_the_start_does_not_change_the_mode():
    K, labels = torch.from_numpy(KERNEL(X)), Labels(torch.from_numpy(codes(3)).double(), 3)
    cold = find_mode(K, labels)
    far = find_mode(K, labels, 0.3 * cold.weights.flip(1))
    np.testing.assert_allclose(far.f.numpy(), cold.f.numpy(), atol=1e-9)
    assert find_mode(K, labels, cold.weights).steps == 0


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e5])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_mode_is_found_for_any_variance(size, classes):
    labels = Labels(torch.from_numpy(codes(classes)).double(), classes)
    mode = find_mode(size * torch.from_numpy(Gaussian(1.0)(X)), labels)
    assert mode.converged
    assert np.isfinite(mode.log_evidence)


@pytest.mark.parametrize("kernel", [KERNEL, 1.5 * Gaussian(1.2) + 0.3 * Linear(1.0)])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_gradient_is_the_derivative_with_the_mode_that_moves(kernel, classes):
    hyper = Hyperparameters.of(kernel, 0.0, False)
    data = Observations(Points(torch.from_numpy(X)), torch.from_numpy(codes(classes)).double().unsqueeze(1))
    evidence = LaplaceEvidence(data, classes, hyper, PLACE)
    theta, step = hyper.start + 0.2, 1e-5
    _, gradient = evidence(theta)
    for i in range(len(theta)):
        shift = step * np.eye(len(theta))[i]
        numeric = (evidence(theta + shift)[0] - evidence(theta - shift)[0]) / (2 * step)
        assert gradient[i] == pytest.approx(numeric, abs=1e-7)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_slope_in_the_covariance_is_symmetric_and_the_derivative(classes):
    K, labels = KERNEL(X), Labels(torch.from_numpy(codes(classes)).double(), classes)
    G = evidence_slope(find_mode(torch.from_numpy(K), labels)).numpy()
    np.testing.assert_allclose(G, G.T, atol=1e-12)
    D = rng.normal(size=K.shape)
    D, step = D @ D.T / len(D), 1e-5
    up, down = (find_mode(torch.from_numpy(K + s * step * D), labels).log_evidence for s in (1, -1))
    assert (G * D).sum() == pytest.approx((up - down) / (2 * step), abs=1e-6)


def test_an_evidence_that_cannot_be_computed_is_minus_infinity():
    hyper = Hyperparameters.of(1.0 * Gaussian(1.0), 0.0, False)
    data = Observations(Points(torch.from_numpy(X)), torch.from_numpy(codes(2)).double().unsqueeze(1))
    value, gradient = LaplaceEvidence(data, 2, hyper, PLACE)(np.array([np.nan, 0.0]))
    assert value == -np.inf
    assert (gradient == 0).all()


# Averages


@pytest.mark.parametrize("mean", [-30.0, -3.0, 0.0, 0.5, 8.0])
@pytest.mark.parametrize("deviation", [0.0, 1e-3, 0.3, 0.999, 1.001, 5.0, 300.0])
def test_the_averaged_sigmoid_is_its_integral(mean, deviation):
    def integrand(z):
        return expit(mean + deviation * z) * np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)

    turn = float(np.clip(-mean / max(deviation, 1e-9), -12, 12))
    ends = np.unique(np.r_[np.linspace(-12, 12, 13), turn + np.array([-1, 0, 1]) * 20 / max(deviation, 1.0)])
    ends = ends[(ends >= -12) & (ends <= 12)]
    expected = sum(quad(integrand, a, b, epsabs=1e-14)[0] for a, b in pairwise(ends))
    found = float(mean_sigmoid(*torch.tensor([mean, deviation**2], dtype=torch.float64)))
    assert found == pytest.approx(expected, abs=1e-12)


def test_averaged_probabilities_of_both_classes_sum_to_one():
    mean, variance = torch.linspace(-50, 50, 101).double(), torch.logspace(-4, 5, 101).double()
    total = mean_sigmoid(mean, variance) + mean_sigmoid(-mean, variance)
    np.testing.assert_allclose(total.numpy(), 1.0, atol=1e-12)


def test_contrasts_are_orthonormal_and_blind_to_a_common_shift():
    H = contrasts(5)
    np.testing.assert_allclose((H @ H.T).numpy(), np.eye(4), atol=1e-15)
    np.testing.assert_allclose(H.sum(1).numpy(), 0.0, atol=1e-15)


@pytest.mark.parametrize("size", [0.01, 1.0, 30.0])
def test_the_averaged_softmax_is_its_integral(size):
    A = rng.normal(size=(3, 3))
    mean, cov = rng.normal(size=3), size * (A @ A.T + 0.1 * np.eye(3))
    H = contrasts(3).numpy()
    L = np.linalg.cholesky(H @ cov @ H.T)
    z = np.linspace(-8, 8, 801)
    grid = np.stack(np.meshgrid(z, z), -1).reshape(-1, 2)
    density = np.exp(-0.5 * (grid**2).sum(1))
    expected = density @ softmax(mean + grid @ (H.T @ L).T, axis=1) / density.sum()
    found = mean_softmax(torch.from_numpy(mean[None]), torch.from_numpy(cov[None]))[0].numpy()
    np.testing.assert_allclose(found, expected, atol=1e-3)
    assert found.sum() == pytest.approx(1.0)
    shifted = mean_softmax(torch.from_numpy(mean[None] + 7.0), torch.from_numpy(cov[None] + 4.0))[0].numpy()
    np.testing.assert_allclose(shifted, found, atol=1e-10)


def test_a_softmax_of_two_is_a_sigmoid():
    mean, cov = torch.tensor([[0.3, 1.5]]).double(), torch.tensor([[[2.0, 0.4], [0.4, 1.0]]]).double()
    exact = mean_sigmoid(torch.tensor(1.2).double(), torch.tensor(2.2).double())
    assert float(mean_softmax(mean, cov)[0, 1]) == pytest.approx(float(exact), abs=1e-3)
    assert float(mean_softmax(0 * mean, cov)[0, 1]) == pytest.approx(0.5, abs=1e-12)
