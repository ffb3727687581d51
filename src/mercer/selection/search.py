"""Descents of the leave-one-out error in the parameters of a kernel, from several starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from mercer.core.blas import one_blas_thread
from mercer.kernels import Kernel
from mercer.kernels.columns import per_column
from mercer.selection.dials import (
    DESCENTS,
    DISTANCE_PENALTY,
    EVALUATIONS,
    FAILED,
    SCREENED_ROWS,
    SMALL_RIDGE,
    SMALLEST_GAIN,
)
from mercer.selection.objective import Objective

RIDGES = tuple(10.0**power for power in range(-10, 1))
"""Values of alpha / tr A that are tried before the descent."""

CANDIDATES = ("none", "scale", "ard")
"""What may be tuned, in the order of the number of parameters."""


PARAMETER_RANGE = np.log(100.0)  # either way from where the descent starts
RIDGE_RANGE = (np.log(1e-10), np.log(100.0))  # of alpha / tr A: below, coefficients lose half their digits

Progress = Callable[[int, float], None]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A place where a search ended: the logs of the parameters, the objective there, and how it ended."""

    objective: Objective
    value: float
    theta: np.ndarray
    words: str

    @property
    def kernel(self) -> Kernel:
        return self.objective.kernel_at(self.theta)

    def on(self, objective: Objective) -> Candidate:
        """The same place for other rows."""
        other = objective.moving(self.objective.kernel, tied=self.objective.tied)
        return replace(self, objective=other, value=other.value(self.theta))


@dataclass(frozen=True, eq=False)
class Search:
    """Descents, with what is told of them."""

    factors: tuple[float, ...]
    max_iter: int
    progress: Progress | None = None
    descents: int = DESCENTS
    history: list[float] = field(default_factory=list)

    def together(self, objective: Objective) -> dict[str, Candidate]:
        """The kernel as it is with the best ridge, and what becomes of it where one factor moves its length scales."""
        self.history.clear()
        scale = objective.moving(objective.kernel, tied=True)
        starts = screened_starts(scale.on(slice(SCREENED_ROWS)), self.factors)
        value, theta = starts[0] if len(scale.rows) <= SCREENED_ROWS else screened_starts(scale, (1.0,))[0]
        given = Candidate(scale, value, theta, "the kernel as it was given is as good")
        return {"none": given, "scale": self._ended(scale, promising(starts)[: self.descents])}

    def each(self, objective: Objective, scale: Candidate) -> Candidate:
        """What becomes of it where each length scale moves for itself."""
        free = objective.moving(per_column(scale.kernel, objective.rows.X), tied=False)
        if len(free.start()) == len(scale.objective.start()):
            return scale
        return self._ended(free, self._starts_of_many(objective, scale))

    def candidates(self, objective: Objective, tune: str) -> dict[str, Candidate]:
        """What becomes of a kernel where more and more is tuned."""
        found = self.together(objective)
        return found | {"ard": self.each(objective, found["scale"])} if tune == "ard" else found

    def _starts_of_many(self, objective: Objective, scale: Candidate) -> list[np.ndarray]:
        """Where each length scale begins to move for itself: where one factor ended, and, as there may be no slope left
        there, at the kernel as it was given with a small ridge.
        """
        ended, given = (
            objective.moving(per_column(kernel, objective.rows.X), tied=False).start()
            for kernel in (scale.kernel, objective.kernel)
        )
        ridge = scale.theta[len(scale.objective.start()) :]
        least = np.minimum(ridge, np.log(SMALL_RIDGE / len(objective.rows)))
        return [np.append(ended, ridge), np.append(given, least)]

    def continued(self, found: Candidate, objective: Objective) -> Candidate:
        """A descent on more rows from where one on few ended."""
        self.history.clear()
        return self._ended(objective.moving(found.objective.kernel, tied=found.objective.tied), [found.theta])

    def _ended(self, objective: Objective, starts: list[np.ndarray]) -> Candidate:
        if len(starts[0]) == 0:
            return Candidate(objective, objective.value(starts[0]), starts[0], "the kernel has no parameters to tune")
        found = [_minimise(objective, start, self.max_iter, self._after_iteration) for start in starts]
        end = min(found, key=lambda result: result.fun)
        words = f"no further progress after {end.nit} iterations"
        if end.success:
            words = f"converged after {end.nit} iterations"
        elif end.nit >= self.max_iter or end.nfev >= EVALUATIONS * self.max_iter:
            words = f"stopped at the limit after {end.nit} iterations"
        value, theta = (FAILED, starts[0]) if objective.best is None else objective.best
        return Candidate(objective, value, theta, words)

    def _after_iteration(self, intermediate_result: Any) -> None:
        self.history.append(min([float(np.exp(intermediate_result.fun)), *self.history[-1:]]))
        if self.progress is not None:
            self.progress(len(self.history), self.history[-1])


def screened_starts(objective: Objective, factors: tuple[float, ...]) -> list[tuple[float, np.ndarray]]:
    """Values and places of possible starts: length scales times each factor, with the best ridge.

    The kernel as it was given comes first.
    """
    widths = objective.widths
    ridges = [()] if objective.alpha is not None else [(np.log(rho),) for rho in RIDGES]
    starts = []
    for factor in factors if widths.any() else (1.0,):
        thetas = [np.append(objective.start() + np.log(factor) * widths, ridge) for ridge in ridges]
        starts.append(min(((objective.value(theta), theta) for theta in thetas), key=lambda start: start[0]))
    return starts


def promising(starts: list[tuple[float, np.ndarray]]) -> list[np.ndarray]:
    """The few starts worth a descent, the best first."""
    order = sorted(range(len(starts)), key=lambda i: starts[i][0] + DISTANCE_PENALTY * i)
    return [starts[i][1] for i in order[:DESCENTS]]


def _minimise(objective: Objective, start: np.ndarray, max_iter: int, callback: Callable[..., None]) -> Any:
    if max_iter == 0:
        return OptimizeResult(fun=objective(start)[0], nit=0, nfev=1, success=False)
    bounds = [(place - PARAMETER_RANGE, place + PARAMETER_RANGE) for place in start]
    if objective.alpha is None:
        bounds[-1] = RIDGE_RANGE
    options = {"maxiter": max_iter, "maxfun": EVALUATIONS * max_iter, "ftol": SMALLEST_GAIN, "gtol": 1e-5}
    with one_blas_thread():
        return minimize(
            objective, start, jac=True, method="L-BFGS-B", bounds=bounds, callback=callback, options=options
        )
