"""How far rows pull on their own predictions where the loss joins the classes."""

from __future__ import annotations

import torch
from torch import Tensor

from mercer.selection.dials import MOST_UNKNOWNS
from mercer.solvers.decompose import pinv
from mercer.solvers.few_span import FewSpan, factor_with_jitter
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
    images = joint.inverses.neg()
    images.diagonal(dim1=1, dim2=2).add_(1.0)
    images.mul_(joint.roots).div_(joint.roots.mT)  # E K
    own = K.diagonal() - torch.einsum("ij,cij->cj", K, images)
    half = joint.half_solve(images)
    blocks = torch.einsum("cji,dji->icd", half, half) + torch.diag_embed(own.T)
    if not intercept:
        return blocks
    units = torch.eye(t).to(K).unsqueeze(1).expand(t, n, t)
    Q = joint.reduce(units)  # (t, n, t)
    rest = torch.eye(t).to(K) - (K @ Q).transpose(0, 1)
    return blocks + rest @ pinv(Q.sum(1), "The influence of rows on their own predictions", rtol=1e-10) @ rest.mT


def joint_fits(span: FewSpan, t: int) -> bool:
    """Whether the joint Hessian of t classes is small enough to be stored, factorised and inverted."""
    unknowns = span.m * t
    return unknowns <= MOST_UNKNOWNS and 3 * 8 * unknowns**2 <= span.spare


def few_joint_influences(span: FewSpan, p: Tensor, weights: Tensor | float, alpha: float, *, intercept: bool) -> Tensor:
    r"""The same for functions on landmarks, with features :math:`\varphi_i` of the rows and their Hessian stored,

    .. math:: B_i \Big(\sum_j B_j^T H_j B_j + 2 \alpha\Big)^{-1} B_i^T, \qquad B_i = I \otimes \varphi_i^T,

    and a column of B more for each intercept, of which those that add up to zero are enough.

    >>> from mercer.solvers.row_blocks import Block
    >>> from mercer.operators.stored import Stored
    >>> K, p = torch.eye(1).double(), torch.tensor([[0.5, 0.5]]).double()
    >>> span = FewSpan.of([Block(Stored(K), torch.zeros(1, 2).double())], K)
    >>> few_joint_influences(span, p, 1.0, alpha=0.5, intercept=False)
    tensor([[[0.8333, 0.1667],
             [0.1667, 0.8333]]], dtype=torch.float64)
    """
    t, m = p.shape[1], span.m
    w = torch.as_tensor(weights).to(p).expand(len(p), 1)
    contrasts = torch.linalg.qr(torch.eye(t).to(p) - 1.0 / t).Q[:, : t - 1 if intercept else 0]
    coefficients = [slice(c * m, (c + 1) * m) for c in range(t)]
    intercepts = slice(t * m, t * m + contrasts.shape[1])
    lower = [(c, d) for c in range(t) for d in range(c + 1)]
    system = torch.zeros(intercepts.stop, intercepts.stop, dtype=p.dtype, device=p.device)
    for part, features in span.parts():
        q = p[part]
        H = w[part].unsqueeze(2) * (torch.diag_embed(q) - q.unsqueeze(2) * q.unsqueeze(1))
        for c, d in lower:
            system[coefficients[c], coefficients[d]].addmm_(features.T, H[:, c, d].unsqueeze(1) * features)
        for c in range(t):
            system[intercepts, coefficients[c]] += (H[:, c] @ contrasts).T @ features
        system[intercepts, intercepts] += contrasts.T @ H.sum(0) @ contrasts
    system.diagonal()[: t * m] += 2 * alpha
    inverse = torch.cholesky_inverse(factor_with_jitter(system, alpha))
    a: Tensor = (contrasts @ inverse[intercepts, intercepts] @ contrasts.T).repeat(len(p), 1, 1)
    for part, features in span.parts():
        tilt = features @ inverse[: t * m, intercepts].reshape(t, m, -1) @ contrasts.T  # (t, rows, t)
        a[part] += tilt.permute(1, 0, 2) + tilt.permute(1, 2, 0)
        for c, d in lower:
            own = ((features @ inverse[coefficients[c], coefficients[d]]) * features).sum(1)
            a[part, c, d] += own
            if d < c:
                a[part, d, c] += own
    return a
