"""The posterior of latent functions by Laplace's approximation, and the probabilities of classes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points, checked_values
from mercer.core.memory import give_back, require, resolve_budget
from mercer.core.results import SolverReport
from mercer.kernels import Kernel
from mercer.kernels.pair import DiagonalPair
from mercer.operators.dials import TILE_NUMBERS
from mercer.operators.placement import Placement
from mercer.processes.averages import mean_sigmoid, mean_softmax
from mercer.processes.curvature import Curvature
from mercer.processes.dials import AVERAGED_ROWS, TILES
from mercer.processes.laplace import Labels, find_mode
from mercer.processes.observations import Observations
from mercer.processes.posterior import tiles_of


class LaplacePosterior:
    r"""Latent functions given labels, normal with

    .. math:: \mu(x) = k(x, D)\, a, \qquad c(x, x) = k(x, x) - k(x, D)\, R\, k(D, x),

    with the weights a and the matrix R of the mode. The matrices are made when first needed and not part of pickles.

    Attributes
    ----------
    kernel : Kernel, str or callable
        Of the prior, the same for each function.
    data : Observations
        Points and codes of their classes.
    n_classes : int
        Number of classes.
    weights : Tensor
        A, (n, outputs).
    place : Placement
        Where products run.
    report : SolverReport
        How the mode was found.
    """

    def __init__(
        self,
        kernel: Kernel,
        data: Observations,
        n_classes: int,
        weights: Tensor,
        place: Placement,
        report: SolverReport,
    ) -> None:
        self.kernel, self.data, self.n_classes = kernel, data, n_classes
        self.weights, self.place, self.report = weights, place, report
        self._curvature: Curvature | None = None

    @classmethod
    def condition(
        cls, kernel: Kernel, data: Observations, n_classes: int, place: Placement
    ) -> tuple[LaplacePosterior, float]:
        """The process with that kernel given labels, and the approximate log marginal likelihood."""
        started = time.perf_counter()
        data = data.to(place.device)
        mode = find_mode(place.matrix(kernel, data.X), Labels(data.Y[:, 0], n_classes))
        report = SolverReport(
            solver="newton",
            converged=mode.converged,
            residual=mode.residual,
            iterations=mode.steps,
            seconds=time.perf_counter() - started,
            reason="Laplace approximation, " + ("one function" if n_classes == 2 else f"{n_classes} functions"),
        )
        return cls(kernel, data, n_classes, mode.weights, place, report), mode.log_evidence

    @property
    def curvature(self) -> Curvature:
        """W and R at the mode, from the weights alone: the numbers that a saved model has too."""
        if self._curvature is None:
            K = self.place.matrix(self.kernel, self.data.X)
            self._curvature = Labels(self.data.Y[:, 0], self.n_classes).curvature(K, K @ self.weights)
        return self._curvature

    def latent(self, X: Points) -> tuple[Tensor, Tensor]:
        """Means (m, outputs) and covariances (m, outputs, outputs) of the functions at each point."""
        means, covariances = [], []
        for part in self._tiles(X):
            place = self.place.beside(self._held_bytes + 8 * (self._copies - 1) * len(part) * len(self.data.X))
            cross = place.matrix(self.kernel, part, self.data.X)
            prior = self.kernel.on(DiagonalPair(part.double())).to(cross)
            means.append(cross @ self.weights)
            covariance = -self.curvature.explained(cross)
            del cross  # makes room for the next tile
            covariance.diagonal(dim1=1, dim2=2).add_(prior.unsqueeze(1))
            covariance.diagonal(dim1=1, dim2=2).clamp_(min=0.0)
            covariances.append(covariance)
        mean, covariance = torch.cat(means), torch.cat(covariances)
        give_back()  # what the tiles took
        return checked_values(mean, "Latent means"), checked_values(covariance, "Latent variances")

    def probabilities(self, X: Points) -> Tensor:
        """The probability of each class, averaged over the functions, (m, classes)."""
        mean, covariance = self.latent(X)
        if self.n_classes > 2:
            return mean_softmax(mean, covariance)
        parts = zip(mean.split(AVERAGED_ROWS), covariance[:, 0].split(AVERAGED_ROWS), strict=True)
        return torch.cat([torch.cat([mean_sigmoid(-m, v), mean_sigmoid(m, v)], dim=1) for m, v in parts])

    def _tiles(self, X: Points) -> Iterator[Points]:
        """X in parts for which k(X, D) and what is made of it fit the budget, beside the matrices of the mode."""
        return tiles_of(X, len(self.weights), self._copies, self._held_bytes, self.place)

    @property
    def _held_bytes(self) -> int:
        """The matrices of the mode."""
        n, outputs = self.weights.shape
        return 8 * n**2 * (2 if outputs == 1 else outputs + 2)

    @property
    def _copies(self) -> int:
        """Matrices of the shape of k(X, D) that are alive while a tile is explained."""
        outputs = self.weights.shape[1]
        return 3 + (2 if outputs == 1 else 6 * outputs)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_curvature": None}


def check_memory(n: int, n_classes: int, learn: bool, place: Placement) -> None:
    """An error that says how many rows would fit, where the matrices for n do not."""
    budget = resolve_budget(place.memory_budget, place.device)
    matrices, tiles = laplace_matrices(n_classes, learn), 8 * TILES * TILE_NUMBERS["cpu"] if learn else 0
    tiles = min(tiles, 8 * TILES * n * n)
    most = int((max(budget - tiles, 0) / (8 * matrices)) ** 0.5)
    what = f"Laplace's approximation for {n:,} rows and {n_classes} classes, {matrices} matrices of float64,"
    advice = f"At most {most:,} rows fit; KernelClassifier takes any number."
    require(8 * matrices * n * n + tiles, budget, what, advice)


def laplace_matrices(n_classes: int, learn: bool) -> int:
    """The n x n matrices that are held at once, with gradients where hyperparameters are learned.

    >>> laplace_matrices(2, learn=True), laplace_matrices(10, learn=True)
    (5, 27)
    """
    if n_classes == 2:
        return 5 if learn else 4
    return 2 * n_classes + 7 if learn else n_classes + 5
