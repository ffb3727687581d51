"""How far rows pull on their own predictions where the loss joins the classes."""

from __future__ import annotations

import torch
from torch import Tensor

from mercer.solvers.joint_inverse import JointInverse


def joint_influences(K: Tensor, p: Tensor, weights: Tensor | float, alpha: float, *, intercept: bool) -> Tensor:
    r"""The blocks (n, t, t) on the diagonal, one for each row, of

    .. math:: (2 \alpha K^{-1} + H)^{-1}, \qquad H_i = w_i\, (\mathrm{diag}(p_i) - p_i p_i^T),

    the covariance of the predictions of all classes; with an intercept for each class, which has no penalty, that of
    their sum. `JointInverse` R for K / (2 alpha) gives them, K - K R K = (K^-1 + H)^-1.

    >>> K, p = torch.eye(1).double(), torch.tensor([[0.5, 0.5]]).double()
    >>> joint_influences(K, p, 1.0, alpha=0.5, intercept=False)
    tensor([[[0.8333, 0.1667],
             [0.1667, 0.8333]]], dtype=torch.float64)
    """
    n, t = p.shape
    K = K.to(p) / (2 * alpha)
    joint = JointInverse.of(K, weights * p)
    eye = torch.eye(n).to(K)
    images = joint.roots * (eye - joint.inverses) / joint.roots.mT  # E K
    own = K.diagonal() - torch.einsum("ij,cij->cj", K, images)
    half = joint.half_solve(images)
    blocks = torch.einsum("cji,dji->icd", half, half) + torch.diag_embed(own.T)
    if not intercept:
        return blocks
    units = torch.eye(t).to(K).unsqueeze(1).expand(t, n, t)
    Q = joint.reduce(units)  # (t, n, t)
    rest = torch.eye(t).to(K) - (K @ Q).transpose(0, 1)
    return blocks + rest @ torch.linalg.pinv(Q.sum(1), rtol=1e-10, hermitian=True) @ rest.mT
