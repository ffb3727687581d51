"""The log marginal likelihood from products with the covariance alone."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.memory import resolve_budget
from mercer.operators.placement import Placement
from mercer.operators.pull_back import pull_back
from mercer.processes.dials import GRADIENT_PROBES, TRAINING_TOLERANCE
from mercer.processes.evidence import Evidence
from mercer.processes.hyperparameters import Hyperparameters
from mercer.processes.log_density import log_density
from mercer.processes.means import Centring, Mean
from mercer.processes.observations import Observations
from mercer.processes.unit_noise import UnitNoise
from mercer.solvers.pcg import automatic_rank
from mercer.solvers.pivoted_cholesky import pivoted_cholesky
from mercer.solvers.preconditioners import preconditioner_at


class IterativeEvidence(Evidence):
    r"""The log marginal likelihood by conjugate gradients and stochastic Lanczos quadrature,

    .. math:: \log\det A = \log\det P + \operatorname{tr} \log(P^{-1/2} A P^{-1/2}), \qquad
        \frac{\partial}{\partial\theta} \log\det A = \mathbb{E}\, (A^{-1} z)^T \frac{\partial A}{\partial\theta}
        (P^{-1} z), \quad z \sim N(0, P),

    with P a low-rank copy of A at fixed pivots. Nothing of size n x n is stored. The random numbers behind z are drawn
    once, so that the value is a smooth function of theta; its error is that of a mean over `probes` and falls with the
    rank of P. Systems are solved to the relative residual `tol`, which the value feels in its square. The estimate of
    the gradient is unbiased but not exactly the derivative of the estimate of the value. Where float32 products are too
    coarse for the noise, it goes on with float64 ones.

    References: Gardner, Pleiss, Bindel, Weinberger and Wilson, *GPyTorch: blackbox matrix-matrix Gaussian process
    inference with GPU acceleration*, 2018; Wenger, Pleiss, Hennig, Cunningham and Gardner, *Preconditioning for
    scalable Gaussian process hyperparameter optimization*, 2022.

    Parameters
    ----------
    data, hyperparameters, mean, place : Observations, Hyperparameters, Mean, Placement
        As for the exact evidence; every row needs noise.
    probes : int
        Number of random vectors.
    tol : float
        Largest relative residual of the systems.
    rank : int or None
        Of the preconditioner; by default what the solver of ridge regressions would take.
    seed : int
        Of the probes and the pivots.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> from mercer.processes.means import ZeroMean
    >>> place = Placement(torch.device("cpu"), torch.float64)
    >>> data = Observations(Points(torch.zeros(1, 1).double()), torch.zeros(1, 1).double())
    >>> hyper = Hyperparameters.of(Gaussian(), noise=1.0, learn_noise=True)
    >>> round(IterativeEvidence(data, hyper, ZeroMean(), place)(hyper.start)[0], 4)  # a normal density of variance 2
    -1.2655
    """

    def __init__(
        self,
        data: Observations,
        hyperparameters: Hyperparameters,
        mean: Mean,
        place: Placement,
        *,
        probes: int = GRADIENT_PROBES,
        tol: float = TRAINING_TOLERANCE,
        rank: int | None = None,
        seed: int = 0,
    ) -> None:
        self.data = data.to(place.device)
        self.hyperparameters, self.mean, self.place = hyperparameters, mean, place
        self.tol, self.seed = tol, seed
        self.centring = Centring.of(mean, self.data.X, self.data.Y)
        self.rank = rank or automatic_rank(len(data), resolve_budget(place.memory_budget, place.device))
        self.probes = probes
        self.steps = 0
        self._fixed: tuple[Tensor, Tensor] | None = None

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = super().__call__(theta)
        if value > -math.inf or self.place.dtype != torch.float32:
            return value, gradient
        self.place = replace(self.place, dtype=torch.float64)  # float32 is too coarse for so little noise
        return self(theta)

    def evaluate(self, theta: np.ndarray, gradient: bool = True) -> tuple[float, np.ndarray]:
        """The value and, where asked for, the gradient; an error where it cannot be computed."""
        hyper, (n, t) = self.hyperparameters, self.data.Y.shape
        system = UnitNoise.of(hyper.kernel_at(theta), hyper.noise_at(theta), self.data, self.place)
        pivots, normal = self._pivots_and_normal(system)
        P = preconditioner_at(system.operator, pivots)
        z = P.root(normal, 1.0)
        given = system.s * self.centring.right_hand_sides.to(z)
        found = system.krylov(P, torch.cat([z, given], dim=1), self.tol)
        self.steps += found.iterations
        solved = (system.s * found.solved).to(self.centring.R)
        _, residuals, a = self.centring.fit(solved[:, self.probes :])
        log_det = system.log_det(P, found.logs[: self.probes])
        value = log_density(float((residuals * a).sum()), log_det, n, t)
        if not gradient:
            return value, np.zeros_like(theta)
        u, w = solved[:, : self.probes], system.s * found.preconditioned[:, : self.probes]
        leaves = hyper.leaves_at(theta, a.device)
        if leaves:
            self._send_back(a, u, w, hyper, leaves)
        slope = 0.5 * float(a.square().sum()) - 0.5 * t / self.probes * float((u * w).sum())
        return value, hyper.gradient(leaves, slope, theta)

    def _send_back(self, a: Tensor, u: Tensor, w: Tensor, hyper: Hyperparameters, leaves: dict[str, Tensor]) -> None:
        """Derivatives of sum(W * K), where W = (a a^T - the mean of (u w^T + w u^T) / 2) / 2."""
        dtype, share = self.place.dtype, -0.25 * a.shape[1] / self.probes
        left = torch.cat([0.5 * a, share * u, share * w], dim=1).to(dtype)
        right = torch.cat([a, w, u], dim=1).to(dtype)
        X = Points(self.data.X.values.to(dtype), self.data.X.names)
        pull_back(
            hyper.kernel.replace(**leaves), X, X, lambda rows, columns: left[rows] @ right[columns].mT, left.device
        )

    def _pivots_and_normal(self, system: UnitNoise) -> tuple[Tensor, Tensor]:
        """Pivots of the first covariance that is asked for, and the normal numbers behind the probes."""
        if self._fixed is None:
            pivots = pivoted_cholesky(system.operator, min(self.rank, len(self.data)), seed=self.seed).pivots
            generator = torch.Generator().manual_seed(self.seed)
            shape = len(pivots) + len(self.data), self.probes
            normal = torch.randn(shape, dtype=torch.float64, generator=generator).to(pivots.device)
            self._fixed = pivots, normal
        return self._fixed
