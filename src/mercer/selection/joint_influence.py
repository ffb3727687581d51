"""How far rows pull on their own predictions where the loss joins the classes."""

from __future__ import annotations

import torch
from torch import Tensor

LEAST = 1e-10
"""Curvatures below this are raised to it: they are divided by."""


def joint_influences(K: Tensor, p: Tensor, weights: Tensor | float, alpha: float, *, intercept: bool) -> Tensor:
    r"""The blocks (n, t, t) on the diagonal, one for each row, of

    .. math:: (2 \alpha K^{-1} + H)^{-1}, \qquad H_i = w_i\, (\mathrm{diag}(p_i) - p_i p_i^T),

    the covariance of the predictions of all classes; with an intercept for each class, which has no penalty, that of
    their sum. One factor of size n for each class and one for all of them are enough, since

    .. math:: (\tilde K + H^{-1})^{-1} = E - E R\, M^{-1} R^T E, \qquad
              E_c = (\tilde K + D_c^{-1})^{-1}, \quad M = \textstyle\sum_c E_c, \quad \tilde K = K / 2 \alpha,

    with D_c = w p_c, and R as many identities on top of each other as there are classes.

    References: Williams and Barber, *Bayesian classification with Gaussian processes*, 1998; Rasmussen and Williams,
    *Gaussian processes for machine learning*, 2006, section 3.5.

    >>> K, p = torch.eye(1).double(), torch.tensor([[0.5, 0.5]]).double()
    >>> joint_influences(K, p, 1.0, alpha=0.5, intercept=False)
    tensor([[[0.8333, 0.1667],
             [0.1667, 0.8333]]], dtype=torch.float64)
    """
    n, t = p.shape
    K = K.to(p) / (2 * alpha)
    roots = (weights * p).clamp(min=LEAST).sqrt().T.unsqueeze(2)  # (t, n, 1)
    eye = torch.eye(n).to(K)
    inverse = torch.stack([torch.cholesky_inverse(torch.linalg.cholesky(eye + s * K * s.T)) for s in roots])
    E = roots * inverse * roots.mT
    factor = torch.linalg.cholesky(E.sum(0))
    images = roots * (eye - inverse) / roots.mT  # E K
    own = K.diagonal() - torch.einsum("ij,cij->cj", K, images)
    half = torch.linalg.solve_triangular(factor, images, upper=False)
    blocks = torch.einsum("cji,dji->icd", half, half) + torch.diag_embed(own.T)
    if not intercept:
        return blocks
    sums = E.sum(2).T
    Q = torch.diag_embed(sums).transpose(0, 1) - E @ torch.cholesky_solve(sums, factor)  # (t, n, t)
    rest = torch.eye(t).to(K) - (K @ Q).transpose(0, 1)
    return blocks + rest @ torch.linalg.pinv(Q.sum(1), rtol=1e-10, hermitian=True) @ rest.mT
