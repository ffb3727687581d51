"""The dual solver for losses with kinks: hinge, quantile, epsilon-insensitive."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from mercer.core.errors import InputError
from mercer.losses import Loss, PiecewiseLinear
from mercer.solvers.dials import (
    CLOSE,
    FASTER,
    FEWEST_STEPS,
    FIRST,
    FLATTER,
    INNER,
    LAST,
    PATIENCE,
    SLOPE,
    SMALLEST_SLOPE,
    STEPS,
    WARM,
    WIDTH,
)
from mercer.solvers.newton import Minimum, Newton
from mercer.solvers.objective import Objective, Span
from mercer.solvers.smo import Pairs
from mercer.solvers.system import check_count, check_tol


@dataclass(frozen=True)
class Dual:
    r"""Minimise losses with kinks plus alpha times the squared norm, through the dual problem

    .. math:: \min_c\; \tfrac12 c^T K c - q(c) \quad \text{with} \quad
        -w_i s^{max}_i \le 2 \alpha c_i \le -w_i s^{min}_i
        \quad (\text{and } \textstyle\sum_i c_i = 0 \text{ with an intercept}),

    where q is made of the kinks of the loss and the s are its outer slopes; for the hinge q(c) = y^T c and
    0 <= y_i c_i <= 1 / (2 alpha). It is solved by the proximal point method: each round adds delta / 2 |c - c'|^2 with
    c' the answer of the last one, which smooths the losses, and Newton's method solves the smooth problem, with a
    linear system over the rows at a kink alone. Delta shrinks from round to round, and the limit needs none. It stops
    when the difference of the objective and its dual, relative to the objective, is at most `tol`: a proof.

    Parameters
    ----------
    tol : float
        Largest relative duality gap, the `residual` of the answer.
    max_iter : int
        Largest number of Newton steps over all rounds.
    callback : callable or None
        Called with the number of Newton steps and the residual.

    References
    ----------
    Rockafellar, *Monotone operators and the proximal point algorithm*, 1976; Li, Sun and Toh, *A highly
    efficient semismooth Newton augmented Lagrangian method for solving lasso problems*, 2018.

    Examples
    --------
    >>> from mercer.losses import Hinge
    >>> from mercer.solvers.full_span import FullSpan
    >>> from mercer.testing.solvers import MatrixSystem
    >>> span = FullSpan.of(MatrixSystem(torch.eye(2).double()))
    >>> found = Dual().solve(span, Objective(Hinge(), torch.tensor([[1.0], [-1.0]]).double(), alpha=1.0))
    >>> found.converged, found.value[:, 0].round(decimals=6)
    (True, tensor([ 0.5000, -0.5000], dtype=torch.float64))
    """

    tol: float = 1e-6
    max_iter: int = 300
    callback: Callable[[int, float], None] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_tol("Dual", self.tol)
        check_count("Dual", "max_iter", self.max_iter)

    def solve(
        self,
        span: Span,
        objective: Objective,
        start: Tensor | None = None,
        intercept: Tensor | None = None,
        multipliers: Tensor | None = None,
    ) -> Minimum:
        """The minimum over the span; `multipliers` (n, t) are dual variables c to begin with, `start` coefficients."""
        if not isinstance(objective.loss, PiecewiseLinear):
            raise InputError(f"The loss {objective.loss.name!r} is not piecewise linear: use Newton.")
        started = time.perf_counter()
        scale = float(span.mean_diag) or 1.0  # all rows are equal: only the intercept is left
        smooth = Smoothed.of(objective, scale * FIRST, multipliers)
        reach = scale * smooth.reach
        first = min(FIRST, WIDTH * smooth.spread / reach) if reach else FIRST
        smooth = replace(smooth, delta=scale * first)
        found = self._quick(span, objective, smooth)
        if found is None and multipliers is not None and span.dual_variables(smooth.centre) is not None:
            found = self._begun(span, objective, smooth)
        if found is not None:
            smooth = replace(
                smooth.moved(found.dual, found.fitted),
                delta=scale * min(first, max(WARM * first, found.residual)),
            )
        best = found
        steps, ending = 0, ""
        stuck = 0
        while best is None or best.residual > self.tol:
            inner = Newton(tol=INNER, max_iter=max(1, min(100, self.max_iter - steps)))
            c, b = (start, intercept) if found is None else (found.value, found.intercept)
            step = inner.solve(span, replace(objective, loss=smooth), c, b)
            steps += max(1, step.iterations)
            smooth = smooth.moved(span.dual_variables(step.value), step.fitted)
            found = self._judged(span, objective, smooth, step)
            if best is None or found.residual < best.residual:
                best, stuck = found, 0
            else:
                stuck += 1
            if self.callback is not None:
                self.callback(steps, found.residual)
            if found.residual <= self.tol:
                break
            if "interrupted" in step.reason:
                ending = step.reason
                break
            if steps >= self.max_iter:
                ending = f"stopped after max_iter={self.max_iter} iterations"
                ending += "; increase max_iter, or use a larger alpha or tol"
                break
            if stuck >= PATIENCE:
                ending = "this is the smallest duality gap that rounding allows: use a larger alpha or tol"
                break
            if stuck == 0:
                smooth = replace(smooth, delta=max(smooth.delta * FASTER, scale * LAST))
        return replace(
            best,
            converged=best.residual <= self.tol,
            iterations=steps,
            seconds=time.perf_counter() - started,
            reason="; ".join(filter(None, [ending, span.note])),
        )

    def excess(self, span: Span, objective: Objective, found: Minimum) -> Tensor:
        """The duality gap (1,) at the values that a model with the coefficients found predicts."""
        assert found.dual is not None
        plain = span.predictions(found.value)
        primal = objective.loss_sum(plain + found.intercept) + objective.alpha * span.inner(
            found.value, found.value, plain
        )
        bound = dual_value(span, objective, Smoothed.of(objective, 1.0, found.dual), found.dual, plain)
        return plain.new_tensor([primal - bound])

    def _begun(self, span: Span, objective: Objective, smooth: Smoothed) -> Minimum:
        """The answer of dual variables to begin with."""
        c = smooth.centre
        plain = span.values(c)
        b = objective.best_intercept(plain)
        begun = Minimum(
            solver="dual", converged=False, residual=1.0, value=c, intercept=b, fitted=plain + b, objective=0.0
        )
        return self._judged(span, objective, smooth, begun)

    def _quick(self, span: Span, objective: Objective, smooth: Smoothed) -> Minimum | None:
        """A quick first answer where the matrix is stored and the loss has one kink, better than any other start.

        Steps go on to smaller slopes where the gap is close to what is asked for; else Newton steps are quicker.
        """
        matrix = getattr(span, "matrix", None)
        if matrix is None or matrix.is_cuda or smooth.kinks.shape[0] != 1:
            return None
        searches = [
            Pairs(matrix, kink, low, high, balanced=objective.intercept)
            for kink, low, high in zip(smooth.kinks[0].T, smooth.low[0].T, smooth.high[0].T, strict=True)
        ]
        slope, least = SLOPE * smooth.spread, SMALLEST_SLOPE * smooth.spread
        most = max(FEWEST_STEPS, STEPS * span.n)
        while True:
            for search in searches:
                search.go_on(slope, most)
            centre = torch.stack([search.c for search in searches], dim=1)
            found = self._begun(span, objective, replace(smooth, centre=centre))
            done = not self.tol < found.residual <= CLOSE * self.tol
            if done or max(search.steps for search in searches) >= most or slope <= least:
                return found
            slope *= FLATTER

    def _judged(self, span: Span, objective: Objective, smooth: Smoothed, step: Minimum) -> Minimum:
        """The answer from the dual variables that a round has found, with its duality gap."""
        dual = balanced(smooth.evened(smooth.centre)) if objective.intercept else smooth.centre
        c, plain = span.from_dual(dual, step.value, step.fitted - step.intercept)
        b = step.intercept
        square = span.inner(c, c, plain)
        primal = objective.loss_sum(plain + b) + objective.alpha * square
        if objective.intercept:
            other = objective.best_intercept(plain)
            better = objective.loss_sum(plain + other) + objective.alpha * square
            if better < primal:
                b, primal = other, better
        bound = dual_value(span, objective, smooth, dual, plain)
        gap = (primal - bound) / max(abs(primal), abs(bound), torch.finfo(torch.float64).tiny)
        if primal <= 1e-12 * objective.loss_sum(torch.zeros_like(plain)):
            gap = 0.0
        return Minimum(
            solver="dual",
            converged=False,
            residual=max(gap, 0.0),
            value=c,
            intercept=b,
            fitted=plain + b,
            objective=primal,
            dual=dual,
        )


@dataclass(frozen=True, eq=False)
class Smoothed(Loss):
    r"""A piecewise linear loss of all rows, smoothed around dual variables `centre`,

    .. math:: \phi_i(f) = 2 \alpha \max_c\; q_i(c) - c f - \tfrac{\delta}{2} (c - c'_i)^2, \qquad
        c_i(f) = \textstyle\sum_j \text{ of } c'_i + (\kappa_{ij} - f) / \delta \text{ clipped to kink j's interval}.

    As delta goes to zero it becomes the weighted loss itself.
    """

    kinks: Tensor
    low: Tensor
    high: Tensor
    shift: float
    delta: float
    centre: Tensor
    weight: Tensor

    @classmethod
    def of(cls, objective: Objective, delta: float, centre: Tensor | None) -> Smoothed:
        loss, y, shift = objective.loss, objective.targets, 2 * objective.alpha
        assert isinstance(loss, PiecewiseLinear)
        weight = torch.ones_like(y) * objective.w
        bounds = -loss.slopes(y) * weight / shift
        centre = torch.zeros_like(y) if centre is None else centre.clamp(bounds[-1], bounds[0])
        weight = torch.where(weight > 0, weight, 1.0)  # rows without weight have empty intervals
        return cls(loss.kinks(y), bounds[1:], bounds[:-1], shift, delta, centre, weight)

    @property
    def spread(self) -> float:
        """The mean distance of the kinks from their mean."""
        return float((self.kinks - self.kinks.mean()).abs().mean()) or 1.0

    @property
    def reach(self) -> float:
        """The mean length of the intervals of the dual variables."""
        return float((self.high[0] - self.low[-1]).mean())

    def multipliers(self, f: Tensor) -> Tensor:
        """The dual variables c(f)."""
        parts = (self.centre + (self.kinks - f) / self.delta).clamp(self.low, self.high)
        return self.low[-1] + (parts - self.low).sum(0)

    def moved(self, c: Tensor | None, f: Tensor) -> Smoothed:
        """The same around dual variables c, or where there are none, around those at f."""
        centre = self.multipliers(f) if c is None else c.clamp(self.low[-1], self.high[0])
        return replace(self, centre=centre)

    def evened(self, c: Tensor) -> Tensor:
        """Dual variables nearer to a sum of zero in each column: those between bounds, which hardly cost, give way."""
        room = torch.minimum(c - self.low, self.high - c).amax(0).clamp(min=0.0)
        most = room.sum(0)
        share = (c.sum(0) / torch.where(most > 0, most, 1.0)).clamp(-1.0, 1.0)
        return c - share * room

    def linear(self, c: Tensor) -> Tensor:
        """q(c) for each row."""
        inside = c.clamp(self.low, self.high) - torch.zeros_like(c).clamp(self.low, self.high)
        return (self.kinks * inside).sum(0)

    # The objective multiplies by the weights, which are part of the intervals here.

    def value(self, y: Tensor, f: Tensor) -> Tensor:
        return self.look(y, f)[0]

    def gradient(self, y: Tensor, f: Tensor) -> Tensor:
        return -self.shift * self.multipliers(f) / self.weight

    def look(self, y: Tensor, f: Tensor) -> tuple[Tensor, Tensor]:
        c, unit = self.multipliers(f), self.shift / self.weight
        return unit * (self.linear(c) - c * f - self.delta / 2 * (c - self.centre).square()), -unit * c

    def hessian(self, y: Tensor, f: Tensor) -> Tensor:
        c = self.centre + (self.kinks - f) / self.delta
        free = ((c > self.low) & (c < self.high)).any(0)
        return self.shift / self.delta * free.to(f) / self.weight

    def corners(self, y: Tensor, f: Tensor, d: Tensor) -> Tensor:
        bounds = torch.stack([self.low, self.high])
        return ((self.kinks - f + self.delta * (self.centre - bounds)) / d).flatten()


def dual_value(span: Span, objective: Objective, smooth: Smoothed, dual: Tensor, plain: Tensor) -> float:
    """The dual objective, below that of any function, from the values of the function of dual variables."""
    return objective.alpha * (2 * float(smooth.linear(dual).sum()) - span.dual_square(dual, plain))


def balanced(c: Tensor) -> Tensor:
    """c with its larger side scaled down so that each column sums to zero."""
    positive, negative = c.clamp(min=0.0), (-c).clamp(min=0.0)
    up, down = positive.sum(0), negative.sum(0)
    least = torch.minimum(up, down)
    share = [torch.where(side > 0, least / torch.where(side > 0, side, 1.0), 0.0) for side in (up, down)]
    return positive * share[0] - negative * share[1]
