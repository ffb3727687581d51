"""Hyperparameters by the gradient of the marginal likelihood."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy.optimize import minimize

from mercer.core.blas import one_blas_thread
from mercer.core.errors import NotPositiveDefiniteError
from mercer.core.threads import on_one_core
from mercer.processes.dials import (
    EVALUATIONS,
    FAILED,
    FEW_ROWS,
    FIRST_STEPS,
    MARGIN,
    SCREENING_GAIN,
    SMALLEST_GAIN,
    STOPPED,
    WALL,
)
from mercer.processes.evidence import Evidence
from mercer.processes.hyperparameters import Hyperparameters

SPREAD = {"length_scale": np.log(10.0), "noise": np.log(100.0)}
"""Restarts draw logs this far either way from the start; other parameters by a factor of three."""

Progress = Callable[[int, float], None]
R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class Maximum:
    """Where the marginal likelihood was found to be largest.

    Attributes
    ----------
    theta : array
        The logs of the parameters.
    value : float
        Log marginal likelihood there.
    start_value : float
        Log marginal likelihood plus log prior at the first start.
    history : tuple[float, ...]
        The best value so far after each iteration on all rows that are learned from.
    evaluations : int
        Of the likelihood of these rows, over all starts.
    converged : bool
        Whether the ascent ended by itself.
    message : str
        How it ended.
    n_rows : int
        That were learned from.
    n_copies : int
        Rows that were left out since they repeat others.
    """

    theta: np.ndarray
    value: float
    start_value: float
    history: tuple[float, ...]
    evaluations: int
    converged: bool
    message: str
    n_rows: int
    n_copies: int = 0


class Ascent:
    """Log likelihood plus log prior as a minimiser sees it, and the best point seen."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.hyperparameters = evidence.hyperparameters
        self.total, self.value = -np.inf, -np.inf
        self.theta = self.hyperparameters.start
        self.history: list[float] = []
        self.converged, self.message = True, "there was nothing to learn"
        self._seen: dict[bytes, tuple[float, np.ndarray]] = {}

    @property
    def evaluations(self) -> int:
        """Number of different points at which the evidence was asked for."""
        return len(self._seen)

    def __call__(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the value and minus its gradient."""
        key = theta.tobytes()
        if key not in self._seen:
            self._seen[key] = self._evaluate(theta)
        return self._seen[key]

    def _quietly(self, work: Callable[[], R]) -> R:
        """The result of work that on few rows wakes no threads: those of torch and OpenBLAS would fight for cores."""
        if len(self.evidence.data) > FEW_ROWS:
            return work()
        with one_blas_thread():
            return on_one_core(work)

    def _evaluate(self, theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self.evidence(theta)
        if not np.isfinite(value):
            known = np.isfinite(self.total)
            return WALL * max(1.0, abs(self.total)) - self.total if known else FAILED, np.zeros_like(theta)
        prior, slope = self.hyperparameters.log_prior(theta)
        if value + prior > self.total:
            self.total, self.value, self.theta = value + prior, value, np.array(theta)
        return -(value + prior), -(gradient + slope)

    def run(
        self,
        start: np.ndarray,
        max_iter: int,
        gain: float,
        progress: Progress | None = None,
        first_step: float | None = None,
    ) -> Ascent:
        """L-BFGS from a start.

        The first step has the length of the gradient, within the bounds, and takes some evaluations to cut. A start
        that is known to be near the end is better served by `first_step`, the largest change of an entry in it; since
        first steps may then be too short to gain much, they are never the last.
        """
        _, slope = self._quietly(lambda: self(start))
        if not self.hyperparameters.open:
            return self
        low, high = self.hyperparameters.bounds.T
        size = 1.0
        if first_step is not None:
            free = np.clip(start - slope, low, high) != start
            size = max(1.0, float(np.abs(slope[free]).max(initial=0.0)) / first_step)

        def after_iteration(intermediate_result: Any) -> None:
            self.history.append(self.value)
            totals.append(self.total)
            if progress is not None:
                progress(len(self.history), self.value)
            stalled = totals[-1] - totals[-2] <= gain * max(abs(totals[-1]), 1.0)
            if first_step is not None and len(totals) > FIRST_STEPS and stalled:
                raise StopIteration

        totals, most = [self.total], EVALUATIONS * max_iter + 10

        def minimised() -> Any:
            return minimize(
                lambda theta: tuple(part / size for part in self(theta)),
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=self.hyperparameters.bounds.tolist(),
                callback=after_iteration,
                options={
                    "maxiter": max_iter,
                    "maxfun": most,
                    "ftol": gain if first_step is None else 0.0,
                    "gtol": 1e-5 / size,
                },
            )

        found = self._quietly(minimised)
        self.converged = found.nit < max_iter and found.nfev < most
        words = "no further progress" if self.converged else "stopped at the limit"
        done = found.success or found.status == STOPPED
        self.message = f"{'converged' if done else words} after {found.nit} iterations"
        return self


def maximise(
    evidence: Evidence,
    few: Evidence | None = None,
    *,
    n_restarts: int = 0,
    max_iter: int = 100,
    tol: float = SMALLEST_GAIN,
    seed: int = 0,
    progress: Progress | None = None,
    first_step: float | None = None,
) -> Maximum:
    """The hyperparameters of greatest log marginal likelihood (plus log prior), by L-BFGS on their logs.

    Starts are the one of the hyperparameters and `n_restarts` random ones around it. Where `few` is given, the evidence
    of some rows, each is followed there, and the end of the best, or the first start where that is better, begins the
    ascent on all rows. A random start must win by three nats, which keeps learning from explaining noise by
    coincidences. The best point of an ascent is kept, whatever comes after it. `first_step` is for a start that is near
    the end.

    References: Byrd, Lu, Nocedal and Zhu, *A limited memory algorithm for bound constrained optimization*, 1995; Kass
    and Raftery, *Bayes factors*, 1995.

    >>> import torch
    >>> from mercer.core.arrays import Points
    >>> from mercer.kernels import Gaussian
    >>> from mercer.operators.placement import Placement
    >>> from mercer.processes import ExactEvidence, Hyperparameters, Observations
    >>> from mercer.processes.means import ZeroMean
    >>> X = torch.linspace(0, 3, 20).unsqueeze(1).double()
    >>> hyper = Hyperparameters.of(Gaussian(), noise=1.0, learn_noise=True)
    >>> place = Placement(torch.device("cpu"), torch.float64)
    >>> found = maximise(ExactEvidence(Observations(Points(X), X.sin()), hyper, ZeroMean(), place))
    >>> found.value > found.start_value
    True
    """
    hyper = evidence.hyperparameters
    starts = [hyper.start, *random_starts(hyper, n_restarts, seed)]
    if few is None:
        ends = [Ascent(evidence).run(start, max_iter, tol, progress, first_step) for start in starts]
        chosen = best_of(ends)
        start_value, evaluations = -ends[0](starts[0])[0], sum(end.evaluations for end in ends)
    else:
        screened = best_of([Ascent(few).run(start, max_iter, max(tol, SCREENING_GAIN)) for start in starts])
        chosen = Ascent(evidence)
        chosen(starts[0])
        start_value = chosen.total
        chosen(screened.theta)
        chosen.run(chosen.theta, max_iter, tol, progress)
        evaluations = chosen.evaluations
    if not np.isfinite(chosen.total):
        evidence.evaluate(hyper.start)  # raises what was wrong, if it was something else
        raise NotPositiveDefiniteError(
            f"The marginal likelihood of {hyper.kernel!r} could not be computed: the covariance of the data is not "
            "finite or not positive definite. Test the kernel with mercer.testing.check_kernel, or use a larger noise."
        )
    return Maximum(
        theta=chosen.theta,
        value=chosen.value,
        start_value=start_value,
        history=tuple(chosen.history),
        evaluations=evaluations,
        converged=chosen.converged,
        message=chosen.message,
        n_rows=len(evidence.data),
    )


def best_of(ends: list[Ascent]) -> Ascent:
    """The first ascent, unless another one is better by a margin."""
    best = max(ends, key=lambda end: end.total)
    return best if best.total > ends[0].total + MARGIN else ends[0]


def random_starts(hyper: Hyperparameters, count: int, seed: int) -> list[np.ndarray]:
    """Random points around the start, within the bounds."""
    rng = np.random.default_rng(seed)
    reach = np.full(len(hyper), np.log(3.0))
    for name, far in SPREAD.items():
        reach[hyper.mask(name)] = far
    low, high = hyper.bounds[:, 0], hyper.bounds[:, 1]
    starts = []
    for _ in range(count):
        shift = rng.uniform(-1.0, 1.0, size=len(hyper))
        widths = hyper.mask("length_scale")
        shift[widths] = 0.5 * shift[widths] + 0.5 * rng.uniform(-1.0, 1.0)  # mostly all of them together
        starts.append(np.clip(hyper.start + reach * shift, low, high))
    return starts
