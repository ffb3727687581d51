"""The posterior by preconditioned conjugate gradients: for data whose covariance does not fit in memory."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from mercer.core.memory import resolve_budget
from mercer.core.results import SolverReport
from mercer.kernels import Kernel
from mercer.operators.placement import Placement
from mercer.processes.dials import (
    COLUMNS,
    GRADIENT_PROBES,
    HOPELESS,
    PREDICTION_TOLERANCE,
    SEARCHED,
    SOLVER_SHARE,
    TRAINING_TOLERANCE,
)
from mercer.processes.log_density import log_density
from mercer.processes.means import Centring, FittedMean, Mean
from mercer.processes.observations import Observations
from mercer.processes.posterior import Posterior
from mercer.processes.unit_noise import UnitNoise
from mercer.solvers.pcg import PCG, PreparedPCG
from mercer.solvers.preconditioners import LowRank


def solver_budget(place: Placement) -> int:
    """What conjugate gradients may use."""
    return int(SOLVER_SHARE * resolve_budget(place.memory_budget, place.device))


class IterativePosterior(Posterior):
    r"""A posterior whose systems are solved with products alone, to the relative residual `tol`.

    The mean costs one solve. A variance costs a solve for each point, 64 at a time, and up to the rounding of products
    it is never too small: with v the solution and r what it leaves of k = k(D, x), in units of the noise,

    .. math:: 0 \le k^T A^{-1} k - (k + r)^T v = r^T A^{-1} r \le |r|^2 \le \mathrm{tol}^2 |k|^2.

    The preconditioner is made when it is first needed, serves all solves and is not part of pickles.

    References: Gibbs and MacKay, *Efficient implementation of Gaussian processes*, 1997; Wang, Pleiss, Gardner, Tyree,
    Weinberger and Wilson, *Exact Gaussian processes on a million data points*, 2019.

    >>> from mercer.core.arrays import Points
    >>> from mercer.kernels import Gaussian
    >>> from mercer.processes.means import ZeroMean
    >>> place = Placement(torch.device("cpu"), torch.float64)
    >>> X = Points(torch.zeros(1, 1).double())
    >>> data = Observations(X, torch.ones(1, 1).double())
    >>> given = IterativePosterior.condition(Gaussian(), 1.0, data, ZeroMean(), place)
    >>> given.mean(X), given.variance(X)
    (tensor([[0.5000]], dtype=torch.float64), tensor([0.5000], dtype=torch.float64))
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
        solver: PCG,
    ) -> None:
        self.kernel, self.noise, self.data, self.mean_function = kernel, noise, data, mean_function
        self.weights, self.place, self.report, self.solver = weights, place, report, solver
        self._prepared: tuple[UnitNoise, PreparedPCG] | None = None

    @classmethod
    def condition(
        cls,
        kernel: Kernel,
        noise: float,
        data: Observations,
        mean: Mean,
        place: Placement,
        solver: PCG | None = None,
        reason: str = "",
    ) -> IterativePosterior:
        """The process with that kernel, noise and mean, given the data."""
        solver = PCG(tol=PREDICTION_TOLERANCE, memory_budget=solver_budget(place)) if solver is None else solver
        centring = Centring.of(mean, data.X, data.Y)
        rhs = centring.right_hand_sides
        empty = FittedMean(mean, data.Y.new_zeros(centring.H.shape[1], data.n_targets))
        made = cls(kernel, noise, data, empty, data.Y, place, SolverReport("pcg", False, 1.0), solver)
        solved, report = made.solve_with_report(rhs)
        if place.dtype == torch.float32 and report.residual > HOPELESS:
            made.place, made._prepared = replace(place, dtype=torch.float64), None
            solved, report = made.solve_with_report(rhs)
            reason = "; ".join(filter(None, [reason, "float32 did not converge; switched to float64"]))
        made.mean_function, _, made.weights = centring.fit(solved.to(data.Y))
        words = "; ".join(filter(None, [reason, report.reason]))
        made.report = replace(report, reason=words)
        return made

    @property
    def held_bytes(self) -> int:
        return solver_budget(self.place)

    @property
    def _columns(self) -> int:
        """Right-hand sides that are solved together: half of what is left beside the solver has room for them."""
        room = (1.0 - SOLVER_SHARE) * resolve_budget(self.place.memory_budget, self.place.device)
        return int(min(COLUMNS, max(1.0, 0.5 * room / (8 * SEARCHED * len(self.data)))))

    def solve(self, B: Tensor) -> Tensor:
        return self.solve_with_report(B)[0]

    def solve_with_report(self, B: Tensor) -> tuple[Tensor, SolverReport]:
        """A^-1 B for B of shape (n, k), and how the worst of its columns went."""
        system, prepared = self._system()
        parts = [
            prepared.solve(system.s * part.to(system.s), 1.0) for part in B.split(self._columns, dim=1) if part.shape[1]
        ]
        if not parts:
            return B, SolverReport("pcg", True, 0.0)
        worst = max(parts, key=lambda part: (not part.converged, part.residual))
        report = worst.report(
            iterations=max(part.iterations for part in parts), seconds=sum(part.seconds for part in parts)
        )
        return system.s * torch.cat([part.value for part in parts], dim=1), report

    def explained(self, cross: Tensor) -> Tensor:
        system, prepared = self._system()
        parts = []
        for part in cross.mT.split(self._columns, dim=1):
            k = system.s * part.to(system.s)
            v = prepared.solve(k, 1.0).value
            r = k - v - prepared.products.matmul(v)
            parts.append(((k + r) * v).sum(0))
        return torch.cat(parts)

    def log_marginal_likelihood(self) -> float:
        """The log density of the data, summed over targets: an estimate by stochastic Lanczos quadrature."""
        system, prepared = self._system()
        P, (n, t) = prepared.preconditioner, self.data.Y.shape
        assert isinstance(P, LowRank)
        generator = torch.Generator().manual_seed(self.solver.seed)
        normal = torch.randn(n + P.F.shape[1], GRADIENT_PROBES, dtype=torch.float64, generator=generator).to(P.F.device)
        found = system.krylov(P, P.root(normal, 1.0), TRAINING_TOLERANCE)
        residuals = self.data.Y - self.mean_function(self.data.X).to(self.data.Y)
        fit = float((residuals * self.weights.to(residuals)).sum())
        return log_density(fit, system.log_det(P, found.logs), n, t)

    def extended(self, more: Observations) -> IterativePosterior:
        """The posterior given these data and `more`."""
        data = self.data.followed_by(more)
        mean, words = self.mean_function.mean, f"{len(more):,} rows were added"
        return self.condition(self.kernel, self.noise, data, mean, self.place, self.solver, words)

    def _system(self) -> tuple[UnitNoise, PreparedPCG]:
        if self._prepared is None:
            system = UnitNoise.of(self.kernel, self.noise, self.data, self.place)
            solver = self.solver
            if self.place.dtype == torch.float32:
                accurate = UnitNoise.of(self.kernel, self.noise, self.data, self.place, torch.float64)
                solver = replace(solver, accurate=accurate.operator, switch=False)
            self._prepared = system, solver.prepare(system.operator, 1.0)
        return self._prepared

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_prepared": None}
