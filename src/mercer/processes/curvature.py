"""What labels say about latent functions to second order, joined with the covariance of the prior."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor

from mercer.core.blocks import new_matrix
from mercer.solvers.factor import Factor, factorise
from mercer.solvers.joint_inverse import JointInverse


class Curvature(ABC):
    r"""The curvature :math:`W = -\nabla\nabla \log p(y \mid f)` at f, and with the covariance K of the prior

    .. math:: R = (K + W^{-1})^{-1} = W (I + K W)^{-1}, \qquad (K^{-1} + W)^{-1} = K - K R K.

    f has shape (n, t): t functions that are independent a priori and share the n x n matrix K. W is never inverted, so
    labels that are certain, where it vanishes, do no harm.

    Attributes
    ----------
    K : Tensor
        Covariance of the prior, (n, n).
    log_det : float
        Log det(I + K W).

    References
    ----------
    Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, sections 3.4 and 3.5.
    """

    K: Tensor
    log_det: float

    @abstractmethod
    def weigh(self, V: Tensor) -> Tensor:
        """W V for V of shape (n, t)."""

    @abstractmethod
    def reduce(self, V: Tensor) -> Tensor:
        """R V for V of shape (n, t)."""

    def solve(self, B: Tensor) -> Tensor:
        """(I + W K)^-1 B for B of shape (n, t), refined once: large variances leave few digits."""
        X = B - self.reduce(self.K @ B)
        rest = B - X - self.weigh(self.K @ X)
        return X + rest - self.reduce(self.K @ rest)

    @abstractmethod
    def block_sum(self) -> Tensor:
        """The sum over functions of the diagonal blocks of R: a new matrix (n, n)."""

    @abstractmethod
    def bend(self) -> Tensor:
        """The derivative of -log det(I + K W) / 2 in f, (n, t): what the third derivative of the labels adds."""

    @abstractmethod
    def explained(self, cross: Tensor) -> Tensor:
        """k(x, D) R k(D, x) between functions, (m, t, t), from k(X, D) of shape (m, n)."""


class LogisticCurvature(Curvature):
    r"""Of two classes and one function: W is diagonal, with entries :math:`\pi_i (1 - \pi_i)`, and

    .. math:: R = W^{1/2} B^{-1} W^{1/2}, \qquad B = I + W^{1/2} K W^{1/2}.

    >>> at_zero = LogisticCurvature(torch.ones(1, 1).double(), torch.zeros(1, 1).double())
    >>> at_zero.reduce(torch.ones(1, 1).double())  # 1 / (1 + 4)
    tensor([[0.2000]], dtype=torch.float64)
    """

    def __init__(self, K: Tensor, f: Tensor) -> None:
        self.K = K
        self.p, self.q = torch.sigmoid(f), torch.sigmoid(-f)
        self.root = (self.p * self.q).sqrt()
        self.factor = _identity_plus(self.root, K)
        self.log_det = self.factor.log_det()

    def weigh(self, V: Tensor) -> Tensor:
        return self.root.square() * V

    def reduce(self, V: Tensor) -> Tensor:
        return self.root * self.factor.solve(self.root * V)

    def block_sum(self) -> Tensor:
        return self.factor.inverse().mul_(self.root).mul_(self.root.mT)

    def bend(self) -> Tensor:
        variance = self.K.diagonal() - self.factor.half_solve(self.root * self.K).square_().sum(0)
        return -0.5 * variance.unsqueeze(1) * self.p * self.q * (self.q - self.p)

    def explained(self, cross: Tensor) -> Tensor:
        return self.factor.half_solve(self.root * cross.mT).square().sum(0).reshape(-1, 1, 1)


class SoftmaxCurvature(Curvature):
    r"""Of several classes with a function each: at a row :math:`W = \operatorname{diag}(\pi) - \pi \pi^T`.

    R is a `JointInverse`: one n x n factorisation for each class, instead of one with all of their rows.

    >>> at_zero = SoftmaxCurvature(torch.ones(1, 1).double(), torch.zeros(1, 2).double())
    >>> at_zero.reduce(torch.tensor([[1.0, -1.0]]).double())  # W = 1/2 there, so 1 / (1 + 2)
    tensor([[ 0.3333, -0.3333]], dtype=torch.float64)
    """

    def __init__(self, K: Tensor, f: Tensor) -> None:
        self.K = K
        self.p = torch.softmax(f, 1)
        self.joint = JointInverse.of(K, self.p)
        self.log_det = self.joint.log_det

    def weigh(self, V: Tensor) -> Tensor:
        return self.joint.weigh(V.T.unsqueeze(2)).squeeze(2).T

    def reduce(self, V: Tensor) -> Tensor:
        return self.joint.reduce(V.T.unsqueeze(2)).squeeze(2).T

    def block_sum(self) -> Tensor:
        found = torch.zeros_like(self.K)
        for root, inverse in zip(self.joint.roots, self.joint.inverses, strict=True):
            E = inverse * root * root.mT
            half = self.joint.half_solve(E)
            found += E
            found.addmm_(half.mT, half, alpha=-1.0)
        return found

    def bend(self) -> Tensor:
        S = torch.diag_embed(self.K.diagonal().unsqueeze(1).expand_as(self.p)) - self.explained(self.K)
        own, mixed = S.diagonal(dim1=1, dim2=2), (S @ self.p.unsqueeze(2)).squeeze(2)
        return -0.5 * self.weigh(own - 2.0 * mixed)

    def explained(self, cross: Tensor) -> Tensor:
        seen = self.joint.own(cross.mT)  # (t, n, m)
        own = torch.diag_embed((seen * cross.mT).sum(1).T)
        half = self.joint.half_solve(seen)
        return own - torch.einsum("cji,dji->icd", half, half)


def _identity_plus(root: Tensor, K: Tensor) -> Factor:
    """The factor of I + D^1/2 K D^1/2, where `root` is the diagonal of D^1/2 as a column."""

    def make() -> Tensor:
        B = torch.mul(root, K, out=new_matrix(len(K), len(K), K.dtype, K.device)).mul_(root.mT)
        B.diagonal().add_(1.0)
        return B

    return factorise(make)
