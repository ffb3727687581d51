"""The method for data whose covariance is too large to be trained with: products instead of factors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from mercer.core.memory import resolve_budget
from mercer.kernels import Kernel
from mercer.operators.placement import Placement
from mercer.processes.dials import PREDICTION_TOLERANCE
from mercer.processes.evidence import Evidence
from mercer.processes.exact_posterior import ExactPosterior
from mercer.processes.hyperparameters import Hyperparameters
from mercer.processes.iterative_evidence import IterativeEvidence
from mercer.processes.iterative_posterior import IterativePosterior, solver_budget
from mercer.processes.means import Mean
from mercer.processes.observations import Observations
from mercer.processes.posterior import Kept, Posterior
from mercer.processes.probed_evidence import ProbedEvidence
from mercer.solvers.choose import memory_needed
from mercer.solvers.pcg import PCG


@dataclass(frozen=True)
class Iterative:
    """Stores at most one n x n factor; if that does not fit, uses conjugate gradients and Lanczos quadrature for
    log-determinants.

    Where one covariance fits, its Cholesky factor gives the exact likelihood, the mean and the variances, and gradients
    of the log-determinant come from samples. The report says which it is.

    Attributes
    ----------
    place : Placement
        Where products run; the factor is float64 in any case.
    dense : bool
        Whether a factor may be used.
    seed : int
        Of probes and preconditioners.
    """

    place: Placement
    dense: bool = True
    seed: int = 0
    name: str = "iterative"
    gain: float = 3e-4

    def evidence(self, data: Observations, hyperparameters: Hyperparameters, mean: Mean) -> Evidence:
        if self._factor_fits(data):
            return ProbedEvidence(data, hyperparameters, mean, self._in_float64, seed=self.seed)
        return IterativeEvidence(data, hyperparameters, mean, self.place, seed=self.seed)

    def posterior(self, kernel: Kernel, noise: float, data: Observations, mean: Mean, reason: str = "") -> Posterior:
        if self._factor_fits(data):
            words = "; ".join(filter(None, [reason, "one dense factor fits the memory budget"]))
            return ExactPosterior.condition(kernel, noise, data, mean, self._in_float64, reason=words)
        return IterativePosterior.condition(kernel, noise, data, mean, self.place, self._solver, reason)

    def restored(self, kept: Kept) -> Posterior:
        """The posterior of a model file, solved by what its report names."""
        if kept.report.solver == "cholesky":
            return ExactPosterior(*kept.of_rows(), self._in_float64, kept.report)
        return IterativePosterior(*kept.of_rows(), self.place, kept.report, self._solver)

    def _factor_fits(self, data: Observations) -> bool:
        budget = resolve_budget(self.place.memory_budget, self.place.device)
        return self.dense and memory_needed(len(data), "cholesky", data.n_targets) <= budget

    @property
    def _in_float64(self) -> Placement:
        return replace(self.place, dtype=torch.float64)

    @property
    def _solver(self) -> PCG:
        return PCG(tol=PREDICTION_TOLERANCE, seed=self.seed, memory_budget=solver_budget(self.place))
