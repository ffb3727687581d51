"""The posterior from inducing points."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.results import SolverReport
from mercer.kernels import Kernel
from mercer.operators.placement import Placement
from mercer.processes.means import Centring, FittedMean, Mean
from mercer.processes.observations import Observations
from mercer.processes.posterior import Posterior
from mercer.processes.sparse_evidence import (
    Sums,
    block_sums,
    blocks_of,
    bound,
    eliminated,
    residuals_of,
    total,
    whitening,
)
from mercer.solvers.decompose import eigh


@dataclass(frozen=True, eq=False)
class AllRows:
    """Sums over rows that are not kept: `shift` (p, t) are the coefficients of the mean that targets are less there."""

    sums: Sums
    n_rows: int
    shift: Tensor

    def followed_by(self, more: AllRows) -> AllRows:
        """With the sums of further rows, made with the same shift."""
        both = zip(self.sums.parts(), more.sums.parts(), strict=True)
        return replace(self, sums=Sums(*(a + b.to(a) for a, b in both)), n_rows=self.n_rows + more.n_rows)


class SparsePosterior(Posterior):
    r"""The variational posterior of inducing points Z (SGPR),

    .. math:: \mu(x) = m(x) + k(x, Z) (K_{uu} + \Phi)^{-1} K_{uf} \Sigma^{-1} (y - m), \qquad
        c(x, x') = k(x, x') - k(x, Z) \left( K_{uu}^{-1} - (K_{uu} + \Phi)^{-1} \right) k(Z, x'),

    with :math:`\Phi = K_{uf} \Sigma^{-1} K_{fu}`. It is the exact posterior of pseudo-observations at Z whose noise has
    the covariance :math:`K_{uu} \Phi^{-1} K_{uu}`, and `solve` inverts the covariance of these. Equal to the exact
    posterior where Z are all rows; else its variances are, as a rule, too large.

    References: Titsias, *Variational learning of inducing variables in sparse Gaussian processes*, 2009.

    >>> from mercer.kernels import Gaussian
    >>> from mercer.processes.means import ZeroMean
    >>> place = Placement(torch.device("cpu"), torch.float64)
    >>> X = Points(torch.zeros(1, 1).double())
    >>> data = Observations(X, torch.ones(1, 1).double())
    >>> given = SparsePosterior.condition(Gaussian(), 1.0, data, ZeroMean(), place, Z=X)
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
        Z: Points,
        rows: AllRows | None = None,
    ) -> None:
        self.rows = rows
        self.kernel, self.noise, self.data, self.mean_function = kernel, noise, data, mean_function
        self.weights, self.place, self.report, self.Z = weights, place, report, Z
        self._basis: tuple[Tensor, Tensor] | None = None

    @classmethod
    def condition(
        cls,
        kernel: Kernel,
        noise: float,
        data: Observations,
        mean: Mean,
        place: Placement,
        Z: Points,
        reason: str = "",
        rows: AllRows | None = None,
    ) -> SparsePosterior:
        """The process with that kernel, noise and mean, given the data, by way of Z; or given all `rows`."""
        started = time.perf_counter()
        centring = Centring.of(mean, data.X, data.Y)
        empty = FittedMean(mean, data.Y.new_zeros(centring.H.shape[1], data.n_targets))
        report = SolverReport("sgpr", True, 0.0)
        made = cls(kernel, noise, data, empty, data.Y, place, report, Z, rows)
        t, (T, sums) = data.n_targets, made._sums()
        made._basis = turned(T, sums)
        L, C, G = eliminated(sums)
        residual = residuals_of(G, t)
        shift = centring.least_squares if rows is None else rows.shift
        made.mean_function = FittedMean(mean, shift.to(data.Y) - residual[t:].to(data.Y))
        made.weights = (T.mT @ torch.linalg.solve_triangular(L.mT, C @ residual, upper=True)).to(data.Y)
        words = [reason, f"an approximation with {len(Z):,} inducing points"]
        if len(T) < len(Z):
            words.append(f"{len(T):,} of these are independent to rounding")
        seconds = time.perf_counter() - started
        made.report = SolverReport("sgpr", True, 0.0, seconds=seconds, reason="; ".join(filter(None, words)))
        return made

    @property
    def centres(self) -> Points:
        return self.Z

    def solve(self, B: Tensor) -> Tensor:
        root, values = self.basis
        return root @ ((values / (1.0 + values)).unsqueeze(1) * (root.mT @ B.to(root)))

    def explained(self, cross: Tensor) -> Tensor:
        root, values = self.basis
        return (cross.to(root) @ root).square() @ (values / (1.0 + values))

    def update(self, drawn: Tensor, normal: Tensor) -> Tensor:
        root, values = self.basis
        noise = root @ ((values.sqrt() / (1.0 + values)).unsqueeze(1) * normal[: len(values)].to(root))
        return self.solve(drawn) + noise

    def log_marginal_likelihood(self) -> float:
        """A lower bound of the log density of the data, summed over targets."""
        return float(bound(self._sums()[1], self.n_rows, self.data.n_targets))

    @property
    def n_rows(self) -> int:
        """The number of rows that it is given, of which some may be all that is kept."""
        return len(self.data) if self.rows is None else self.rows.n_rows

    def extra_arrays(self) -> dict[str, Tensor]:
        if self.rows is None:
            return {"inducing": self.Z.values}
        count = torch.tensor([self.rows.n_rows])
        return {"inducing": self.Z.values, "shift": self.rows.shift, "count": count} | self.rows.sums.to_arrays()

    @property
    def basis(self) -> tuple[Tensor, Tensor]:
        """V and s with V^T K_uu V = I and V^T Phi V = diag(s)."""
        if self._basis is None:
            self._basis = turned(*self._sums())
        return self._basis

    def _sums(self) -> tuple[Tensor, Sums]:
        """T with T^T T = K_uu^-1, and the sums over all rows."""
        if self.rows is not None:
            with torch.no_grad():
                return whitening(self.kernel, self.Z), self.rows.sums
        centring = Centring.of(self.mean_function.mean, self.data.X, self.data.Y)
        noise = torch.tensor(self.noise, dtype=torch.float64, device=self.data.Y.device)
        with torch.no_grad():
            blocks = blocks_of(self.data, centring.shifted, len(self.Z))
            T = whitening(self.kernel, self.Z)
            return T, total(block_sums(self.kernel, noise, self.Z, T, *block) for block in blocks)

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_basis": None}


def turned(T: Tensor, sums: Sums) -> tuple[Tensor, Tensor]:
    """V and s with V^T K_uu V = I and V^T Phi V = diag(s), from T with T K_uu T^T = I."""
    values, vectors = eigh(sums.squares)
    return T.mT @ vectors, values.clamp(min=0.0)
