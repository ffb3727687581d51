"""The inverse that several classes share: labels tie functions together that have the same prior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from mercer.core.blocks import new_matrix
from mercer.solvers.dials import LEAST
from mercer.solvers.factor import factorise_in_place, failure, solve_factored

WHAT, ADVICE = "The curvature of the labels with the kernel", "use a kernel of smaller values"


@dataclass(frozen=True, eq=False)
class JointInverse:
    r"""R = (K + H^-1)^-1 for t functions with a common K, where at each row H = diag(d) - d d^T / sum(d):

    .. math:: R_{bc} = \delta_{bc} E_c - E_b \Bigl(\sum_a E_a\Bigr)^{-1} E_c, \qquad
        E_c = (K + D_c^{-1})^{-1} = D_c^{1/2} (I + D_c^{1/2} K D_c^{1/2})^{-1} D_c^{1/2}.

    .. math:: \det(I + K H) = \det\Bigl(\sum_c E_c\Bigr) \prod_c \det(I + D_c^{1/2} K D_c^{1/2})
        \Big/ \prod_i \sum_c d_{ic}.

    One factor of size n for each function and one for all of them, instead of one of size n t. H is the curvature of
    the multinomial loss where d are weighted probabilities.

    Attributes
    ----------
    D : Tensor
        As given, with its smallest entries raised.
    roots : Tensor
        D^1/2, (t, n, 1).
    inverses : Tensor
        (I + D^1/2 K D^1/2)^-1, (t, n, n).
    L : Tensor
        The Cholesky factor of the sum of all E, (n, n).
    log_det : float
        Log det(I + K H).

    References
    ----------
    Williams and Barber, *Bayesian classification with Gaussian processes*, 1998; Rasmussen and Williams,
    *Gaussian processes for machine learning*, 2006, section 3.5.

    Examples
    --------
    >>> half = JointInverse.of(torch.ones(1, 1).double(), torch.tensor([[0.5, 0.5]]).double())
    >>> half.reduce(torch.tensor([[[1.0]], [[-1.0]]]).double()).flatten()  # H = 1/2 for this difference: 1 / (1 + 2)
    tensor([ 0.3333, -0.3333], dtype=torch.float64)
    """

    D: Tensor
    roots: Tensor
    inverses: Tensor
    L: Tensor
    log_det: float

    @classmethod
    def of(cls, K: Tensor, D: Tensor) -> JointInverse:
        """From K (n, n) and d in the rows of D (n, t); K has to be positive semi-definite."""
        n, t = D.shape
        D = D.clamp(min=LEAST * float(D.max()))
        roots = D.sqrt().T.unsqueeze(2)
        inverses = new_matrix(t * n, n, K.dtype, K.device).view(t, n, n)
        total, B = new_matrix(n, n, K.dtype, K.device).zero_(), new_matrix(n, n, K.dtype, K.device)
        log_det = -float(D.sum(1).log().sum())
        for root, inverse in zip(roots, inverses, strict=True):
            torch.mul(K, root, out=B).mul_(root.mT).diagonal().add_(1.0)
            L = _factor(B, lambda root=root: _weighted(K, root) + torch.eye(n).to(K))  # type: ignore[misc]
            log_det += _log_det(L)
            torch.cholesky_inverse(L, out=inverse.mT)
            total.add_(torch.mul(inverse, root, out=B).mul_(root.mT))  # in the memory of L
        L = _factor(total, lambda: _weighted(inverses, roots).sum(0))
        return cls(D, roots, inverses, L, log_det + _log_det(L))

    def own(self, V: Tensor) -> Tensor:
        """E_c V_c for V of shape (t, n, q), or (n, q) for all alike."""
        return self.roots * (self.inverses @ (self.roots * V))

    def reduce(self, V: Tensor) -> Tensor:
        """R V for V of shape (t, n, q)."""
        own = self.own(V)
        return own - self.own(solve_factored(self.L, own.sum(0)))

    def weigh(self, V: Tensor) -> Tensor:
        """H V for V of shape (t, n, q)."""
        D = self.D.T.unsqueeze(2)
        return D * (V - (D * V).sum(0) / D.sum(0))

    def half_solve(self, B: Tensor) -> Tensor:
        """L^-1 B for B of shape (n, q) or (t, n, q)."""
        if B.ndim == 2:
            result: Tensor = torch.linalg.solve_triangular(self.L, B, upper=False)
            return result
        return torch.stack([self.half_solve(one) for one in B])  # as one, each would have a copy of L


def _factor(matrix: Tensor, made_again: Callable[[], Tensor]) -> Tensor:
    """The Cholesky factor, in the memory of the matrix."""
    if not factorise_in_place(matrix):
        raise failure(made_again(), f"{WHAT} is not positive definite", WHAT, ADVICE)
    return matrix.mT


def _weighted(K: Tensor, root: Tensor) -> Tensor:
    return root * K * root.mT


def _log_det(L: Tensor) -> float:
    return 2.0 * float(L.diagonal().log().sum())
