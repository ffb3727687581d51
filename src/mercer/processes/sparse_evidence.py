"""A lower bound of the log marginal likelihood from inducing points: its cost is linear in the number of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.core.memory import resolve_budget
from mercer.kernels import Kernel
from mercer.kernels.pair import DensePair, DiagonalPair
from mercer.operators.placement import Placement
from mercer.processes.dials import BLOCK_NUMBERS, INDEPENDENT
from mercer.processes.evidence import Evidence
from mercer.processes.hyperparameters import Hyperparameters
from mercer.processes.log_density import log_density
from mercer.processes.means import Centring, Mean
from mercer.processes.observations import Observations
from mercer.processes.unit_noise import UnitNoise
from mercer.solvers.decompose import pinv
from mercer.solvers.factor import cholesky, failure, independent_functions
from mercer.solvers.pivoted_cholesky import pivoted_cholesky


@dataclass(frozen=True)
class Sums:
    r"""What the bound asks of the rows, with F = T K_uf the whitened features of inducing points, :math:`\Sigma` the
    noise and B = [R H] the targets and the mean's basis.

    Attributes
    ----------
    squares : Tensor
        F Sigma^-1 F^T, (r, r).
    products : Tensor
        F Sigma^-1 B, (r, b).
    targets : Tensor
        B^T Sigma^-1 B, (b, b).
    missed : Tensor
        tr(Sigma^-1 (K_ff - Q)), in which no row has less than nothing.
    log_noise : Tensor
        Log det Sigma.
    """

    squares: Tensor
    products: Tensor
    targets: Tensor
    missed: Tensor
    log_noise: Tensor

    def parts(self) -> list[Tensor]:
        return [self.squares, self.products, self.targets, self.missed, self.log_noise]

    def to_arrays(self) -> dict[str, Tensor]:
        """The sums by name, which add up over disjoint rows."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def block_sums(kernel: Kernel, noise: Tensor, Z: Points, T: Tensor, block: Observations, B: Tensor) -> Sums:
    """The sums over some rows, with gradients to parameters that are tensors. Features are whitened before they are
    multiplied: products of kernel values would lose the digits in which nearly dependent points differ, or overflow.
    """
    variances = noise + block.row_noise(0.0)
    s = variances.sqrt()
    F, scaled = (T @ kernel.on(DensePair(Z, block.X))) / s, B / s.unsqueeze(1)
    missed = (kernel.on(DiagonalPair(block.X.double())) / variances - F.square().sum(0)).clamp(min=0.0).sum()
    return Sums(F @ F.mT, F @ scaled, scaled.mT @ scaled, missed, variances.log().sum())


def whitening(kernel: Kernel, Z: Points) -> Tensor:
    r"""T (r, m) with :math:`T^T T = K_{uu}^{-1}` for r independent inducing points, zero for the others.

    Gradients flow to parameters that are tensors: from :math:`T K_{uu} T^T = I` follows, up to a rotation that the
    bound does not see, :math:`dT = -\tfrac12 T\, dK_{uu}\, T^T T`.

    >>> from mercer.kernels import Gaussian
    >>> whitening(4.0 * Gaussian(), Points(torch.zeros(2, 1).double()))
    tensor([[0.5000, 0.0000]], dtype=torch.float64)
    """
    K = kernel.on(DensePair(Z))
    values = K.detach().to(torch.float64)
    E = independent_functions(values, INDEPENDENT)
    if E is None:
        what = "The covariance of inducing points"
        raise failure(values, f"{what} is not positive semi-definite", what, "use method='exact'")
    M = E.mT @ K.to(E) @ E
    return E.mT - 0.5 * (M - M.detach()) @ E.mT


def bound(sums: Sums, n: int, t: int) -> Tensor:
    r"""Titsias' bound from the sums over all rows, with the best coefficients of the mean,

    .. math:: \log N(y; m, Q + \Sigma) - \tfrac12 \operatorname{tr} \Sigma^{-1} (K_{ff} - Q), \qquad
        Q = K_{fu} K_{uu}^{-1} K_{uf} = F^T F.
    """
    L, _, G = eliminated(sums)
    residual = residuals_of(G.detach(), t)
    fit = (residual * (G @ residual)).sum()
    lost = torch.finfo(torch.float64).eps * float((residual * (sums.targets.detach() @ residual)).sum())
    if lost > max(1.0, float(fit.detach())):
        raise InputError(
            "The noise is too small compared with y for inducing points: the likelihood would be mostly rounding "
            "errors. "
            "Use method='exact' or a larger noise."
        )
    log_det = 2.0 * L.diagonal().log().sum() + sums.log_noise
    return log_density(fit, log_det + sums.missed, n, t)


def eliminated(sums: Sums) -> tuple[Tensor, Tensor, Tensor]:
    """L with L L^T = I + F Sigma^-1 F^T, C = L^-1 F Sigma^-1 B, and B^T (Q + Sigma)^-1 B."""
    identity = torch.eye(len(sums.squares)).to(sums.squares)
    L = cholesky(identity + sums.squares, "The covariance of the data by way of inducing points", "use a larger noise")
    C = torch.linalg.solve_triangular(L, sums.products, upper=False)
    return L, C, sums.targets - C.mT @ C


