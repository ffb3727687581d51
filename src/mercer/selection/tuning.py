"""Kernel parameters by the gradient of the leave-one-out error, and how many of them the rows can tell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from scipy.optimize import OptimizeResult, minimize
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError, MercerError, NotPositiveDefiniteError
from mercer.kernels import Kernel
from mercer.kernels.columns import per_column
from mercer.selection.alpha import get_criterion
from mercer.selection.objective import FAILED, Objective, weighted_gram
from mercer.selection.rows import Rows, merged_rows, subsample
from mercer.solvers.system import check_alpha

FACTORS = (1.0, 1 / 3, 3.0, 0.1, 10.0, 0.01, 100.0, 1e-3, 1e3)
"""Multiples of the given length scales that are tried before the descent, in this order."""

RIDGES = tuple(10.0**power for power in range(-10, 1))
"""Values of alpha / tr A that are tried before the descent."""

MOST_ROWS = 1000
"""Rows that are learned from, at most: an evaluation takes the cube of their number."""
FEW_ROWS = 500  # for the first descents
JUDGED_FROM = 6  # distinct rows: fewer leave too little to judge a tuned kernel by
SCREENED_ROWS = 200  # for the screening
DESCENTS = 3  # from the best of the screened starts

CANDIDATES = ("none", "scale", "ard")
"""What may be tuned, in the order of the number of parameters."""
FOLDS = 3
"""Parts of a small sample, each judged by fits to the others."""
CLEAR = 1.0
"""Standard errors by which a candidate must beat those that have fewer parameters."""

SMALL_RIDGE = 0.01
"""Of the mean of k(x, x): the ridge from which many length scales start, so that each of them has a slope. On
pumadyn32nm, 28 of whose 32 columns are noise, descents from where one factor ended found nothing."""

DISTANCE_PENALTY = 0.01  # in log error, for each place in FACTORS: extreme starts only when they pay
PARAMETER_RANGE = np.log(100.0)  # either way from where the descent starts
RIDGE_RANGE = (np.log(1e-10), np.log(100.0))  # of alpha / tr A: below, coefficients lose half their digits
SMALLEST_GAIN = 1e-4  # of the log error, in one iteration
EVALUATIONS = 3  # of the error, at most, for each iteration


Progress = Callable[[int, float], None]


@dataclass(frozen=True, eq=False)
class Tuned:
    """What tuning found.

    Attributes
    ----------
    kernel : Kernel, str or callable
        The kernel with its new parameters.
    alpha : float or Tensor
        The ridge for all rows: the given one, or the one found times (total weight of all rows) / (of those used).
    error : float
        The leave-one-out (or GCV) error relative to the variance of the target, the mean over targets.
    start_error : float
        The same for the kernel that was given.
    history : tuple[float, ...]
        The lowest error so far after each iteration on the rows used.
    message : str
        How it ended, and on which rows.
    rows_used : int
        Number of distinct rows used.
    tune : bool or str
        What was tuned: "none", "scale" or "ard".
    judged : tuple[float, ...]
        Where the rows decided what to tune, the relative errors of "none", "scale" and "ard" at rows that those fits
        had not seen; else empty.
    """

    kernel: Kernel
    alpha: float | Tensor
    error: float
    start_error: float
    history: tuple[float, ...]
    message: str
    rows_used: int
    tune: str = "ard"
    judged: tuple[float, ...] = ()


def tune_kernel(
    kernel: Kernel,
    X: Points,
    Y: Tensor,
    weights: Tensor | None,
    alpha: float | Tensor | str,
    *,
    tune: str | bool = "ard",
    intercept: bool = False,
    max_rows: int = MOST_ROWS,
    max_iter: int = 50,
    seed: int = 0,
    n_starts: int = 9,
    progress: Progress | None = None,
) -> Tuned:
    r"""Find the kernel's tunable parameters theta, and alpha when it is "auto", "loo" or "gcv", that minimise

    .. math:: \log \sum_t \frac{E_t(\theta, \alpha)}{\operatorname{var} y_t},

    with E_t the weighted leave-one-out error of target t (the GCV error for ``alpha="gcv"``), by L-BFGS on the logs of
    the parameters. Length scales must be numbers; each parameter stays within a factor 100 of its start, and the kernel
    stays what it was where nothing is better.

    `tune` says which length scales move: "scale" moves all of one kernel together, so that several keep their ratios;
    "ard" then moves each for itself, and gives a kernel that has one for several columns one for each. True
    takes the better of the two, or leaves the kernel as it was given. Errors that were minimised say little about that
    on few rows, so each candidate is tuned on some rows and judged on others: on 500 by those left, or, of less than
    1,000 rows, on two thirds by the third. The fewest parameters win whose error is worse than the least by no more
    than a standard error of the difference.

    `n_starts` multiples of the given length scales are screened on at most 500 rows. Descents there from the best three
    find the start of the descent on all. On more than `max_rows` distinct rows a random subsample is used; there a
    given alpha is scaled by the total weight, which keeps lambda = alpha / n. Rows equal in X and Y are merged first:
    integer weights equal repeated rows. A fixed alpha of zero, or near it, stands for 1e-12 tr K.
    With `intercept` the fits have one. `progress` is called with the iteration and the error.

    References: Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, section 5.4.2; Cawley and
    Talbot, *On over-fitting in model selection and subsequent selection bias in performance evaluation*, 2010.

    >>> import torch
    >>> from mercer.kernels import Gaussian
    >>> X = torch.linspace(0, 6, 40).double().reshape(-1, 1)
    >>> tuned = tune_kernel(Gaussian(length_scale=0.1), Points(X), torch.sin(X), None, alpha=1e-6)
    >>> tuned.error < 1e-3 * tuned.start_error
    True
    """
    if max_rows < 2 or n_starts < 1 or max_iter < 0:
        raise InputError(f"max_rows={max_rows}, n_starts={n_starts}, max_iter={max_iter}: need at least 2, 1 and 0.")
    if tune is not True and tune not in CANDIDATES[1:]:
        raise InputError(f'tune={tune!r}: choose "scale", "ard", or True for the better of the two.')
    error_of = get_criterion(alpha if isinstance(alpha, str) and alpha != "auto" else "loo")
    everything = merged_rows(X, Y, weights, square=kernel.domain == "matrix")
    rows = subsample(everything, max_rows, seed)
    weighted_gram(kernel, rows.take(slice(2)))  # a kernel that does not fit the data fails here, with its own words
    share = rows.total / everything.total
    fixed = None if isinstance(alpha, str) else check_alpha(alpha, rows.Y.shape[1]).expand(rows.Y.shape[1]) * share
    whole = Objective(kernel, rows, fixed, error_of, intercept)
    few = whole if len(rows) <= FEW_ROWS else whole.on(slice(FEW_ROWS))
    search = Search(FACTORS[:n_starts], max_iter, progress)
    judged: tuple[float, ...] = ()
    found: dict[str, Candidate] | None = None
    if tune is True and len(rows) < JUDGED_FROM:
        tune = "none"
    elif tune is True:
        tune, judged, found = decided(whole, search)
    found = found or search.candidates(few, tune)
    given = found["none"].on(whole)
    if tune == "none":
        best = given
    else:
        best = found[tune] if few is whole else search.continued(found[tune], whole)
    if best.value >= FAILED:
        raise NotPositiveDefiniteError(
            f"The error could not be computed for {kernel!r} on {len(rows)} rows: its Gram matrix is not finite or not "
            "positive semi-definite. Test the kernel with mercer.testing.check_kernel."
        )
    if given.value < best.value:
        tune, best = "none", given
    return Tuned(
        kernel=kernel if tune == "none" else best.kernel,
        alpha=best.objective.ridge_at(best.theta) / share if isinstance(alpha, str) else alpha,
        error=float(np.exp(best.value)),
        start_error=float(np.exp(given.value)) if given.value < FAILED else float("inf"),
        history=tuple(search.history),
        message=f"{best.words}; {_which_rows(rows, everything)}",
        rows_used=len(rows),
        tune=tune,
        judged=judged,
    )


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
    history: list[float] = field(default_factory=list)

    def candidates(self, objective: Objective, tune: str) -> dict[str, Candidate]:
        """The kernel as it is with the best ridge, and what becomes of it where more and more is tuned."""
        self.history.clear()
        scale = objective.moving(objective.kernel, tied=True)
        starts = screened_starts(scale.on(slice(SCREENED_ROWS)), self.factors)
        value, theta = starts[0] if len(scale.rows) <= SCREENED_ROWS else screened_starts(scale, (1.0,))[0]
        found = {"none": Candidate(scale, value, theta, "the kernel as it was given is as good")}
        if tune != "none":
            found["scale"] = self._ended(scale, promising(starts))
        if tune == "ard":
            ard = objective.moving(per_column(found["scale"].kernel, objective.rows.X), tied=False)
            if len(ard.start()) == len(scale.start()):
                found["ard"] = found["scale"]
            else:
                found["ard"] = self._ended(ard, self._starts_of_many(objective, found["scale"]))
        return found

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


def decided(whole: Objective, search: Search) -> tuple[str, tuple[float, ...], dict[str, Candidate] | None]:
    """What to tune, by errors at rows that the fits have not seen, these errors, and the fits to the first few rows.

    A candidate with more parameters must be better by more than a standard error of the difference, over rows.
    """
    n, free = len(whole.rows), whole.moving(per_column(whole.kernel, whole.rows.X), tied=False)
    if whole.rows.square or len(free.start()) == len(whole.moving(whole.kernel, tied=True).start()):
        return "scale", (), None
    split = n >= 2 * FEW_ROWS
    used = search if split else Search(search.factors, search.max_iter)
    order = torch.arange(n, device=whole.rows.Y.device)
    parts = [order[FEW_ROWS:]] if split else list(order.tensor_split(min(n, FOLDS)))
    squares = []
    for part in parts:
        others = order[(order < part[0]) | (order > part[-1])][:FEW_ROWS]
        found = used.candidates(whole.on(others), "ard")
        rows = whole.rows.take(part)
        squares.append(torch.stack([_squared_errors(found[name], rows, whole.variance) for name in CANDIDATES]))
    errors = torch.cat(squares, dim=1).cpu().numpy()
    weights = torch.cat([whole.rows.weights[part] for part in parts]).cpu().numpy()
    share = weights / weights.sum()
    means = errors @ share
    best = int(np.argmin(means))
    with np.errstate(invalid="ignore"):  # where there is no fit errors are infinite, and no candidate is near the best
        change = errors - errors[best]
        spread = np.sqrt(((change - (means - means[best])[:, None]) ** 2 * share) @ share)
        near = means - means[best] <= CLEAR * spread
    return CANDIDATES[int(np.argmax(near))], tuple(map(float, means)), found if split else None


def _squared_errors(found: Candidate, rows: Rows, variance: Tensor) -> Tensor:
    """Relative squared errors at rows, the mean over targets; infinite where there is no fit."""
    try:
        missed = rows.Y - found.objective.predictions(found.theta, rows)
    except MercerError:
        return rows.Y.new_full((len(rows),), torch.inf)
    return (missed.square() / variance).mean(1)


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
    return minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, callback=callback, options=options)


def _which_rows(rows: Rows, everything: Rows) -> str:
    if len(rows) == len(everything):
        return f"on all {len(rows):,} distinct rows"
    text = f"on a random subsample of {len(rows):,} of {len(everything):,} distinct rows"
    return f"{text}, with alpha scaled by the total weight"
