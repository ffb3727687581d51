"""Leave-one-out predictions of any loss from one fit, to first order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from mercer.losses import PiecewiseLinear
from mercer.selection.dials import FLAT, PART_ROWS, SMOOTHING
from mercer.selection.joint_influence import few_joint_influences, joint_fits, joint_influences
from mercer.solvers.decompose import solve
from mercer.solvers.dual import Smoothed
from mercer.solvers.factor import inverse_diagonal, solve_factored
from mercer.solvers.few_span import FewSpan
from mercer.solvers.full_span import FullSpan
from mercer.solvers.newton import Minimum
from mercer.solvers.objective import Known, Objective


def approximate_loo(span: Any, objective: Objective, found: Minimum | Known, *, mean: bool = False) -> Tensor:
    r"""For each row the prediction of the fit without it, of repeated rows without one copy, to first order,

    .. math:: f_{-i} = f_i + \frac{m_i a_i\, g_i}{1 - m_i h_i a_i}, \qquad
        a_i = \big[(2 \alpha K^{-1} + H)^{-1}\big]_{ii},

    with g_i and h_i the first and second derivative of the loss, m_i the weight that leaves and H the w_i h_i. It is
    exact for the squared loss. For a loss with kinks it is the span rule of support vector machines. For a joint loss,
    a_i and h_i are matrices with a row and a column for each class; on very many landmarks a_i is computed from the
    diagonal part p of the curvature, one class at a time, which is too optimistic at small alphas.

    With `mean`, m_i a_i and m_i h_i a_i are replaced by their means over the rows, which is generalised approximate
    cross-validation: for the squared loss generalised cross-validation.

    References: Rad and Maleki, *A scalable estimate of the out-of-sample prediction error via approximate leave-one-out
    cross-validation*, 2020; Chapelle, Vapnik, Bousquet and Mukherjee, *Choosing multiple parameters for support vector
    machines*, 2002; Xiang and Wahba, *A generalized approximate cross validation for smoothing splines with
    non-Gaussian data*, 1996.

    >>> from mercer.losses import Squared
    >>> from mercer.solvers.newton import Newton
    >>> span = FullSpan.of(None, matrix=torch.eye(2).double())
    >>> problem = Objective(Squared(), torch.ones(2, 1).double(), alpha=1.0)
    >>> found = Newton().solve(span, problem)
    >>> approximate_loo(span, problem, found).abs().max() < 1e-12
    tensor(True)
    """
    f = found.fitted
    if isinstance(objective.loss, PiecewiseLinear):
        around = Smoothed.of(objective, SMOOTHING * float(span.mean_diag), found.dual)
        objective = replace(objective, loss=around)
    unit = replace(objective, weights=None)
    gradient = unit.gradient(f)
    weight, needed = objective.w, gradient.new_ones(gradient.shape) if mean else gradient
    if not objective.loss.joint:
        curvature = objective.loss.hessian(objective.targets, f).clamp(min=0.0)
        a = objective.leaving * _influences(span, curvature * weight, objective, needed)
        own = curvature * a
        if mean:
            a, own = (_mean_over_rows(values, objective.copies) for values in (a, own))
        return f + a * gradient / (1 - own).clamp(min=1e-12)
    p = torch.softmax(f, 1)
    if isinstance(span, FewSpan) and joint_fits(span, p.shape[1]):
        a = few_joint_influences(span, p, weight, objective.alpha, intercept=objective.intercept)
    elif isinstance(span, FewSpan):
        a = torch.diag_embed(_influences(span, p * weight, objective, needed))
    else:
        assert span.matrix is not None
        a = joint_influences(span.matrix, p, weight, objective.alpha, intercept=objective.intercept)
    a = torch.as_tensor(objective.leaving).to(a).reshape(-1, 1, 1) * a
    own = a @ objective.loss.hessian(objective.targets, f)
    if mean:
        a, own = (_mean_over_rows(values, objective.copies) for values in (a, own))
    system = torch.eye(f.shape[1]).to(f) - own
    return f + solve(system, a @ gradient.unsqueeze(2), "The influence of rows on their own predictions").squeeze(2)


def _mean_over_rows(values: Tensor, copies: Tensor | float) -> Tensor:
    """The mean in place of the value of each row."""
    counted = torch.as_tensor(copies).to(values).expand(len(values), 1).reshape(-1, *[1] * (values.ndim - 1))
    return ((counted * values).sum(0) / counted.sum()).expand_as(values)


def _influences(span: Any, h: Tensor, objective: Objective, gradient: Tensor) -> Tensor:
    """a_i for each column of weighted curvatures h (n, t); shared columns are computed once."""
    columns = [h[:, 0]] if bool((h == h[:, :1]).all()) else list(h.T)
    needed = gradient.abs().amax(1) > 0
    influence = _few if isinstance(span, FewSpan) else _full
    found = [influence(span, column, objective.alpha, objective.intercept, needed) for column in columns]
    return torch.stack(found, dim=1).expand(len(h), h.shape[1])


def _full(span: FullSpan, h: Tensor, alpha: float, intercept: bool, needed: Tensor) -> Tensor:
    assert span.matrix is not None
    shift = 2 * alpha
    a = torch.zeros_like(h)
    curved = h > FLAT * h.max()
    active = curved.nonzero().squeeze(1)
    s = h.clamp(min=0.0).sqrt()
    L = span.active_factor(s, active, shift)
    a[active] = (1 - shift * inverse_diagonal(L)) / h[active]
    for rest in (~curved & needed).nonzero().squeeze(1).split(PART_ROWS):
        cross = span.corner(active, rest).mul_(s[active].unsqueeze(1))
        half = torch.linalg.solve_triangular(L, cross, upper=False)
        a[rest] = (span.products.diag[rest] - half.square_().sum(0)) / shift
    if intercept and len(active):
        some = torch.where(curved, h, 0.0).unsqueeze(1)
        image = span.values(some)[active]
        some[active] -= s[active].unsqueeze(1) * solve_factored(L, s[active].unsqueeze(1) * image)
        z = span.values(some).squeeze(1) / shift
        a += (1 - z).square() / (h[active].sum() - (h * z)[active].sum()).clamp(min=1e-12)
    return a


def _few(span: FewSpan, h: Tensor, alpha: float, intercept: bool, needed: Tensor) -> Tensor:
    L = span.hessian_factor(h, alpha)
    tilt = torch.cholesky_solve(span.gather(h.unsqueeze(1)), L)
    a, z = torch.empty_like(h), torch.empty_like(h)
    for part, features in span.parts():
        a[part] = torch.linalg.solve_triangular(L, features.T, upper=False).square().sum(0)
        z[part] = (features @ tilt).squeeze(1)
    if intercept:
        a += (1 - z).square() / (h.sum() - (h * z).sum()).clamp(min=1e-12)
    return a
