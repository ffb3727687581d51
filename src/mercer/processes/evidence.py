"""The log marginal likelihood of data under a Gaussian process, with its exact gradient."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from torch import Tensor

from mercer.core.errors import MemoryBudgetError, MercerError
from mercer.operators.placement import Placement
from mercer.processes.exact import with_noise
from mercer.processes.hyperparameters import Hyperparameters
from mercer.processes.log_density import log_density
from mercer.processes.means import Centring, Mean
from mercer.processes.observations import Observations
from mercer.processes.radial_matrix import prior_matrix
from mercer.solvers.decompose import LinAlgError
from mercer.solvers.factor import Factor, factorise


class Evidence(ABC):
    """A log marginal likelihood as a function of theta, for data and a kernel."""

    data: Observations
    hyperparameters: Hyperparameters

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """The value and its gradient in theta; minus infinity and zeros where it cannot be computed."""
        try:
            value, gradient = self.evaluate(theta)
        except MemoryBudgetError:
            raise
        except (MercerError, LinAlgError):
            return -math.inf, np.zeros_like(theta)
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            return -math.inf, np.zeros_like(theta)
        return value, gradient

    @abstractmethod
    def evaluate(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """The same, or an error that says why it cannot be computed."""


class ExactEvidence(Evidence):
    r"""The log marginal likelihood

    .. math:: \log p(y) = -\tfrac12 r^T A^{-1} r - \tfrac12 \log\det A - \tfrac n2 \log 2\pi,
        \qquad A = K + \Sigma, \quad r = y - m,

    summed over the columns of y, with the coefficients of the mean m that maximise it. Its derivative in A is
    :math:`\tfrac12 (a a^T - A^{-1})` with :math:`a = A^{-1} r`, and autograd carries that through the kernel
    (`PriorMatrix`), so that of many rows two n x n matrices are all that is stored.

    References: Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, section 5.4.1.

    >>> import torch
    >>> from mercer.core.arrays import Points
    >>> from mercer.kernels import Gaussian
    >>> from mercer.processes.means import ZeroMean
    >>> place = Placement(torch.device("cpu"), torch.float64)
    >>> data = Observations(Points(torch.zeros(1, 1).double()), torch.zeros(1, 1).double())
    >>> hyper = Hyperparameters.of(Gaussian(), noise=1.0, learn_noise=True)
    >>> value, gradient = ExactEvidence(data, hyper, ZeroMean(), place)(hyper.start)
    >>> round(value, 4), gradient.round(4)  # a normal density of variance 2 at 0
    (-1.2655, array([ 0.  , -0.25]))
    """

    def __init__(self, data: Observations, hyperparameters: Hyperparameters, mean: Mean, place: Placement) -> None:
        self.data = data.to(place.device) if data.X.is_tensor else data
        self.hyperparameters = hyperparameters
        self.mean = mean
        self.place = place
        self.centring = Centring.of(mean, self.data.X, self.data.Y)
        self.right_hand_sides = self.centring.right_hand_sides
        self.prior = prior_matrix(hyperparameters, self.data.X, place)

    def evaluate(self, theta: np.ndarray, gradient: bool = True) -> tuple[float, np.ndarray]:
        """The value and, where asked for, the gradient; an error where it cannot be computed."""
        hyper, K = self.hyperparameters, self.prior.at(theta)
        factor = factorise(lambda: with_noise(K.values(), hyper.noise_at(theta), self.data))
        value, a = self.value_and_weights(factor)
        if not gradient:
            return value, np.zeros_like(theta)
        W = factor.inverse().mul_(-0.5 * self.data.n_targets)
        W.addmm_(a.to(W), a.to(W).mT, alpha=0.5)
        return value, K.gradient(lambda rows, columns: W[rows, columns], float(W.diagonal().sum()))

    def value_and_weights(self, factor: Factor) -> tuple[float, Tensor]:
        """The log marginal likelihood and a, (n, t), from the factor of A."""
        n, t = self.data.Y.shape
        solved = factor.solve(self.right_hand_sides.to(factor.L))
        _, residuals, a = self.centring.fit(solved.to(self.centring.R))
        return log_density(float((residuals * a).sum()), factor.log_det(), n, t), a


def noise_alone(data: Observations, mean: Mean) -> float:
    """The greatest log likelihood of the data without any function but the mean: all the rest is noise."""
    centring = Centring.of(mean, data.X, data.Y)
    _, residuals, _ = centring.fit(centring.right_hand_sides)
    variance = float(residuals.square().mean())
    return -0.5 * data.Y.numel() * (math.log(2.0 * math.pi * variance) + 1.0) if variance > 0 else math.inf