def residuals_of(G: Tensor, t: int) -> Tensor:
    """What turns B = [R H] into the residuals R - H beta of the best coefficients, from G = B^T (Q + Sigma)^-1 B.

    The bound is flat in these, so that its derivative is the one with beta fixed.
    """
    beta = pinv(G[t:, t:], "The normal matrix of the mean function") @ G[t:, :t]
    return torch.cat([torch.eye(t).to(G), -beta])


class SparseEvidence(Evidence):
    r"""Titsias' lower bound of the log marginal likelihood (SGPR), with its exact gradient, in float64.

    The inducing points Z are rows of the data, chosen once by randomly pivoted Cholesky for the kernel at its start.
    Two passes over the rows, block by block, take O(n m^2) operations and keep nothing of size n m: the first adds up
    what the bound asks of the rows, the second carries its derivatives back through the kernel.

    References: Titsias, *Variational learning of inducing variables in sparse Gaussian processes*, 2009; Burt,
    Rasmussen and van der Wilk, *Convergence of sparse variational inference in Gaussian processes regression*, 2020.

    >>> from mercer.kernels import Gaussian
    >>> from mercer.processes.means import ZeroMean
    >>> place = Placement(torch.device("cpu"), torch.float64)
    >>> data = Observations(Points(torch.zeros(1, 1).double()), torch.zeros(1, 1).double())
    >>> hyper = Hyperparameters.of(Gaussian(), noise=1.0, learn_noise=True)
    >>> round(SparseEvidence(data, hyper, ZeroMean(), place, 1)(hyper.start)[0], 4)  # exact where Z are all rows
    -1.2655
    """

    def __init__(
        self,
        data: Observations,
        hyperparameters: Hyperparameters,
        mean: Mean,
        place: Placement,
        n_landmarks: int,
        seed: int = 0,
    ) -> None:
        self.data, self.hyperparameters, self.mean, self.place = data.to(place.device), hyperparameters, mean, place
        self.shifted = Centring.of(mean, self.data.X, self.data.Y).shifted
        start = hyperparameters.start
        kernel, noise = hyperparameters.kernel_at(start), hyperparameters.noise_at(start)
        self.Z = inducing_points(kernel, noise, self.data, place, n_landmarks, seed)

    def evaluate(self, theta: np.ndarray, gradient: bool = True) -> tuple[float, np.ndarray]:
        """The value and, where asked for, the gradient; an error where it cannot be computed."""
        hyper, (n, t) = self.hyperparameters, self.data.Y.shape
        leaves = hyper.leaves_at(theta, self.data.Y.device)
        noise = torch.tensor(hyper.noise_at(theta), dtype=torch.float64, device=self.data.Y.device, requires_grad=True)
        kernel = hyper.kernel.replace(**leaves)
        T = whitening(kernel, self.Z)
        fixed = T.detach().requires_grad_()
        with torch.no_grad():
            sums = total(block_sums(kernel, noise, self.Z, fixed, *block) for block in self._blocks())
        inner = Sums(*(part.requires_grad_(gradient) for part in sums.parts()))
        value = bound(inner, n, t)
        if not gradient:
            return float(value.detach()), np.zeros_like(theta)
        value.backward()
        for block in self._blocks():
            parts = block_sums(kernel, noise, self.Z, fixed, *block).parts()
            torch.autograd.backward(parts, [part.grad for part in inner.parts()])
        if T.requires_grad:
            T.backward(fixed.grad)
        slope = 0.0 if noise.grad is None else float(noise.grad)
        return float(value.detach()), hyper.gradient(leaves, slope, theta)

    def _blocks(self) -> Iterator[tuple[Observations, Tensor]]:
        return blocks_of(self.data, self.shifted, len(self.Z))


def blocks_of(data: Observations, B: Tensor, m: int) -> Iterator[tuple[Observations, Tensor]]:
    """The rows in float64, some at a time, with their part of B."""
    size = max(1, BLOCK_NUMBERS[B.device.type] // m)
    for start in range(0, len(B), size):
        part = data.take(slice(start, start + size))
        X = Points(part.X.values.to(torch.float64), part.X.names) if part.X.is_tensor else part.X
        yield Observations(X, part.Y, part.noise), B[start : start + size]


def total(blocks: Iterator[Sums]) -> Sums:
    """The sums over all blocks."""
    first = next(blocks)
    for block in blocks:
        first = Sums(*(a + b for a, b in zip(first.parts(), block.parts(), strict=True)))
    return first


def inducing_points(
    kernel: Kernel, noise: float, data: Observations, place: Placement, count: int, seed: int
) -> Points:
    """Rows of the data that represent all of them: pivots of a Cholesky factor, in float64."""
    if data.square:
        raise InputError("method='sgpr' needs rows to choose inducing points from, not a precomputed Gram matrix.")
    rank = min(count, len(data), max(1, resolve_budget(place.memory_budget, place.device) // (16 * len(data))))
    operator = UnitNoise.of(kernel, noise, data, place).operator
    pivots = pivoted_cholesky(operator, rank, seed=seed).pivots
    chosen = data.X.take(pivots if len(pivots) else slice(0, 1))
    return Points(chosen.values.to(torch.float64), chosen.names) if chosen.is_tensor else chosen
