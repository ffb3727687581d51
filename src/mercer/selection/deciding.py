"""Which kernel to take and how much of it to tune, by errors at rows that the fits have not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from mercer.core.errors import MercerError
from mercer.data.equal import Kinds
from mercer.kernels.columns import per_column
from mercer.selection.dials import CLEAR, FEW_ROWS, TUNING_FOLDS
from mercer.selection.objective import Objective
from mercer.selection.rows import Rows
from mercer.selection.search import CANDIDATES, Candidate, Search


@dataclass(frozen=True, eq=False)
class Decision:
    """The place of a kernel among those compared, what is tuned of it, and why.

    `judged` are the relative errors of that kernel for each of `CANDIDATES`, `least` the smaller error of each kernel
    as it is and with one factor, `found` the candidates of the first few rows, where the others judged them.
    """

    kernel: int
    tune: str
    judged: tuple[float, ...] = ()
    least: tuple[float, ...] = ()
    found: dict[str, Candidate] | None = None


def decided(kernels: Sequence[Objective], names: Sequence[str], search: Search) -> Decision:
    """The best of several kernels and of what may be tuned, `names` of `CANDIDATES`.

    Of several kernels, each with one descent, that one is taken whose error is least as it is or with one factor for
    its length scales: to move each of these takes most of the time. Of what may be tuned the fewest parameters win
    whose error is worse than the least by no more than a standard error of the difference, over rows.
    """
    n, first = len(kernels[0].rows), kernels[0]
    split = n >= 2 * FEW_ROWS
    used = search if split else Search(search.factors, search.max_iter)
    used = used if len(kernels) == 1 else replace(used, descents=1)
    order = _alike_together(first.rows)
    parts = [order[FEW_ROWS:]] if split else list(order.tensor_split(min(n, TUNING_FOLDS)))
    taught = [order[~torch.isin(order, part)][:FEW_ROWS] for part in parts]
    weights = torch.cat([first.rows.weights[part] for part in parts]).cpu().numpy()
    share = weights / weights.sum()

    def errors(found: list[dict[str, Candidate]], name: str) -> np.ndarray:
        pairs = zip(found, parts, strict=True)
        squares = [_squared_errors(one[name], first.rows.take(part), first.variance) for one, part in pairs]
        return torch.cat(squares).cpu().numpy()

    found = [[used.together(kernel.on(rows)) for rows in taught] for kernel in kernels]
    simple = np.array([[errors(one, name) @ share for name in CANDIDATES[:2]] for one in found])
    best = int(simple.min(1).argmin())
    if "ard" in names:
        for one, rows in zip(found[best], taught, strict=True):
            one["ard"] = used.each(kernels[best].on(rows), one["scale"])
    means, place = _fewest(np.array([errors(found[best], name) for name in names]), share)
    judged = tuple(means.tolist()) if tuple(names) == CANDIDATES else ()
    least = tuple(simple.min(1).tolist()) if len(kernels) > 1 else ()
    return Decision(best, names[place], judged, least, found[best][0] if split else None)


def _alike_together(rows: Rows) -> Tensor:
    """The places of the rows, those with equal X one after the other: a row is not judged by others that are told apart
    from it by their targets alone, of which each is all the copies of one row of data.
    """
    if rows.square:
        return torch.arange(len(rows), device=rows.Y.device)
    return Kinds.of(rows.X).as_they_come().group.argsort(stable=True).to(rows.Y.device)


def _fewest(errors: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, int]:
    """The mean errors of candidates (k, m), and the first that is no worse than the best by `CLEAR` standard errors."""
    means = errors @ share
    best = int(np.argmin(means))
    with np.errstate(invalid="ignore"):  # where there is no fit errors are infinite, and no candidate is near the best
        change = errors - errors[best]
        spread = np.sqrt(((change - (means - means[best])[:, None]) ** 2 * share) @ share)
        return means, int(np.argmax(means - means[best] <= CLEAR * spread))


def moves_together(kernel: Objective) -> bool:
    """Whether one factor is all that can be tuned: the rows have one column, or are those of a ready matrix."""
    free = kernel.moving(per_column(kernel.kernel, kernel.rows.X), tied=False)
    return kernel.rows.square or len(free.start()) == len(kernel.moving(kernel.kernel, tied=True).start())


def _squared_errors(found: Candidate, rows: Rows, variance: Tensor) -> Tensor:
    """Relative squared errors at rows, the mean over targets; infinite where there is no fit."""
    try:
        missed = rows.Y - found.objective.predictions(found.theta, rows)
    except MercerError:
        return rows.Y.new_full((len(rows),), torch.inf)
    return (missed.square() / variance).mean(1)
