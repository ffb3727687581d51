"""Laplace's approximation: latent functions given labels are taken as normal around their most likely values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mercer.losses import Logistic, Multinomial
from mercer.operators.placement import Placement
from mercer.processes.curvature import Curvature, LogisticCurvature, SoftmaxCurvature
from mercer.processes.dials import LAPLACE_STEPS, LAPLACE_TOLERANCE, MOST_HALVINGS, ROUGH_TOLERANCE
from mercer.processes.evidence import Evidence
from mercer.processes.hyperparameters import Hyperparameters
from mercer.processes.observations import Observations
from mercer.processes.radial_matrix import prior_matrix


@dataclass(frozen=True, eq=False)
class Labels:
    """Classes as codes 0, 1, ..., (n,), and how likely they are given latent functions f of shape (n, outputs).

    Two classes have one function, P(1) = 1 / (1 + exp(-f)); more have one each, P = softmax(f).
    """

    codes: Tensor
    n_classes: int

    @property
    def outputs(self) -> int:
        """The number of functions."""
        return 1 if self.n_classes == 2 else self.n_classes

    def log_likelihood(self, f: Tensor) -> float:
        """log p(y | f)."""
        return -float(self._loss.value(self._targets, f).sum())

    def slope(self, f: Tensor) -> Tensor:
        """Its derivative in f."""
        return -self._loss.gradient(self._targets, f)

    def curvature(self, K: Tensor, f: Tensor) -> Curvature:
        """Its second derivative at f, with the covariance of the prior."""
        return LogisticCurvature(K, f) if self.outputs == 1 else SoftmaxCurvature(K, f)

    @property
    def _loss(self) -> Logistic | Multinomial:
        return Logistic() if self.outputs == 1 else Multinomial()

    @property
    def _targets(self) -> Tensor:
        return (2.0 * self.codes - 1.0).unsqueeze(1) if self.outputs == 1 else self.codes


@dataclass(frozen=True, eq=False)
class Mode:
    """The most likely values f = K a given the labels.

    Attributes
    ----------
    weights : Tensor
        A, (n, outputs): at the mode equal to the slope of the log likelihood.
    f : Tensor
        Values, (n, outputs).
    curvature : Curvature
        There.
    log_evidence : float
        Laplace's approximation of the log marginal likelihood.
    residual : float
        Largest difference between weights and slope.
    steps : int
        Of Newton's method.
    """

    weights: Tensor
    f: Tensor
    curvature: Curvature
    log_evidence: float
    residual: float
    steps: int

    @property
    def converged(self) -> bool:
        return self.residual <= ROUGH_TOLERANCE


def find_mode(K: Tensor, labels: Labels, start: Tensor | None = None) -> Mode:
    r"""The f that maximises :math:`\log p(y \mid f) - \tfrac12 f^T K^{-1} f`, by Newton's method with halved steps, and

    .. math:: \log q(y) = \log p(y \mid \hat f) - \tfrac12 \hat f^T K^{-1} \hat f - \tfrac12 \log\det(I + K W).

    The problem is concave: there is one mode. `start` are weights to begin with, where they are better than zero.

    References: Rasmussen and Williams, 2006, algorithms 3.1 and 3.3.

    >>> two = Labels(torch.tensor([0.0, 1.0]).double(), 2)
    >>> find_mode(torch.eye(2).double(), two).f.T
    tensor([[-0.4011,  0.4011]], dtype=torch.float64)
    """

    def height(a: Tensor, f: Tensor) -> float:
        return labels.log_likelihood(f) - 0.5 * float((a * f).sum())

    a = K.new_zeros(len(K), labels.outputs)
    f = torch.zeros_like(a)
    value = height(a, f)
    if start is not None:
        near = K @ start
        better = height(start, near)
        if better > value:
            a, f, value = start, near, better
    steps, residual = 0, math.inf
    while True:
        slope = labels.slope(f)
        before, residual = residual, float((slope - a).abs().max())
        curvature = labels.curvature(K, f)
        stuck = residual <= ROUGH_TOLERANCE and residual > 0.5 * before
        if residual <= LAPLACE_TOLERANCE or stuck or steps == LAPLACE_STEPS:
            break
        step = curvature.solve(curvature.weigh(f) + slope) - a
        along = K @ step
        rise = float((slope * along).sum() - (a * along).sum())
        length = 1.0
        for _ in range(MOST_HALVINGS):
            reached = height(a + length * step, f + length * along)
            if reached >= value + 1e-4 * length * rise - 1e-14 * abs(value):
                break
            length /= 2.0
        else:
            break
        a, f, value = a + length * step, f + length * along, reached
        steps += 1
        del curvature  # its matrices make room for the next ones
    return Mode(a, f, curvature, value - 0.5 * curvature.log_det, residual, steps)


class LaplaceEvidence(Evidence):
    r"""Laplace's log marginal likelihood as a function of theta, with its exact gradient. With a and R at the mode

    .. math:: \frac{d \log q}{d K} = \tfrac12 \Bigl(\sum_c a_c a_c^T - \sum_c R_{cc} + \sum_c (u_c a_c^T
        + a_c u_c^T)\Bigr), \qquad u = (I - R K)\, s,

    in which s, the derivative of :math:`-\tfrac12 \log\det(I + K W)` in f, accounts for the mode that moves with K.
    Autograd carries it through the kernel (`PriorMatrix`).

    References: Rasmussen and Williams, 2006, algorithm 5.1 and section 5.5.1.

    >>> from mercer.core.arrays import Points
    >>> from mercer.kernels import Gaussian
    >>> place = Placement(torch.device("cpu"), torch.float64)
    >>> data = Observations(Points(torch.zeros(1, 1).double()), torch.ones(1, 1).double())
    >>> hyper = Hyperparameters.of(Gaussian(), noise=0.0, learn_noise=False)
    >>> value, gradient = LaplaceEvidence(data, 2, hyper, place)(hyper.start)
    >>> round(value, 4), gradient.round(4)  # one label is as likely as the other: log 1/2, nearly
    (-0.7007, array([0.]))
    """

    def __init__(self, data: Observations, n_classes: int, hyperparameters: Hyperparameters, place: Placement) -> None:
        self.data = data.to(place.device)
        self.labels = Labels(self.data.Y[:, 0], n_classes)
        self.hyperparameters = hyperparameters
        self.place = place
        self._prior = prior_matrix(hyperparameters, self.data.X, place)
        self._last: Tensor | None = None

    def evaluate(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """The value and its gradient; an error, or minus infinity without a mode, where it cannot be computed."""
        prior = self._prior.at(theta)
        mode = find_mode(prior.values(), self.labels, self._last)
        if not mode.converged:
            return -math.inf, np.zeros_like(theta)
        self._last = mode.weights
        G = evidence_slope(mode)
        return mode.log_evidence, prior.gradient(lambda rows, columns: G[rows, columns], 0.0)


def evidence_slope(mode: Mode) -> Tensor:
    """The derivative of the log evidence in the entries of K, a symmetric matrix."""
    a, curvature = mode.weights, mode.curvature
    s = curvature.bend()
    u = s - curvature.reduce(curvature.K @ s)
    G = curvature.block_sum().mul_(-0.5)
    return G.addmm_(a, 0.5 * (a + u).mT).addmm_(0.5 * u, a.mT)
