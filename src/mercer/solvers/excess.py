r"""How far a fit is above the least objective, from the gradient where its predictions really are.

At the minimum of a convex objective :math:`g_i + 2 \alpha c_i = 0` for every row, with g the derivatives of the losses.
Elsewhere these are residuals r, and for second derivatives H of the losses

.. math:: J - J^* \approx \tfrac12 \lambda^2, \qquad \lambda^2 = r^T (H + 2 \alpha K^{-1})^{-1} r
          \le \sum_i \frac{r_i^2}{h_i}, \qquad \lambda^2 \le \frac{r^T K r}{2 \alpha}
          \le \frac{(\sum_i |r_i| \, k(x_i, x_i)^{1/2})^2}{2 \alpha},

with equality for the squared loss. Each row is counted where it weighs less; parts of r add up by their roots. The
intercept adds its own gradient :math:`\gamma`, which counts as :math:`\gamma^2 / \kappa` with the curvature left when
the functions adapt to a constant, :math:`1 / \kappa \le 1 / \sum_i h_i + v^T K v / (2 \alpha)`, v = h / sum h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from mercer.solvers.objective import Objective, Terms

TINY = torch.finfo(torch.float64).tiny


def excess_of_rows(objective: Objective, c: Tensor, f: Tensor, diagonal: Tensor) -> Tensor:
    """That of coefficients c for all rows, with predictions f and kernel values k(x, x); one for each column."""
    twice, terms, size = 2 * objective.alpha, objective.at(f), diagonal.clamp(min=0.0).sqrt().unsqueeze(1)
    h, turned, back = terms.root.turned(terms.gradient + twice * c)
    steep = h * size.square() > twice
    flat = torch.where(steep, 0.0, turned)
    parts = [
        torch.where(steep, turned.square() / h.clamp(min=TINY), 0.0).sum(0),
        (flat.abs() * size).sum(0).square() / twice,
    ]
    if objective.intercept:
        slope = back(flat).sum(0) - twice * c.sum(0)
        parts.append(_of_intercept(objective, slope, terms.root.scale.square(), size))
    return _joined(objective, parts)


def excess_of_functions(terms: Terms, uphill: Tensor, largest: float, left_out: float = 0.0) -> Tensor:
    r"""That of coefficients of orthonormal functions, from the gradient in these and their largest sum of squares.

    Functions whose squares sum up to at most tau were left out as rounding. With :math:`\Psi` for their values,
    predictions would change by at most :math:`|\Psi \Psi^T g| / (2 \alpha) \le \tau |g| / (2 \alpha)`.
    """
    objective, gradient, h = terms.objective, terms.gradient, terms.root.scale.square()
    twice = 2 * objective.alpha
    parts = [uphill.square().sum(0) / twice, h.amax(0) * gradient.square().sum(0) * (left_out / twice) ** 2]
    if objective.intercept:
        parts.append(_of_intercept(objective, gradient.sum(0), h, terms.f.new_full((1, 1), largest**0.5)))
    return _joined(objective, parts)


def share_of(objective: Objective, excess: Tensor, f: Tensor) -> float:
    """The root of the excess beside what the best constant leaves: errors of predictions beside the spread of targets.

    >>> from mercer.losses import Squared
    >>> from mercer.solvers.objective import Objective
    >>> problem = Objective(Squared(), torch.tensor([[99.0], [101.0]]).double(), 1.0, intercept=True)
    >>> round(share_of(problem, torch.tensor([0.02]).double(), problem.targets), 6)
    0.1
    """
    constant = objective.best_intercept(torch.zeros_like(f)).expand_as(f)
    size = torch.maximum(*(objective.losses(values).sum(0).abs() for values in (constant, f)))
    size = size.sum() if len(excess) == 1 else size
    share = torch.where(excess > 0, excess / size.clamp(min=TINY), 0.0).sqrt()
    return float(share.nan_to_num(torch.inf, torch.inf).max())


def _of_intercept(objective: Objective, slope: Tensor, h: Tensor, size: Tensor) -> Tensor:
    total = h.sum(0).clamp(min=TINY)
    spread = (h * size).sum(0) / total
    return slope.square() * (1.0 / total + spread.square() / (2 * objective.alpha))


def _joined(objective: Objective, parts: list[Tensor]) -> Tensor:
    columns = [part.sum(0, keepdim=True) if objective.loss.joint else part for part in parts]
    return sum((part.sqrt() for part in columns), torch.zeros_like(columns[0])).square() / 2
