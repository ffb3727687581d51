"""Kernel parameters by the gradient of the leave-one-out error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError, NotPositiveDefiniteError
from mercer.kernels import Kernel
from mercer.selection.alpha import get_criterion
from mercer.selection.objective import FAILED, Objective, weighted_gram
from mercer.selection.rows import Rows, merged_rows, subsample
from mercer.solvers.system import check_alpha

FACTORS = (1.0, 1 / 3, 3.0, 0.1, 10.0, 0.01, 100.0, 1e-3, 1e3)
"""Multiples of the given length scales that are tried before the descent, in this order."""

RIDGES = tuple(10.0**power for power in range(-10, 1))
"""Values of alpha / tr A that are tried before the descent."""

FEW_ROWS = 500  # for the screening and the first descents
DESCENTS = 3  # from the best of the screened starts
DISTANCE_PENALTY = 0.01  # in log error, for each place in FACTORS: extreme starts only when they pay
PARAMETER_RANGE = np.log(100.0)  # either way from where the descent starts
RIDGE_RANGE = (np.log(1e-10), np.log(100.0))  # of alpha / tr A: below, coefficients lose half their digits
SMALLEST_GAIN = 1e-5  # of the log error, in one iteration
EVALUATIONS = 3  # of the error, at most, for each iteration


@dataclass(frozen=True, eq=False)
class Tuned:
    """What tuning found.

    Attributes
    ----------
    kernel : the kernel with its new parameters.
    alpha : the ridge for all rows: the given one, or the one found times (total weight of all rows) / (of those used).
    error : the leave-one-out (or GCV) error relative to the variance of the target, the mean over targets.
    start_error : the same for the kernel that was given.
    history : the lowest error so far after each iteration on the rows used.
    message : how it ended, and on which rows.
    rows_used : number of distinct rows used.
    """

    kernel: Kernel
    alpha: float | Tensor
    error: float
    start_error: float
    history: tuple[float, ...]
    message: str
    rows_used: int


def tune_kernel(
    kernel: Kernel,
    X: Points,
    Y: Tensor,
    weights: Tensor | None,
    alpha: float | Tensor | str,
    *,
    intercept: bool = False,
    max_rows: int = 2000,
    max_iter: int = 50,
    seed: int = 0,
    n_starts: int = 9,
    progress: Callable[[int, float], None] | None = None,
) -> Tuned:
    r"""Find the kernel's tunable parameters theta, and alpha when it is "loo" or "gcv", that minimise

    .. math:: \log \sum_t \frac{E_t(\theta, \alpha)}{\operatorname{var} y_t},

    with E_t the weighted leave-one-out error of target t (the GCV error for ``alpha="gcv"``), by L-BFGS on the logs of
    the parameters. `n_starts` multiples of the given length scales are screened on a few rows, a descent there from
    the best three finds the start of the descent on all. Each parameter stays within a factor 100 of its start.
    Length scales must be numbers.

    On more than `max_rows` distinct rows a random subsample is used; there alpha is scaled by the total weight,
    which keeps lambda = alpha / n. Rows equal in X and Y are merged first: integer weights equal repeated rows.
    A fixed alpha of zero, or near it, stands for 1e-12 tr K.
    With `intercept` the fits have one. `progress` is called with the iteration and the error.

    References: Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, section 5.4.2.

    >>> import torch
    >>> from mercer.kernels import Gaussian
    >>> X = torch.linspace(0, 6, 40).double().reshape(-1, 1)
    >>> tuned = tune_kernel(Gaussian(length_scale=0.1), Points(X), torch.sin(X), None, alpha=1e-6)
    >>> tuned.error < 1e-3 * tuned.start_error
    True
    """
    criterion = alpha if isinstance(alpha, str) else "loo"
    error_of = get_criterion(criterion)
    if max_rows < 2 or n_starts < 1 or max_iter < 0:
        raise InputError(f"max_rows={max_rows}, n_starts={n_starts}, max_iter={max_iter}: need at least 2, 1 and 0.")
    everything = merged_rows(X, Y, weights, square=kernel.domain == "matrix")
    rows = subsample(everything, max_rows, seed)
    weighted_gram(kernel, rows.take(slice(2)))  # a kernel that does not fit the data fails here, with its own words
    share = rows.total / everything.total
    fixed = None if isinstance(alpha, str) else check_alpha(alpha, rows.Y.shape[1]).expand(rows.Y.shape[1]) * share
    objective = Objective(kernel, rows, fixed, error_of, intercept)
    few = objective if len(rows) <= FEW_ROWS else objective.on_first(FEW_ROWS)
    starts = screened_starts(few, FACTORS[:n_starts])
    start_value, _ = objective(starts[0][1])
    history, ending = _descend(few, promising(starts), max_iter, progress)
    if few is not objective and few.best is not None:
        history, ending = _descend(objective, [few.best[1]], max_iter, progress)
    if objective.best is None:
        raise NotPositiveDefiniteError(
            f"The error could not be computed for {kernel!r} on {len(rows)} rows: its Gram matrix is not finite or not "
            "positive semi-definite. Test the kernel with mercer.testing.check_kernel."
        )
    value, theta = objective.best
    return Tuned(
        kernel=objective.kernel_at(theta),
        alpha=objective.ridge_at(theta) / share if isinstance(alpha, str) else alpha,
        error=float(np.exp(value)),
        start_error=float(np.exp(start_value)) if start_value < FAILED else float("inf"),
        history=history,
        message=f"{ending}; {_which_rows(rows, everything)}",
        rows_used=len(rows),
    )


def screened_starts(objective: Objective, factors: tuple[float, ...]) -> list[tuple[float, np.ndarray]]:
    """Values and places of possible starts: length scales times each factor, with the best ridge.

    The kernel as it was given comes first.
    """
    widths = length_scale_mask(objective.parameters)
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


def length_scale_mask(parameters: dict[str, Any]) -> np.ndarray:
    """One for each entry of theta that is a length scale, zero for the other parameters."""
    masks = [np.full(np.size(v), float(path.endswith("length_scale"))) for path, v in parameters.items()]
    return np.concatenate(masks) if masks else np.empty(0)


def _descend(
    objective: Objective, starts: list[np.ndarray], max_iter: int, progress: Callable[[int, float], None] | None
) -> tuple[tuple[float, ...], str]:
    """Run L-BFGS from each start: the lowest error so far after each iteration, and how the best descent ended.

    The best point seen stays in `objective.best`.
    """
    if len(starts[0]) == 0:
        return (), "the kernel has no parameters to tune"
    history: list[float] = []

    def after_iteration(intermediate_result: Any) -> None:
        history.append(min([float(np.exp(intermediate_result.fun)), *history[-1:]]))
        if progress is not None:
            progress(len(history), history[-1])

    found = [_minimise(objective, start, max_iter, after_iteration) for start in starts]
    best = min(found, key=lambda result: result.fun)
    if best.success:
        return tuple(history), f"converged after {best.nit} iterations"
    if best.nit >= max_iter or best.nfev >= EVALUATIONS * max_iter:
        return tuple(history), f"stopped at the limit after {best.nit} iterations"
    return tuple(history), f"no further progress after {best.nit} iterations"


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
