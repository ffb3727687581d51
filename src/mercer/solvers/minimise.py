"""One entry for every loss: Newton's method where it is smooth, the dual solver where it has kinks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from mercer.losses import PiecewiseLinear
from mercer.solvers.dials import COARSE, NEWTON_ROUNDING, REFINEMENTS
from mercer.solvers.dual import Dual
from mercer.solvers.error_bound import far_words, too_far
from mercer.solvers.excess import share_of
from mercer.solvers.newton import Minimum, Newton
from mercer.solvers.objective import Known, Objective, Span


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
    if smooth and objective.loss.convex and not objective.loss.quadratic:
        coarse = span.coarse() if warm is None else None
        if coarse is not None:
            warm = Newton(tol=COARSE, keep_interrupted=False).solve(coarse, objective)
            near = warm.fitted
        warm = span.descended(objective, warm, callback) or warm
    start: tuple[Tensor | None, Tensor | None] = (None, None) if warm is None else (warm.value, warm.intercept)
    if not smooth:
        dual = Dual(**options)
        found = in_the_middle(objective, dual.solve(span, objective, *start, None if warm is None else warm.dual))
        return judged(objective, options, found, dual.excess(span, objective, found))
    found = newton(span, objective, options, *start, near)
    return refined(span, objective, options, found) if objective.loss.convex else found


def newton(span: Span, objective: Objective, options: dict[str, Any], *start: Tensor | None) -> Minimum:
    """The minimum of a smooth loss by Newton's method alone."""
    return in_the_middle(objective, Newton(**options).solve(span, objective, *start))


def refined(span: Span, objective: Objective, options: dict[str, Any], found: Minimum) -> Minimum:
    """A minimum without the rounding errors that further steps take away, and with a bound of what they leave."""
    excess = excess_of(span, objective, found)
    for _ in range(REFINEMENTS):
        if not found.converged or float(excess.sum()) <= options["tol"] * abs(found.objective):
            break
        again = newton(span, objective, options, found.value, found.intercept)
        left = excess_of(span, objective, again)
        if not float(left.sum()) < float(excess.sum()) / 2:
            break
        steps, seconds = found.iterations + again.iterations, found.seconds + again.seconds
        found, excess = replace(again, converged=True, iterations=steps, seconds=seconds, reason=found.reason), left
    return judged(objective, options, found, excess)


def excess_of(span: Span, objective: Objective, found: Minimum) -> Tensor:
    """How far the objective is above the least, at the values that a model with these coefficients predicts."""
    return span.excess(objective, found.value, span.predictions(found.value) + found.intercept)


def judged(objective: Objective, options: dict[str, Any], found: Minimum, excess: Tensor) -> Minimum:
    """A minimum that has not converged where its predictions may be further off than `tol` lets them."""
    bound = share_of(objective, excess, found.fitted)
    if not found.converged or not too_far(bound, options["tol"] ** 0.5):
        return replace(found, error_bound=bound)
    reason = "; ".join(filter(None, [found.reason, far_words(bound)]))
    return replace(found, error_bound=bound, converged=False, reason=reason)


def in_the_middle(objective: Objective, found: Minimum) -> Minimum:
    """A minimum with the middle of its intercepts where more than one is best, so that it mirrors mirrored targets."""
    loss = objective.loss
    if not objective.intercept or loss.joint or loss.strict or not loss.convex:
        return found
    plain = found.fitted - found.intercept
    b = objective.best_intercept(plain)
    change = objective.loss_sum(plain + b) - objective.loss_sum(found.fitted)
    if not change <= NEWTON_ROUNDING * abs(found.objective):
        return found
    return replace(found, intercept=b, fitted=plain + b, objective=found.objective + change)
