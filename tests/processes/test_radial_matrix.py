"""Slopes of covariances in closed form are those of autograd."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from mercer.core.arrays import Points
from mercer.kernels import Gaussian, Laplace, Matern, Periodic, RationalQuadratic
from mercer.kernels.dials import MEND_RADIUS
from mercer.operators.placement import Placement
from mercer.processes.hyperparameters import Hyperparameters
from mercer.processes.prior_matrix import PriorMatrix
from mercer.processes.radial_matrix import RadialMatrix, prior_matrix

PLACE = Placement(torch.device("cpu"), torch.float64)
SCALES = (1.0, 2.0, 0.7)
KERNELS = [
    Gaussian(1.3),
    2.0 * Gaussian(SCALES),
    Matern(1.5, 0.8),
    3.0 * Matern(2.5, SCALES),
    0.5 * Matern(3.5, 1.1),
    2.0 * Matern(math.inf, SCALES),
]


def problem(n: int, offset: float = 0.0) -> tuple[Points, torch.Tensor]:
    rng = np.random.default_rng(n)
    W = torch.from_numpy(rng.standard_normal((n, n)))
    return Points(torch.from_numpy(rng.standard_normal((n, 3)) + offset)), W + W.T


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize(("n", "offset"), [(1, 0.0), (8, 0.0), (50, 1e4), (700, 0.0)])
def test_values_and_slopes_are_those_of_autograd(kernel, n, offset):
    X, W = problem(n, offset)
    hyper = Hyperparameters.of(kernel, noise=0.1, learn_noise=True)
    theta = hyper.start + 0.3 * np.arange(len(hyper))
    closed, general = RadialMatrix.of(hyper, X, PLACE), PriorMatrix(hyper, X, PLACE)
    assert closed is not None
    for at in (hyper.start, theta):
        ours, expected = closed.at(at), general.at(at)
        assert isinstance(ours, RadialMatrix)
        assert torch.allclose(ours.values(), expected.values(), rtol=1e-10, atol=1e-10)
        found, slopes = (K.gradient(lambda i, j: W[i, j], 0.7) for K in (ours, expected))
        assert np.allclose(found, slopes, rtol=1e-8, atol=1e-8 * float(W.abs().sum()))


def test_ties_keep_the_ratios_of_length_scales():
    X, W = problem(20)
    kernel = 2.0 * Matern(2.5, SCALES)
    tied = Hyperparameters.of(kernel, noise=0.1, learn_noise=False, tied=frozenset({"kernel__length_scale"}))
    closed, general = (K.at(tied.start + 0.2) for K in (prior_matrix(tied, X, PLACE), PriorMatrix(tied, X, PLACE)))
    assert np.allclose(*(K.values() for K in (closed, general)))
    assert np.allclose(*(K.gradient(lambda i, j: W[i, j], 0.0) for K in (closed, general)))


@pytest.mark.parametrize("kernel", [Laplace(1.0), Periodic(1.0, 2.0), RationalQuadratic(1.0), Gaussian() + Gaussian()])
def test_other_formulas_are_left_to_autograd(kernel):
    X, _ = problem(5)
    assert isinstance(prior_matrix(Hyperparameters.of(kernel, noise=0.1, learn_noise=True), X, PLACE), PriorMatrix)


def test_near_pairs_among_far_rows_are_left_to_autograd():
    X, _ = problem(30)
    hyper = Hyperparameters.of(Gaussian(), noise=0.1, learn_noise=False)
    matrix = prior_matrix(hyper, X, PLACE)
    assert isinstance(matrix.at(np.array([-0.5 * math.log(MEND_RADIUS)])), PriorMatrix)
    assert isinstance(matrix.at(hyper.start), RadialMatrix)


@pytest.mark.filterwarnings("error")
def test_length_scales_whose_squares_vanish_are_left_to_autograd():
    X, _ = problem(6)
    hyper = Hyperparameters.of(Gaussian(), noise=0.1, learn_noise=False)
    far = prior_matrix(hyper, X, PLACE).at(np.array([math.log(1e-160)]))
    assert isinstance(far, PriorMatrix)
    assert torch.equal(far.values(), torch.eye(6).double())
