"""Newton's method for any loss over any span of functions."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from mercer.core.results import Solution
from mercer.solvers.dials import FORCING, NEWTON_ROUNDING, SLOW
from mercer.solvers.objective import Objective, Span, Step, Terms
from mercer.solvers.system import check_count, check_tol


@dataclass(frozen=True, eq=False)
class Minimum(Solution):
    """Coefficients with the intercept (t,), the values at the rows (n, t) and the objective they reach.

    The dual solver adds its dual variables (n, t), from which f(x) = sum_i dual_i k(x_i, x).
    """

    intercept: Tensor = field(kw_only=True)
    fitted: Tensor = field(kw_only=True)
    objective: float = field(kw_only=True)
    dual: Tensor | None = field(kw_only=True, default=None)


@dataclass(frozen=True)
class Newton:
    r"""Minimise the losses of f + b plus alpha times the squared norm of f. A step solves, in the function space,

    .. math:: (2 \alpha + A^* H A)\, d = -(2 \alpha f + A^* g), \qquad A f = (f(x_i))_i,

    with g and H the first and second derivatives of the losses, and goes along d as far as the objective falls. Inner
    systems are solved the more accurately the closer the end is. It stops when the decrease that a step promises,
    relative to the objective, is at most `tol`, and takes that step: the last one squares the error. For a loss that is
    not convex, negative curvature is left out and the answer is a local solution.

    Parameters
    ----------
    tol : float
        Largest relative decrease that the last step promises, the `residual` of the answer.
    max_iter : int
        Largest number of steps.
    callback : callable or None
        Called with the step and the residual.
    keep_interrupted : bool
        An interrupt from the keyboard ends with the best so far; else it is raised.

    References
    ----------
    Chapelle, *Training a support vector machine in the primal*, 2007; Nocedal and Wright, *Numerical
    Optimization*, 2006, chapters 3 and 7.

    Examples
    --------
    >>> from mercer.losses import Logistic
    >>> from mercer.solvers.full_span import FullSpan
    >>> from mercer.testing.solvers import MatrixSystem
    >>> span = FullSpan.of(MatrixSystem(torch.eye(2).double()))
    >>> found = Newton().solve(span, Objective(Logistic(), torch.tensor([[1.0], [-1.0]]).double(), alpha=0.5))
    >>> found.converged, found.value[:, 0].round(decimals=4)
    (True, tensor([ 0.4011, -0.4011], dtype=torch.float64))
    """

    tol: float = 1e-8
    max_iter: int = 100
    callback: Callable[[int, float], None] | None = field(default=None, repr=False, compare=False)
    keep_interrupted: bool = True

    def __post_init__(self) -> None:
        check_tol("Newton", self.tol)
        check_count("Newton", "max_iter", self.max_iter)

    def solve(
        self,
        span: Span,
        objective: Objective,
        start: Tensor | None = None,
        intercept: Tensor | None = None,
        near: Tensor | None = None,
    ) -> Minimum:
        """The minimum over the span, from `start` (m, t) or zero; `near` are values where the first step is taken."""
        started = time.perf_counter()
        state = _State.begin(span, objective, start, intercept)
        residual, steps, ending = math.inf, 0, ""
        care = FORCING[1] if objective.loss.quadratic else FORCING[0]
        try:
            while steps < self.max_iter:
                # The square root of the expected decrease is the distance to the end in the norm of the problem.
                inner = max(FORCING[1], min(care, 0.1 * residual**0.5))
                step = span.newton(state.terms, state.c, inner, near)
                near, line = None, state.line(step)
                if not line.start.slope < 0 and not step.exact:
                    step = span.newton(state.terms, state.c, FORCING[1])
                    line = state.line(step)
                slope = line.start.slope
                if not slope < 0:
                    residual, ending = self._flat(state, slope, residual)
                    state.settle(step)
                    break
                before, residual = residual, -slope / 2 / max(abs(state.value), torch.finfo(torch.float64).tiny)
                if residual > SLOW * before and not step.exact:
                    care = max(FORCING[1], SLOW * care)
                if not state.advance(step, line):
                    ending = "" if residual <= max(self.tol, 1e3 * NEWTON_ROUNDING) else "no step lowers the objective"
                    break
                steps += 1
                if self.callback is not None:
                    self.callback(steps, residual)
                if objective.loss.quadratic and step.exact:
                    residual = 0.0
                if residual <= self.tol:
                    break
            else:
                ending = f"stopped after max_iter={self.max_iter} iterations; increase max_iter, or use a larger alpha"
        except KeyboardInterrupt:
            if not self.keep_interrupted:
                raise
            ending = f"interrupted after {steps} steps, this is the best so far"
        state.centre()
        words = [ending, "" if objective.loss.convex else "a local solution: the loss is not convex", span.note]
        return Minimum(
            solver="newton",
            converged=not ending,
            residual=residual,
            iterations=steps,
            seconds=time.perf_counter() - started,
            reason="; ".join(filter(None, words)),
            value=state.c,
            intercept=state.b,
            fitted=state.terms.f,
            objective=state.value,
        )

    def _flat(self, state: _State, slope: float, residual: float) -> tuple[float, str]:
        """What it means that a step does not lead down: rounding at the minimum, or an inner solve that failed."""
        size = abs(slope) / 2 / max(abs(state.value), torch.finfo(torch.float64).tiny)
        if size <= max(self.tol, 1e3 * NEWTON_ROUNDING) or state.value == 0:
            return size, ""
        return min(size, residual), "a step that does not lead down: the kernel may not be positive semi-definite"


@dataclass(eq=False)
class _State:
    """Coefficients and intercept, the losses at their values and the squared norm."""

    span: Span
    c: Tensor
    b: Tensor
    terms: Terms
    penalty: float

    @classmethod
    def begin(cls, span: Span, objective: Objective, start: Tensor | None, b: Tensor | None) -> _State:
        t = objective.outputs
        c = torch.zeros(span.m, t, dtype=torch.float64, device=span.device) if start is None else start.clone()
        plain = c.new_zeros(span.n, t) if start is None else span.values(c)
        b = objective.best_intercept(plain) if b is None else b.clone()
        return cls(span, c, b, objective.at(plain + b), span.inner(c, c, plain))

    @property
    def objective(self) -> Objective:
        return self.terms.objective

    @property
    def value(self) -> float:
        """The objective."""
        return self.terms.total + self.objective.alpha * self.penalty

    def centre(self) -> None:
        """Of the intercepts of a joint loss, which a constant does not change, take those with mean zero."""
        if self.objective.loss.joint and self.objective.intercept:
            mean = self.b.mean()
            self.b, self.terms = self.b - mean, self.objective.at(self.terms.f - mean)

    def line(self, step: Step) -> _Line:
        """The objective along a step."""
        bend = self.span.inner(step.c, self.c, self.terms.f - self.b)
        return _Line(self.terms, step.f, self.penalty, bend, self.span.inner(step.c, step.c, step.f - step.b))

    def settle(self, step: Step) -> None:
        """Take a step that leaves the function as it is: its coefficients are those of the minimum."""
        if float(step.f.abs().max()) <= 1e-9 * (1.0 + float(self.terms.f.abs().max())):
            self.c = self.c + step.c

    def advance(self, step: Step, line: _Line) -> bool:
        """Go along the step to where the objective is low enough; False where it does not fall."""
        found = _ahead(line)
        if found is None:
            return False
        self.c, self.b = self.c + found.s * step.c, self.b + found.s * step.b
        self.terms, self.penalty = found.terms, found.penalty
        return True


@dataclass(frozen=True, eq=False)
class _Line:
    """The objective along a step: losses at the values f + s d, and the squared norm, a parabola in s."""

    terms: Terms
    d: Tensor
    penalty: float
    bend: float
    square: float

    @cached_property
    def start(self) -> _Place:
        return self.at(0.0)

    def at(self, s: float) -> _Place:
        """What it is after the share s of the step."""
        terms = self.terms.objective.at(self.terms.f + s * self.d) if s else self.terms
        penalty = self.penalty + 2 * s * self.bend + s * s * self.square
        return _Place(s, terms, penalty, self.d, 2 * (self.bend + s * self.square))


@dataclass(frozen=True, eq=False)
class _Place:
    """A place on a line: the losses there, the squared norm and its derivative."""

    s: float
    terms: Terms
    penalty: float
    d: Tensor
    rate: float

    @property
    def value(self) -> float:
        """The objective."""
        return self.terms.total + self.terms.objective.alpha * self.penalty

    @property
    def slope(self) -> float:
        """Its derivative along the line."""
        return float((self.terms.gradient * self.d).sum()) + self.terms.objective.alpha * self.rate


def _ahead(line: _Line) -> _Place | None:
    """The end of the step where that is good, else near the least value between; None where nothing falls."""
    slope, value = line.start.slope, line.start.value
    allowed = NEWTON_ROUNDING * abs(value)

    def falls(place: _Place) -> bool:
        return math.isfinite(place.value) and place.value <= value + 1e-4 * place.s * slope + allowed

    end = line.at(1.0)
    if falls(end) and end.slope <= 0.5 * abs(slope):
        return end
    (low, below), (high, above) = _between_corners(line, slope, end.slope)
    for k in range(25):
        share = below / (below - above) if k % 2 == 0 and 0 < above < math.inf else 0.5
        middle = line.at(low + share * (high - low))
        rate = middle.slope
        if abs(rate) <= 0.01 * abs(slope) and falls(middle):
            return middle
        if rate < 0:
            low, below = middle.s, rate
        else:
            high, above = middle.s, rate
    place = line.at(low if low > 0 else high)
    while place.s > 1e-12 and not falls(place):
        place = line.at(place.s / 2)
    return place if place.s > 1e-12 else None


def _between_corners(line: _Line, first: float, last: float) -> list[tuple[float, float]]:
    """Two places, with the slopes there, between which the slope crosses zero and has no corner; all of the line if it
    has none.
    """
    objective = line.terms.objective
    ends, corners = [(0.0, first), (1.0, last)], objective.loss.corners(objective.targets, line.terms.f, line.d)
    if corners is None:
        return ends
    inside = corners[(corners > 0) & (corners < 1)].unique()
    while len(inside):
        middle = len(inside) // 2
        place = line.at(float(inside[middle]))
        falling = place.slope < 0
        ends[0 if falling else 1] = (place.s, place.slope)
        inside = inside[middle + 1 :] if falling else inside[:middle]
    return ends
