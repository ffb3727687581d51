"""Log-determinants and solutions from one Krylov space: stochastic Lanczos quadrature."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from mercer.core.errors import NotPositiveDefiniteError
from mercer.solvers.decompose import eigh
from mercer.solvers.dials import ARRIVED

Map = Callable[[Tensor], Tensor]
"""A linear map of columns (n, k)."""


@dataclass(frozen=True, eq=False)
class Krylov:
    """What the Krylov spaces of M = P^-1 A tell about the columns of B.

    Attributes
    ----------
    solved : Tensor
        A^-1 B, (n, k).
    preconditioned : Tensor
        P^-1 B, (n, k).
    logs : Tensor
        b^T P^-1/2 log(P^-1/2 A P^-1/2) P^-1/2 b for each column, (k,).
    residual : float
        The largest relative residual of a solution.
    iterations : int
        Products with A.
    """

    solved: Tensor
    preconditioned: Tensor
    logs: Tensor
    residual: float
    iterations: int


def krylov(product: Map, precondition: Map, B: Tensor, *, tol: float, max_iter: int) -> Krylov:
    r"""Solutions of A X = B and the quadratic forms of log(P^-1 A), by preconditioned conjugate gradients.

    The steps of conjugate gradients are a Lanczos iteration in disguise: their lengths make a tridiagonal matrix T for
    each column b, from which Gauss quadrature gives

    .. math:: b^T P^{-1/2} \log(P^{-1/2} A P^{-1/2}) P^{-1/2} b \approx (b^T P^{-1} b)\, e_1^T \log(T)\, e_1.

    With columns drawn from N(0, P) the mean of that is log det A - log det P: exact in expectation, and the better P
    is the smaller its variance. It ends when every residual |b - A x| is at most `tol` times |b|.

    References: Ubaru, Chen and Saad, *Fast estimation of tr(f(A)) via stochastic Lanczos quadrature*, 2017; Gardner,
    Pleiss, Bindel, Weinberger and Wilson, *GPyTorch*, 2018; Wenger, Pleiss, Hennig, Cunningham and Gardner,
    *Preconditioning for scalable Gaussian process hyperparameter optimization*, 2022.

    >>> A, b = torch.diag(torch.tensor([1.0, 2.0, 4.0]).double()), torch.ones(3, 1).double()
    >>> found = krylov(lambda V: A @ V, lambda R: R, b, tol=1e-10, max_iter=10)
    >>> found.solved[:, 0], round(float(found.logs[0]), 6)  # log 1 + log 2 + log 4
    (tensor([1.0000, 0.5000, 0.2500], dtype=torch.float64), 2.079442)
    """
    norm = B.norm(dim=0)
    X, R = torch.zeros_like(B), B.clone()
    Z = first = precondition(R)
    rho = start = (R * Z).sum(0)
    P = Z.clone()
    running = norm > 0
    lengths: list[Tensor] = []
    slopes: list[Tensor] = []
    active: list[Tensor] = []
    relative = running.to(B)
    while len(lengths) < max_iter and float(relative.max()) > tol:
        Q = product(P)
        curvature = (P * Q).sum(0)
        if not bool((running <= (curvature > 0)).all()):
            raise NotPositiveDefiniteError(
                "A product of the covariance has a direction of negative curvature: the kernel is not positive "
                "semi-definite, or the noise is below the rounding error of the products."
            )
        length = torch.where(running, rho / curvature, 0.0)
        X.addcmul_(P, length)
        R.addcmul_(Q, length, value=-1.0)
        Z = precondition(R)
        ahead = (R * Z).sum(0)
        slope = torch.where(running & (rho > 0), ahead / rho, 0.0).clamp(min=0.0)
        lengths.append(length)
        slopes.append(slope)
        active.append(running)
        relative = torch.where(norm > 0, R.norm(dim=0) / norm, 0.0)
        running = running & (relative > ARRIVED)
        P = Z.addcmul(P, slope)
        rho = torch.where(running, ahead, 1.0)
    logs = start * _first_of_log(lengths, slopes, active) if lengths else torch.zeros_like(norm)
    return Krylov(X, first, logs, float(relative.max()), len(lengths))


def _first_of_log(lengths: list[Tensor], slopes: list[Tensor], active: list[Tensor]) -> Tensor:
    """The first entry of log(T) for each column; a column that stopped early goes on with ones, whose log is zero."""
    a, b, on = (torch.stack(part).cpu().to(torch.float64) for part in (lengths, slopes, active))
    inverse = torch.where(on > 0, 1.0 / torch.where(on > 0, a, 1.0), 0.0)
    diagonal = inverse.clone()
    diagonal[1:] += b[:-1] * inverse[:-1] * on[1:]
    diagonal = torch.where(on > 0, diagonal, 1.0)
    beside = b[:-1].sqrt() * inverse[:-1] * on[1:]
    T = torch.diag_embed(diagonal.T) + torch.diag_embed(beside.T, 1) + torch.diag_embed(beside.T, -1)
    values, vectors = eigh(T, "A Krylov space of the covariance")
    tiny = torch.finfo(torch.float64).tiny
    return (vectors[:, 0].square() * values.clamp(min=tiny).log()).sum(1).to(lengths[0].device)
