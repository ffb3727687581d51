"""The posterior by one dense Cholesky factorisation."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.core.results import SolverReport
from mercer.kernels import Kernel
from mercer.operators.placement import Placement
from mercer.processes.copies import copied
from mercer.processes.dials import ALONE, EXACT_POSTERIOR_TOLERANCE, REFINEMENTS, SHOWN
from mercer.processes.exact import covariance, covariance_factor
from mercer.processes.log_density import log_density
from mercer.processes.means import Centring, FittedMean, Mean
from mercer.processes.observations import Observations
from mercer.processes.posterior import Posterior
from mercer.solvers.factor import Factor


@dataclass(frozen=True, eq=False, repr=False)
class LeaveOneOut:
    """Predictions for each row from all others, with kernel and noise as they are; prints as a table.

    Attributes
    ----------
    mean : str, float or callable
        (n,) or (n, t).
    std : array of shape (n,) or (n, t)
        Deviations of the observations, noise included.
    log_density : array of shape (n,) or (n, t)
        Log densities of the observations under these predictions.
    observed : array of shape (n,) or (n, t)
        The observations.
    """

    mean: Any
    std: Any
    log_density: Any
    observed: Any

    def __repr__(self) -> str:
        mean, std, density, y = (_columns(v) for v in (self.mean, self.std, self.log_density, self.observed))
        error = y - mean
        known = np.isfinite(error).all(1)
        lines = [f"Leave-one-out of {len(y):,} rows"]
        for j in range(y.shape[1]):
            which = f"target {j}: " if y.shape[1] > 1 else ""
            spread, missed = float(y[known, j].var()), float(np.mean(error[known, j] ** 2))
            r2 = f", R2 {1 - missed / spread:.4f}" if spread > 0 else ""
            lines.append(f"  {which}RMSE {missed**0.5:.4g}{r2}, mean log density {density[known, j].mean():.4g}")
        far = np.argsort(-np.where(known, np.abs(error / std).max(1), -1.0), kind="stable")[:SHOWN]
        lines += ["Farthest from their predictions", "     row     observed         mean          std  deviations"]
        for i in far:
            for j in range(y.shape[1]):
                row = f"{i:>8}" if j == 0 else " " * 8
                z = error[i, j] / std[i, j]
                lines.append(f"{row} {y[i, j]:>12.5g} {mean[i, j]:>12.5g} {std[i, j]:>12.4g} {z:>+11.2f}")
        return "\n".join(lines)


def _columns(values: Any) -> np.ndarray:
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    return array.reshape(len(array), -1)


class ExactPosterior(Posterior):
    """A posterior whose systems are solved with the Cholesky factor of A, in float64.

    The factor is made when it is first needed and not part of pickles. What leave-one-out gave is kept.
    """

    def __init__(
        self,
        kernel: Kernel,
        noise: float,
        data: Observations,
        mean_function: FittedMean,
        weights: Tensor,
        place: Placement,
        report: SolverReport,
        factor: Factor | None = None,
    ) -> None:
        self.kernel, self.noise, self.data, self.mean_function = kernel, noise, data, mean_function
        self.weights, self.place, self.report, self._factor = weights, place, report, factor
        self._left_out: LeaveOneOut | None = None

    @classmethod
    def condition(
        cls,
        kernel: Kernel,
        noise: float,
        data: Observations,
        mean: Mean,
        place: Placement,
        factor: Factor | None = None,
        reason: str = "",
    ) -> ExactPosterior:
        """The process with that kernel, noise and mean, given the data."""
        started = time.perf_counter()
        if factor is None:
            factor = covariance_factor(kernel, noise, data, place)
        centring = Centring.of(mean, data.X, data.Y)
        rhs = centring.right_hand_sides.to(factor.L)
        solved, residual, steps = _refined(factor, rhs, kernel, noise, data, place)
        fitted, _, weights = centring.fit(solved.to(data.Y))
        words = [reason]
        if factor.jitter:
            words.append("the covariance of the data is singular to rounding, so jitter was added")
        if residual > EXACT_POSTERIOR_TOLERANCE:
            words.append("the data cannot be explained without more noise")
        report = SolverReport(
            solver="cholesky",
            converged=residual <= EXACT_POSTERIOR_TOLERANCE,
            residual=residual,
            iterations=steps,
            seconds=time.perf_counter() - started,
            jitter=factor.jitter,
            reason="; ".join(filter(None, words)),
        )
        return cls(kernel, noise, data, fitted, weights, place, report, factor)

    @property
    def factor(self) -> Factor:
        """L with L L^T = A."""
        if self._factor is None:
            self._factor = covariance_factor(self.kernel, self.noise, self.data, self.place)
        return self._factor

    @property
    def held_bytes(self) -> int:
        return 8 * len(self.data) ** 2

    def solve(self, B: Tensor) -> Tensor:
        """A^-1 B for B of shape (n, k)."""
        return self.factor.solve(B.to(self.factor.L))

    def log_marginal_likelihood(self) -> float:
        """The log density of the data, summed over targets."""
        n, t = self.data.Y.shape
        residuals = self.data.Y - self.mean_function(self.data.X).to(self.data.Y)
        fit = float((residuals * self.weights.to(residuals)).sum())
        return log_density(fit, self.factor.log_det(), n, t)

    def explained(self, cross: Tensor) -> Tensor:
        """k(x, D) A^-1 k(D, x) for a few points, (m,), from k(X, D): a sum of squares."""
        return self.factor.half_solve(cross.mT.to(self.factor.L)).square().sum(0)

    def explained_covariance(self, cross: Tensor) -> Tensor:
        """k(X, D) A^-1 k(D, X), from k(X, D)."""
        half = self.factor.half_solve(cross.mT.to(self.factor.L))
        return half.mT @ half

    def extended(self, more: Observations) -> ExactPosterior:
        """The posterior given these data and `more`: equal to conditioning on all at once, at a lower cost."""
        if self.data.square:
            raise InputError("Rows cannot be added to a precomputed Gram matrix.")
        started = time.perf_counter()
        cross = self.place.matrix(self.kernel, more.X, self.data.X)
        corner = covariance(self.kernel, self.noise, more, self.place)
        factor = self.factor.extended(cross, corner)
        data = self.data.followed_by(more)
        grown = self.condition(
            self.kernel, self.noise, data, self.mean_function.mean, self.place, factor, f"{len(more):,} rows were added"
        )
        grown.report = SolverReport(**(vars(grown.report) | {"seconds": time.perf_counter() - started}))
        return grown

    def leave_one_out(self) -> LeaveOneOut:
        r"""Means, deviations and log densities of each observation given all others, in closed form,

        .. math:: \mu_i = y_i - a_i / G_{ii}, \qquad \sigma_i^2 = 1 / (A^{-1})_{ii},
            \qquad G = A^{-1} - A^{-1} H (H^T A^{-1} H)^{-1} H^T A^{-1},

        in which the coefficients of the mean are found again without the row (G = A^-1 where there are none), and not
        a number where the others do not decide them.

        References: Rasmussen and Williams, 2006, section 5.4.2; Dubrule, *Cross validation of kriging in a unique
        neighborhood*, 1983.
        """
        if self._left_out is not None:
            return self._left_out
        inverse = self.factor.inverse_diagonal()
        centring = Centring.of(self.mean_function.mean, self.data.X, self.data.Y)
        G = inverse.clone()
        if centring.H.shape[1]:
            S_H = self.solve(centring.H)
            G -= ((S_H @ centring.inverse_normal(S_H.to(centring.H)).to(S_H)) * S_H).sum(1)
        G[ALONE * inverse >= G] = torch.nan
        Y = self.data.Y.to(G)
        mean = Y - self.weights.to(G) / G.unsqueeze(1)
        variance = (1.0 / inverse).unsqueeze(1).expand_as(mean)
        log_density = -0.5 * ((Y - mean).square() / variance + variance.log() + math.log(2.0 * math.pi))
        self._left_out = LeaveOneOut(mean, variance.sqrt(), log_density, Y)
        return self._left_out

    def left_out_deviates(self) -> np.ndarray:
        """Errors of `leave_one_out` in units of their deviations, (n, t), of rows that were really left out.

        Those are not whose copies stayed, or without which the mean function is not known.
        """
        found = self.leave_one_out()
        deviates = (self.data.Y.to(found.mean) - found.mean) / found.std
        known = torch.isfinite(deviates).all(1) & ~copied(self.data).to(deviates.device)
        return np.asarray(deviates[known].cpu())

    @property
    def knows_left_out(self) -> bool:
        """Whether `leave_one_out` was asked for before."""
        return self._left_out is not None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_factor": None}


def _refined(
    factor: Factor, rhs: Tensor, kernel: Kernel, noise: float, data: Observations, place: Placement
) -> tuple[Tensor, float, int]:
    """A^-1 rhs with jitter refined away as far as it goes, the relative residual, and the number of refinements."""
    operator, row_noise = place.operator(kernel, data.X), data.row_noise(noise).to(factor.L).unsqueeze(1)
    size = rhs.norm(dim=0).clamp(min=torch.finfo(torch.float64).tiny)

    def residual_of(x: Tensor) -> tuple[Tensor, float]:
        r = rhs - operator.matmul(x).to(rhs) - row_noise * x
        return r, float((r.norm(dim=0) / size).max())

    x = factor.solve(rhs)
    r, residual = residual_of(x)
    steps = 0
    while factor.jitter and steps < REFINEMENTS:
        better = x + factor.solve(r)
        r_better, smaller = residual_of(better)
        if not smaller < 0.5 * residual:
            break
        x, r, residual, steps = better, r_better, smaller, steps + 1
    return x, residual, steps
