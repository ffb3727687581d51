"""Kernel parameters by the gradient of the leave-one-out error, and how many of them the rows can tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError, NotPositiveDefiniteError
from mercer.kernels import Kernel
from mercer.kernels.parameters import AUTO
from mercer.kernels.registry import NAMED
from mercer.selection.alpha import get_criterion
from mercer.selection.deciding import Decision, decided, moves_together
from mercer.selection.dials import FACTORS, FAILED, FEW_ROWS, JUDGED_FROM, MOST_ROWS
from mercer.selection.objective import Objective, weighted_gram
from mercer.selection.rows import Rows, merged_rows, subsample
from mercer.selection.search import CANDIDATES, Candidate, Progress, Search, screened_starts
from mercer.solvers.system import check_alpha


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
    compared : tuple[tuple[str, float], ...]
        Where several kernels were compared, each with its error at such rows as it is or with one factor for its length
        scales, the smaller one; else empty.
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
    compared: tuple[tuple[str, float], ...] = ()


def tune_kernel(
    kernel: Kernel,
    X: Points,
    Y: Tensor,
    weights: Tensor | None,
    alpha: float | Tensor | str,
    *,
    tune: str | bool = "ard",
    rivals: Sequence[Kernel] = (),
    loss_of: Callable[[Kernel], float] | None = None,
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

    Where there are `rivals`, other kernels with length scales that are numbers, the best of all kernels is found in the
    same way, whatever `tune` is. `loss_of` gives the loss of a kernel at rows left out, where it is not the squared
    one: a kernel as it was given is then taken instead where its loss is less.

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
    kernels = [Objective(one, rows, fixed, error_of, intercept) for one in (kernel, *rivals)]
    search = Search(FACTORS[:n_starts], max_iter, progress)
    choice = _choice(kernels, tune, search)
    whole, tune = kernels[choice.kernel], choice.tune
    few = whole if len(rows) <= FEW_ROWS else whole.on(slice(FEW_ROWS))
    found = choice.found or search.candidates(few, tune)
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
    if loss_of is not None:
        plain = [_as_given(one) for one in kernels if tune != "none" or one is not whole]
        place = int(np.argmin([loss_of(one.kernel) for one in (best, *plain)]))
        tune, best = (tune, best) if place == 0 else ("none", plain[place - 1])
    start = given.value if choice.kernel == 0 else _as_given(kernels[0]).value
    return Tuned(
        kernel=best.objective.kernel if tune == "none" else best.kernel,
        alpha=best.objective.ridge_at(best.theta) / share if isinstance(alpha, str) else alpha,
        error=float(np.exp(best.value)),
        start_error=float(np.exp(start)) if start < FAILED else float("inf"),
        history=tuple(search.history),
        message=f"{best.words}; {_which_rows(rows, everything)}",
        rows_used=len(rows),
        tune=tune,
        judged=choice.judged,
        compared=tuple((_name(one.kernel), least) for one, least in zip(kernels, choice.least, strict=False)),
    )


def _choice(kernels: Sequence[Objective], tune: str | bool, search: Search) -> Decision:
    """The kernel and what is tuned of it: by rows that the fits have not seen where there is a choice."""
    wanted = CANDIDATES if tune is True else (str(tune),)
    if tune is True and len(kernels[0].rows) < JUDGED_FROM:
        return Decision(0, "none")
    if moves_together(kernels[0]):
        wanted = ("scale",)
    if len(wanted) == len(kernels) == 1 or len(kernels[0].rows) < JUDGED_FROM:
        return Decision(0, wanted[0])
    return decided(kernels, wanted, search)


def _as_given(kernel: Objective) -> Candidate:
    """The kernel as it is with the best ridge."""
    tied = kernel.moving(kernel.kernel, tied=True)
    return Candidate(tied, *screened_starts(tied, (1.0,))[0], "the kernel as it was given has the smaller loss")


def _name(kernel: Kernel) -> str:
    """The kernel as users name it, without the length scales that were found."""
    bare = kernel.replace(length_scale=AUTO)
    return next((name for name, known in NAMED.items() if known == bare), repr(bare))


def _which_rows(rows: Rows, everything: Rows) -> str:
    if len(rows) == len(everything):
        return f"on all {len(rows):,} distinct rows"
    text = f"on a random subsample of {len(rows):,} of {len(everything):,} distinct rows"
    return f"{text}, with alpha scaled by the total weight"
