"""Kernel parameters by the gradient of the leave-one-out error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError
from mercer.kernels import Kernel
from mercer.selection.alpha import get_criterion
from mercer.selection.objective import Objective
from mercer.selection.rows import Rows, merged_rows, subsample
from mercer.solvers.system import check_alpha

FACTORS = (1.0, 1 / 3, 3.0, 0.1, 10.0, 0.01, 100.0, 1e-3, 1e3)
"""Multiples of the given length scales that are tried before the descent, in this order."""

RIDGES = tuple(10.0**power for power in range(-10, 1))
"""Values of alpha / tr A that are tried before the descent."""

FEW_ROWS = 400  # for the screening and a first descent
CLOSE = 0.02  # a start this much worse in log error is preferred when it is nearer to the given kernel
PARAMETER_RANGE = np.log(100.0)  # either way from where the descent starts
RIDGE_RANGE = (np.log(1e-10), np.log(100.0))  # of alpha / tr A: below, coefficients lose half their digits
SMALLEST_GAIN = 1e-5


@dataclass(frozen=True, eq=False)
class Tuned:
    """What tuning found.

    Attributes
    ----------
    kernel : the kernel with its new parameters.
    alpha : the ridge for all rows: the given one, or the one found times (total weight of all rows) / (of those used).
    error : the leave-one-out (or GCV) error relative to the variance of the target, the mean over targets.
    start_error : the same for the kernel that was given.
    history : the error after each iteration.
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
    max_rows: int = 2000,
    max_iter: int = 50,
    seed: int = 0,
    n_starts: int = 9,
    progress: Callable[[int, float], None] | None = None,
) -> Tuned:
    r"""Find the kernel's tunable parameters theta, and alpha when it is "loo" or "gcv", that minimise

    .. math:: \log \sum_t \frac{E_t(\theta, \alpha)}{\operatorname{var} y_t},

    with E_t the weighted leave-one-out error of target t (the GCV error for ``alpha="gcv"``), by L-BFGS on the logs of
    the parameters. `n_starts` multiples of the given length scales are screened on a few rows and the descent
    starts from the best. Each parameter stays within a factor 100 of that start. Length scales must be numbers.

    On more than `max_rows` distinct rows a random subsample is used; there alpha is scaled by the total weight,
    which keeps lambda = alpha / n. Rows equal in X and Y are merged first: integer weights equal repeated rows.
    `progress` is called with the iteration and the error.

    References: Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, section 5.4.2.

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
    everything = merged_rows(X, Y, weights)
    rows = subsample(everything, max_rows, seed)
    share = rows.total / everything.total
    fixed = None if isinstance(alpha, str) else check_alpha(alpha, rows.Y.shape[1]).expand(rows.Y.shape[1]) * share
    objective = Objective(kernel, rows, fixed, error_of)
    small = objective.on_first(FEW_ROWS)
    starts = screened_starts(small, FACTORS[:n_starts])
    start_value, _ = objective(starts[0][1])
    theta = _nearest_good(starts)
    if len(theta) == 0:
        history, ending = (), "the kernel has no parameters to tune"
    else:
        if len(small.rows) < len(rows):
            _descend(small, theta, max_iter)
            theta = theta if small.best is None else small.best[1]
        history, ending = _descend(objective, theta, max_iter, progress)
    if objective.best is None:
        ending = "the error could not be computed at the start: are the targets all zero?"
        return Tuned(kernel, _as_given(alpha), np.nan, np.nan, (), ending, len(rows))
    value, theta = objective.best
    return Tuned(
        kernel=objective.kernel_at(theta),
        alpha=_as_given(alpha) if fixed is not None else objective.ridge_at(theta) / share,
        error=float(np.exp(value)),
        start_error=float(np.exp(start_value)),
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
        starts.append(min(((objective(theta)[0], theta) for theta in thetas), key=lambda start: start[0]))
    return starts


def _nearest_good(starts: list[tuple[float, np.ndarray]]) -> np.ndarray:
    """The first start that is about as good as the best: extreme ones only when they pay."""
    lowest = min(value for value, _ in starts)
    return next(theta for value, theta in starts if value <= lowest + CLOSE)


def length_scale_mask(parameters: dict[str, Any]) -> np.ndarray:
    """One for each entry of theta that is a length scale, zero for the other parameters."""
    masks = [np.full(np.size(v), float(path.endswith("length_scale"))) for path, v in parameters.items()]
    return np.concatenate(masks) if masks else np.empty(0)


def _descend(
    objective: Objective, start: np.ndarray, max_iter: int, progress: Callable[[int, float], None] | None = None
) -> tuple[tuple[float, ...], str]:
    """Run L-BFGS from `start`; the best point seen stays in `objective.best`."""
    history: list[float] = []

    def after_iteration(intermediate_result: Any) -> None:
        history.append(float(np.exp(intermediate_result.fun)))
        if progress is not None:
            progress(len(history), history[-1])

    bounds = [(place - PARAMETER_RANGE, place + PARAMETER_RANGE) for place in start]
    if objective.alpha is None:
        bounds[-1] = RIDGE_RANGE
    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        callback=after_iteration,
        options={"maxiter": max_iter, "maxfun": 2 * max_iter + 20, "ftol": SMALLEST_GAIN, "gtol": 1e-5},
    )
    steps = f"{len(history)} iterations"
    if found.success:
        return tuple(history), f"converged after {steps}"
    reached = len(history) >= max_iter or found.nfev > 2 * max_iter + 20
    return tuple(history), f"stopped at the limit of {steps}" if reached else f"no further progress after {steps}"


def _which_rows(rows: Rows, everything: Rows) -> str:
    if len(rows) == len(everything):
        return f"on all {len(rows):,} distinct rows"
    text = f"on a random subsample of {len(rows):,} of {len(everything):,} distinct rows"
    return f"{text}, with alpha scaled by the total weight"


def _as_given(alpha: float | Tensor | str) -> float | Tensor:
    """The fixed alpha that was given; NaN where one was to be found."""
    return float("nan") if isinstance(alpha, str) else alpha
