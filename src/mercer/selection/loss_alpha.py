"""The best alpha for any loss: fits along a path, each from the last, judged on rows left out."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.errors import InputError, NotPositiveDefiniteError
from mercer.data.equal import Kinds, mixed_keys
from mercer.losses import Multinomial, PiecewiseLinear
from mercer.selection.alpha import AlphaPath, best_alpha
from mercer.selection.approximate_loo import approximate_loo
from mercer.selection.dials import JOINT_MATRICES, LOSS_FOLDS, MOST_MULTIPLICATIONS, RISES
from mercer.selection.smoothed import loss_of_left_out
from mercer.solvers.few_span import FewSpan
from mercer.solvers.minimise import minimise
from mercer.solvers.newton import Minimum
from mercer.solvers.objective import Known, Objective


def some_of(X: Points, y: Tensor, most: int) -> Tensor:
    """The places of some rows, about `most` different ones with all that equal them, in all parts of y alike."""
    distinct = len(Kinds.of(X))
    return (fold_numbers(X, y, folds=-(-distinct // max(most, 1))) == 0).nonzero().squeeze(1)


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Predictions for rows that a fit did not see, and how they were made: "loo", "gcv" or "folds"."""

    fitted: Tensor
    how: str


def loss_alphas(span: Any, scale: float = 1.0, *, coarse: bool = False) -> Tensor:
    """Alphas in half decades, ascending, from 1e-4 to 100 times the mean of k(x, x), divided by `scale`.

    With `coarse` in whole decades, for losses that need folds.
    """
    alphas = span.mean_diag / scale * 10.0 ** (torch.arange(13, dtype=torch.float64) / 2 - 4)
    return alphas[::2] if coarse else alphas


def fold_numbers(X: Points, y: Tensor, folds: int = LOSS_FOLDS) -> Tensor:
    """A fold for each row, by its content alone: equal rows share one, and classes are spread evenly.

    >>> fold_numbers(Points(torch.tensor([[1.0], [2.0], [1.0]])), torch.zeros(3), folds=2).unique()
    tensor([0, 1])
    """
    keys = mixed_keys(X)
    labels = y.reshape(len(y), -1)[:, 0].cpu().unique(return_inverse=True)[1]
    pairs, group = torch.unique(torch.stack([labels, keys], dim=1), dim=0, return_inverse=True)
    return (torch.arange(len(pairs)) % folds)[group]


def left_out(
    span: Any,
    objective: Objective,
    found: Minimum | Known,
    folds: Callable[[], Tensor],
    options: dict[str, Any],
    how: str = "auto",
) -> LeftOut:
    """Predictions for rows left out: by approximate leave-one-out ("loo"), or with the mean influence of rows ("gcv").

    "auto" is approximate leave-one-out where that is accurate and cheap, else five folds.
    """
    if how == "auto":
        smooth = not isinstance(objective.loss, PiecewiseLinear) and objective.loss.convex
        if smooth and _is_cheap(span, objective):
            with contextlib.suppress(NotPositiveDefiniteError):  # curvature that is lost in rounding
                return LeftOut(approximate_loo(span, objective, found), "loo")
        how = "folds"
    if how == "folds":
        return LeftOut(cross_validated(span, objective, found, folds(), options), "folds")
    if not _has_influences(span, objective):
        raise InputError(
            f"alpha={how!r} needs a convex loss and the influence of each row, which is not known if the Gram matrix "
            f"is not stored or there are very many rows. Use alpha='auto', which takes five folds."
        )
    return LeftOut(approximate_loo(span, objective, found, mean=how == "gcv"), how)


def cross_validated(
    span: Any, objective: Objective, warm: Minimum | Known | None, folds: Tensor, options: Any
) -> Tensor:
    """For each row the prediction of a fit to the other folds: one in which the rows of its own have no weight."""
    folds = folds.to(span.device)
    weights = torch.ones(span.n).to(span.device).double() if objective.weights is None else objective.weights
    fitted = torch.empty(span.n, objective.outputs, dtype=torch.float64, device=span.device)
    for k in folds.unique():
        inside = folds == k
        part = replace(objective, weights=torch.where(inside, 0.0, weights))
        fitted[inside] = minimise(span, part, warm, **options).fitted[inside]
    return fitted


