"""One entry for every loss: Newton's method where it is smooth, the dual solver where it has kinks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from mercer.losses import PiecewiseLinear
from mercer.solvers.dual import Dual
from mercer.solvers.newton import ROUNDING, Minimum, Newton
from mercer.solvers.objective import Known, Objective, Span

COARSE = 1e-4
"""Accuracy of the first, cheap minimum with a low-rank copy of the Gram matrix."""


def minimise(
    span: Span,
    objective: Objective,
    warm: Minimum | Known | None = None,
    *,
    tol: float = 1e-8,
    max_iter: int | None = None,
    callback: Any = None,
) -> Minimum:
    """The minimum of the objective over the span, from the answer `warm` of a similar problem where there is one.

    >>> import torch
    >>> from mercer.losses import Squared
    >>> from mercer.solvers.full_span import FullSpan
    >>> problem = Objective(Squared(), torch.ones(2, 1).double(), alpha=1.0)
    >>> minimise(FullSpan.of(None, matrix=torch.eye(2).double()), problem).fitted[:, 0]
    tensor([0.5000, 0.5000], dtype=torch.float64)
    """
    options: dict[str, Any] = {"tol": tol, "callback": callback}
    if max_iter is not None:
        options["max_iter"] = max_iter
    smooth, near = not isinstance(objective.loss, PiecewiseLinear), None
    if warm is None and smooth and objective.loss.convex and not objective.loss.quadratic:
        coarse = span.coarse()
        if coarse is not None:
            warm = Newton(tol=COARSE, keep_interrupted=False).solve(coarse, objective)
            near = warm.fitted
    start: tuple[Tensor | None, Tensor | None] = (None, None) if warm is None else (warm.value, warm.intercept)
    if smooth:
        return in_the_middle(objective, Newton(**options).solve(span, objective, *start, near))
    dual = None if warm is None else warm.dual
    return in_the_middle(objective, Dual(**options).solve(span, objective, *start, dual))


def in_the_middle(objective: Objective, found: Minimum) -> Minimum:
    """A minimum with the middle of its intercepts where more than one is best, so that it mirrors mirrored targets."""
    loss = objective.loss
    if not objective.intercept or loss.joint or loss.quadratic or not loss.convex:
        return found
    plain = found.fitted - found.intercept
    b = objective.best_intercept(plain)
    change = objective.loss_sum(plain + b) - objective.loss_sum(found.fitted)
    if not change <= ROUNDING * abs(found.objective):
        return found
    return replace(found, intercept=b, fitted=plain + b, objective=found.objective + change)
