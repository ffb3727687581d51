"""Coordinates of functions of several classes in which the curvature of an objective is near the identity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from mercer.solvers.decompose import eigh
from mercer.solvers.dials import FLATTEST
from mercer.solvers.objective import Objective


class Scale(Protocol):
    """A map of theta (r + 1, t), coefficients and in the last row intercepts, to coordinates z and back."""

    def forth(self, theta: Tensor) -> Tensor:
        """The coordinates of theta."""

    def back(self, z: Tensor) -> Tensor:
        """Theta of its coordinates; without an intercept its last row is zero."""

    def half(self, slope: Tensor) -> Tensor:
        """The slopes in coordinates from those in theta."""


@dataclass(frozen=True, eq=False)
class MeanScale:
    """Coordinates along the eigenvectors Q of the mean curvature of the losses, in units (r + 1, t)."""

    unit: Tensor
    Q: Tensor

    @classmethod
    def of(cls, objective: Objective, spectrum: Tensor, mu: Tensor, Q: Tensor, weight: float) -> MeanScale:
        """For features whose columns are orthogonal, with squared norms `spectrum`; rows weigh `weight` in all.

        The mean curvature has eigenvalues mu (t,).
        """
        mu = mu.clamp(min=FLATTEST * float(mu.max().clamp(min=FLATTEST)))
        unit = (2 * objective.alpha + spectrum.unsqueeze(1) * mu).rsqrt()
        last = (mu * weight).rsqrt() if objective.intercept else torch.zeros_like(mu)
        return cls(torch.cat([unit, last.unsqueeze(0)]), Q)

    def forth(self, theta: Tensor) -> Tensor:
        used = self.unit > 0
        return torch.where(used, (theta @ self.Q) / torch.where(used, self.unit, 1.0), 0.0).reshape(-1)

    def back(self, z: Tensor) -> Tensor:
        return (self.unit * z.reshape(self.unit.shape)) @ self.Q.T

    def half(self, slope: Tensor) -> Tensor:
        return (slope @ self.Q * self.unit).reshape(-1)


@dataclass(frozen=True, eq=False)
class FactorScale:
    """Coordinates z = L^T theta, where L L^T is near the curvature of t classes."""

    L: Tensor
    intercept: bool
    t: int

    def forth(self, theta: Tensor) -> Tensor:
        return (self.L.T @ self._used(theta)).squeeze(1)

    def back(self, z: Tensor) -> Tensor:
        theta = torch.linalg.solve_triangular(self.L.mT, z.unsqueeze(1), upper=True).reshape(-1, self.t)
        return theta if self.intercept else torch.cat([theta, theta.new_zeros(1, self.t)])

    def half(self, slope: Tensor) -> Tensor:
        return torch.linalg.solve_triangular(self.L, self._used(slope), upper=False).squeeze(1)

    def _used(self, theta: Tensor) -> Tensor:
        return (theta if self.intercept else theta[:-1]).reshape(-1, 1)


def mean_curvature(objective: Objective, f: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues (t,) and eigenvectors (t, t) of the mean of the second derivatives of the losses at f (n, t)."""
    weights = torch.as_tensor(objective.w).to(f).reshape(-1).expand(len(f))
    mean = torch.tensordot(weights / weights.sum(), objective.loss.hessian(objective.targets, f), dims=1)
    if not objective.loss.joint:
        return mean.clamp(min=0.0), torch.eye(len(mean)).to(mean)
    mu, Q = eigh(mean, "The mean curvature of the losses")
    return mu.clamp(min=0.0), Q
