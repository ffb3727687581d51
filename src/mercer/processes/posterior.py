"""A Gaussian process conditioned on data is a Gaussian process: its mean, variance and covariance anywhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import ModelFileError
from mercer.core.memory import give_back, require, resolve_budget
from mercer.core.results import SolverReport
from mercer.kernels import Kernel
from mercer.kernels.pair import DensePair, DiagonalPair
from mercer.operators.dials import TILE_NUMBERS
from mercer.operators.placement import Placement
from mercer.processes.dials import COPIES, CROSS_TILE, GPU_TILE, LEAST_ROWS
from mercer.processes.means import FittedMean
from mercer.processes.observations import Observations


def tiles_of(X: Points, n: int, copies: int, held: int, place: Placement) -> Iterator[Points]:
    """X in parts for which some matrices with n columns fit the budget beside the bytes that are held already.

    They take a sixth of what is left; tiles of the kernel, and what allocators keep of both, take the rest.
    """
    budget, row = resolve_budget(place.memory_budget, place.device), 8 * copies * n
    require(row, budget, f"the covariance of one point with {n:,} rows")
    largest = CROSS_TILE * (GPU_TILE if place.device.type == "cuda" else 1)
    room = budget - held
    size = max(min(room // 6, largest) // row, min(LEAST_ROWS, budget // row))
    for start in range(0, len(X), size):
        if room < largest:
            give_back()
        yield X.take(slice(start, start + size))


class Kept(NamedTuple):
    """What a model file holds of a posterior; `arrays` are its `extra_arrays`."""

    kernel: Kernel
    noise: float
    data: Observations
    mean_function: FittedMean
    weights: Tensor
    report: SolverReport
    arrays: dict[str, Tensor]

    def of_rows(self) -> tuple[Kernel, float, Observations, FittedMean, Tensor]:
        """What a posterior with one weight for each row is made of; an error where there is anything else."""
        n, m = len(self.data), len(self.weights)
        if n != m or self.arrays:
            raise ModelFileError(f"there are {m} weights for {n} rows, or arrays too many")
        return self.kernel, self.noise, self.data, self.mean_function, self.weights


class Posterior(ABC):
    r"""The process given the data, with A = K + Sigma and weights a = A^-1 (y - m),

    .. math:: \mu(x) = m(x) + k(x, D)\, a, \qquad c(x, x') = k(x, x') - k(x, D)\, A^{-1} k(D, x').

    A subclass says how systems with A are solved. Values are of the process itself, without noise. Everything is in
    float64; gradients flow to points that require them.

    Attributes
    ----------
    kernel, noise : Kernel, str or callable and float
        Of the prior; `noise` is the variance that all rows share.
    data : Observations
        The observations.
    mean_function : FittedMean
        The prior mean with its coefficients.
    weights : Tensor
        A, (n, t).
    place : Placement
        Where products run.
    report : SolverReport
        How the weights were found.
    clamped : int
        Number of variances below zero by rounding so far, that were given out as zero.
    """

    kernel: Kernel
    noise: float
    data: Observations
    mean_function: FittedMean
    weights: Tensor
    place: Placement
    report: SolverReport
    clamped: int = 0

    @abstractmethod
    def solve(self, B: Tensor) -> Tensor:
        """A^-1 B for B of shape (n, k)."""

    @abstractmethod
    def log_marginal_likelihood(self) -> float:
        """The log density of the data, summed over targets."""

    @property
    def centres(self) -> Points:
        """The points at which kernels make up the mean, `weights` times: the rows of the data."""
        return self.data.X

    def update(self, drawn: Tensor, normal: Tensor) -> Tensor:
        """A^-1 (g + noise) for values g (n, k) of prior functions at the centres, with noise from normal numbers."""
        noise = self.data.row_noise(self.noise).sqrt().unsqueeze(1)
        return self.solve(drawn + noise * normal.to(noise))

    def mean(self, X: Points) -> Tensor:
        """The mean, (m, t)."""
        m = self.mean_function(X)
        if self._at_once(X):
            return m + self.cross(X).to(m) @ self.weights.to(m)
        product = self.place.gram(self.kernel, X, self.centres).matmul(self.weights.to(self.place.device))
        return m + product.to(m)

    def variance(self, X: Points) -> Tensor:
        """The variance of the process, (m,), never below zero."""
        return self.mean_and_variance(X)[1]

    def mean_and_variance(self, X: Points) -> tuple[Tensor, Tensor]:
        """Both, from one evaluation of k(X, D)."""
        means, variances = [], []
        for part in self.tiles(X):
            cross = self.cross(part)
            means.append(cross @ self.weights.to(cross))
            variances.append(self.prior_variance(part) - self.explained(cross))
            del cross  # makes room for the next tile
        m, variance = self.mean_function(X), torch.cat(variances)
        self.clamped += int((variance.detach() < 0).sum())
        return m + torch.cat(means).to(m), variance.clamp(min=0.0)

    def covariance(self, X: Points) -> Tensor:
        """The covariance of the process, (m, m)."""
        m = len(X)
        budget = resolve_budget(self.place.memory_budget, self.place.device)
        advice = "Ask for return_std, which takes rows in parts, or for fewer points."
        needed = self.held_bytes + 8 * (4 * m * m + 3 * m * len(self.centres))
        require(needed, budget, f"the covariance of {m:,} points", advice)
        if self.differentiable(X):
            prior = self.kernel.on(DensePair(X)).to(torch.float64)
        else:
            prior = self.place.matrix(self.kernel, X)
        cross = self.cross(X)
        found = prior - self.explained_covariance(cross)
        return 0.5 * (found + found.mT)

    def explained_covariance(self, cross: Tensor) -> Tensor:
        """k(X, D) A^-1 k(D, X), from k(X, D)."""
        return cross @ self.solve(cross.mT)

    def explained(self, cross: Tensor) -> Tensor:
        """k(x, D) A^-1 k(D, x) for a few points, (m,), from k(X, D)."""
        return (cross * self.solve(cross.mT).mT).sum(1)

    def extra_arrays(self) -> dict[str, Tensor]:
        """What a model file must hold besides data, weights and mean."""
        return {}

    def prior_variance(self, X: Points) -> Tensor:
        """k(x, x), (m,)."""
        return self.kernel.on(DiagonalPair(X.double())).to(device=self.place.device, dtype=torch.float64)

    def cross(self, X: Points) -> Tensor:
        """k(X, D) as a matrix (m, n)."""
        if self._at_once(X):
            D = self.centres.values.to(device=X.values.device, dtype=torch.float64)
            return self.kernel.on(DensePair(X.double(), Points(D, self.centres.names)))
        place = self.place.beside(self.held_bytes + 8 * (COPIES - 1) * len(X) * len(self.centres))
        return place.matrix(self.kernel, X, self.centres)

    def tiles(self, X: Points) -> Iterator[Points]:
        """X in parts for which k(X, D) and what is made of it fit the budget."""
        return tiles_of(X, len(self.centres), COPIES, self.held_bytes, self.place)

    def _at_once(self, X: Points) -> bool:
        """Whether k(X, D) is evaluated straight from the formula: for gradients, and where it is as small as a tile."""
        if self.differentiable(X):
            return True
        here = X.is_tensor and X.values.device.type == self.place.device.type == "cpu" and not self.data.square
        return here and len(X) * len(self.centres) <= TILE_NUMBERS["cpu"]

    @property
    def held_bytes(self) -> int:
        """What `solve` keeps in memory."""
        return 0

    @staticmethod
    def differentiable(X: Points) -> bool:
        """Whether gradients of the points are wanted."""
        return X.is_tensor and X.values.requires_grad and torch.is_grad_enabled()
