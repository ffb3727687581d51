"""Ways to condition a Gaussian process on data: each gives an evidence and a posterior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from mercer.core.memory import readable, resolve_budget
from mercer.kernels import Kernel
from mercer.operators.dials import TILE_NUMBERS
from mercer.operators.placement import Placement
from mercer.processes.dials import EVALUATION, SMALLEST_GAIN, TILES
from mercer.processes.evidence import Evidence, ExactEvidence
from mercer.processes.exact_posterior import ExactPosterior
from mercer.processes.hyperparameters import Hyperparameters
from mercer.processes.iterative import Iterative
from mercer.processes.means import Mean
from mercer.processes.observations import Observations
from mercer.processes.posterior import Kept, Posterior
from mercer.processes.sparse import Sparse


class Method(Protocol):
    """How the covariance of the data is handled."""

    @property
    def name(self) -> str: ...

    @property
    def gain(self) -> float:
        """The relative change of the evidence at which learning ends."""

    def evidence(self, data: Observations, hyperparameters: Hyperparameters, mean: Mean) -> Evidence:
        """The log marginal likelihood of the data as a function of theta."""

    def posterior(self, kernel: Kernel, noise: float, data: Observations, mean: Mean, reason: str = "") -> Posterior:
        """The process given the data."""

    def restored(self, kept: Kept) -> Posterior:
        """The posterior of a model file."""


@dataclass(frozen=True)
class Exact:
    """Dense Cholesky factors in float64."""

    place: Placement
    name: str = "exact"
    gain: float = SMALLEST_GAIN

    def evidence(self, data: Observations, hyperparameters: Hyperparameters, mean: Mean) -> ExactEvidence:
        return ExactEvidence(data, hyperparameters, mean, self.place)

    def posterior(
        self, kernel: Kernel, noise: float, data: Observations, mean: Mean, reason: str = ""
    ) -> ExactPosterior:
        return ExactPosterior.condition(kernel, noise, data, mean, self.place, reason=reason)

    def restored(self, kept: Kept) -> ExactPosterior:
        return ExactPosterior(*kept.of_rows(), self.place, kept.report)


@dataclass(frozen=True)
class MethodOptions:
    """Settings of an estimator that methods may use.

    Attributes
    ----------
    seed : int
        Of probe vectors, pivots and inducing points.
    n_landmarks : int or None
        Number of inducing points, None for the method's own.
    """

    seed: int = 0
    n_landmarks: int | None = None


METHODS: dict[str, Callable[[Placement, MethodOptions], Method]] = {
    "exact": lambda place, options: Exact(place),
    "iterative": lambda place, options: Iterative(place, seed=options.seed),
    "sgpr": lambda place, options: Sparse(place, options.n_landmarks, options.seed),
}
"""The methods by name."""


def dense_bytes(n: int, taught: int) -> int:
    """What the exact method stores: the factor and tiles of its matrix, or for gradients an inverse and more tiles."""
    evaluated = min(n**2, EVALUATION)
    return 8 * max(n**2 + evaluated, 2 * taught**2 + TILES * min(taught**2, TILE_NUMBERS["cpu"]))


def choose_method(method: str, n: int, taught: int, place: Placement) -> tuple[str, str]:
    """The method's name and why: "auto" is "exact" where its matrices fit the memory budget, else "iterative".

    >>> import torch
    >>> choose_method("auto", 1000, 1000, Placement(torch.device("cpu"), torch.float64, "1GiB"))
    ('exact', 'its matrices of 31.3 MiB fit the memory budget of 1.0 GiB')
    """
    if method != "auto":
        return method, "as asked for"
    needed, budget = dense_bytes(n, taught), resolve_budget(place.memory_budget, place.device)
    if needed <= budget:
        return "exact", f"its matrices of {readable(needed)} fit the memory budget of {readable(budget)}"
    words = f"dense matrices of {readable(needed)} do not fit the memory budget of {readable(budget)}"
    return "iterative", words