def select_loss_alpha(
    span: Any,
    objectives: list[Objective],
    folds: Callable[[], Tensor],
    options: dict[str, Any],
    alphas: Tensor,
    how: str = "auto",
) -> tuple[AlphaPath, list[Minimum], list[LeftOut]]:
    """Choose one alpha for all objectives by `loss_of_left_out`; the path ends early where it rises.

    `how` is that of `left_out`. Returns the path, and at the chosen alpha the minima and the predictions for rows left
    out.

    >>> from mercer.losses import Logistic
    >>> from mercer.solvers import FullSpan
    >>> y = torch.tensor([[1.0], [1.0], [-1.0], [-1.0]]).double()
    >>> span = FullSpan.of(None, matrix=0.5 + 0.5 * y @ y.T + torch.eye(4).double())
    >>> alphas = torch.tensor([0.1, 10.0]).double()
    >>> select_loss_alpha(span, [Objective(Logistic(), y, 1.0)], lambda: torch.arange(4), {}, alphas)[0].alpha
    tensor([0.1000], dtype=torch.float64)
    """
    ascending = alphas.sort().values
    warm: list[Minimum | None] = [None] * len(objectives)
    errors = torch.full((len(alphas),), torch.inf, dtype=torch.float64)
    kept: dict[int, tuple[list[Minimum], list[LeftOut]]] = {}
    rises = 0
    for index in range(len(alphas) - 1, -1, -1):
        problems = [replace(objective, alpha=float(ascending[index])) for objective in objectives]
        minima = [minimise(span, problem, start, **options) for problem, start in zip(problems, warm, strict=True)]
        warm = list(minima)
        pairs = list(zip(problems, minima, strict=True))
        out = [left_out(span, problem, found, folds, options, how) for problem, found in pairs]
        errors[index] = sum(loss_of_left_out(problem, part.fitted) for problem, part in zip(problems, out, strict=True))
        best = int(errors.argmin())
        rises = 0 if index == best else rises + 1
        kept[index] = minima, out
        if index != best:
            del kept[index]
        else:
            kept = {index: kept[index]}
        if rises >= RISES:
            break
    seen = torch.isfinite(errors)
    path = best_alpha(ascending[seen], errors[seen].unsqueeze(1), torch.zeros(1, dtype=torch.float64), "loo")
    index = int(errors.argmin())
    chosen = ascending[index].reshape(1)
    edge = torch.tensor([index in (0, len(alphas) - 1)])
    constant = torch.tensor([sum(map(_loss_of_constant, objectives))], dtype=torch.float64)
    path = replace(path, alpha=chosen, at_edge=edge, criterion=kept[index][1][0].how, constant=constant)
    return path, *kept[index]


def _loss_of_constant(objective: Objective) -> float:
    """The mean loss that the best constant leaves."""
    zero = torch.zeros(len(objective.targets), objective.outputs).to(objective.targets)
    if isinstance(objective.loss, Multinomial):
        codes = objective.targets.reshape(-1).long()
        shares = zero[0].index_add(0, codes, torch.as_tensor(objective.w).to(zero).expand(len(codes), 1)[:, 0])
        return loss_of_left_out(objective, (shares / shares.sum()).clamp(min=1e-300).log().expand_as(zero))
    constant = replace(objective, intercept=True).best_intercept(zero)
    return loss_of_left_out(objective, constant.expand_as(zero))


def _is_cheap(span: Any, objective: Objective) -> bool:
    few = isinstance(span, FewSpan) or span.n**3 * objective.outputs <= MOST_MULTIPLICATIONS
    return few and _has_influences(span, objective)


def _has_influences(span: Any, objective: Objective) -> bool:
    """Whether the influence of each row on its own prediction can be computed."""
    if not objective.loss.convex:
        return False
    if isinstance(span, FewSpan):
        return True
    if span.matrix is None:
        return False
    if objective.loss.joint:
        return (JOINT_MATRICES + 3 * objective.outputs) * 8 * span.n**2 <= span.room
    return span.n <= span.direct_rows
