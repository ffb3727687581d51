"""The kernel, the kind of M, the number of rounds and the ridge of a recursive feature machine, by cross-fitting.

M is learned without the rows at which it is judged: leave-one-out with an M that has seen the labels is too optimistic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.estimators.dials import BY_COLUMNS, FINALISTS, FIRST_FOLDS, RIDGES, ROUGH_RIDGES
from mercer.estimators.rfm.settings import Candidate, RFMSettings
from mercer.features.lens import Lens
from mercer.features.recursive import rounds
from mercer.kernels import Kernel, resolve
from mercer.selection.loss_alpha import fold_numbers
from mercer.selection.rows import Rows


@dataclass(frozen=True)
class Machine:
    """A kernel with its length scale, and the kind of M."""

    kernel: Kernel
    diagonal: bool

    @property
    def words(self) -> str:
        return f"{self.kernel.rounded()}, {'diagonal' if self.diagonal else 'full'} M"


@dataclass(frozen=True)
class Choice:
    """A machine after some rounds, with a ridge for a kernel of size one, and its mean squared error at rows left out.

    The error is relative to that of the mean: one minus R^2.
    """

    machine: Machine
    n_rounds: int
    ridge: float
    error: float


@dataclass(frozen=True, eq=False)
class Search:
    """The best choice, the least error of each finalist after each number of rounds, and predictions for rows left out.

    `rows` and `out` are None where there was nothing to choose from or no rows to judge by.
    """

    best: Choice
    paths: tuple[tuple[Machine, tuple[float, ...]], ...] = ()
    rows: Rows | None = None
    out: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Trial:
    """Squared errors of a machine (rounds, ridges), summed over targets, and its predictions for the rows judged."""

    machine: Machine
    ridges: tuple[float, ...]
    errors: Tensor
    out: Tensor

    @property
    def least(self) -> float:
        return float(self.errors.min())


def searched(settings: RFMSettings, rows: Rows, tell: Callable[[str], None]) -> Search:
    """What cross-fitting on rows, whose targets are in units of their deviation, finds best."""
    machines = _machines(settings, rows)
    ridges = RIDGES if settings.alpha is None else (settings.alpha,)
    folds = min(settings.n_folds, len(rows) // 2)
    if folds < 2:
        return Search(Choice(machines[0], 0, ridges[-1], float("nan")))
    fold = fold_numbers(rows.X, rows.Y, folds=folds)
    if len(machines) > FINALISTS:
        rough = ROUGH_RIDGES if settings.alpha is None else ridges
        first = [_tried(machine, rows, fold, range(min(FIRST_FOLDS, folds)), rough, settings) for machine in machines]
        for trial in first:
            tell(f"{trial.machine.words}: {trial.least:.4f} on {FIRST_FOLDS} folds")
        machines = [trial.machine for trial in sorted(first, key=lambda trial: trial.least)[:FINALISTS]]
    trials = [_tried(machine, rows, fold, range(folds), ridges, settings) for machine in machines]
    for trial in trials:
        tell(f"{trial.machine.words}: {trial.least:.4f} on {folds} folds")
    best = min(trials, key=lambda trial: trial.least)
    n_rounds, place = divmod(int(best.errors.argmin()), len(ridges))
    choice = Choice(best.machine, n_rounds, ridges[place], best.least)
    paths = tuple((trial.machine, tuple(trial.errors.amin(1).tolist())) for trial in trials)
    return Search(choice, paths, rows, best.out[n_rounds, place])


def _tried(
    machine: Machine, rows: Rows, fold: Tensor, folds: Sequence[int], ridges: tuple[float, ...], settings: RFMSettings
) -> Trial:
    """Errors at the rows of some folds, of machines that learn from the other rows."""
    judged = torch.isin(fold, torch.tensor(list(folds)))
    out = rows.Y.new_full((settings.max_iter + 1, len(ridges), *rows.Y.shape), torch.nan)
    for number in folds:
        train, test = rows.take((fold != number).nonzero().squeeze(1)), (fold == number).nonzero().squeeze(1)
        mean = (train.weights @ train.Y) / train.total
        lens = Lens.of(train.X.values, train.weights)
        found = train.Y[:0]
        steps = rounds(
            machine.kernel,
            lens,
            train.X.values,
            train.Y - mean,
            train.weights,
            diagonal=machine.diagonal,
            count=settings.max_iter,
        )
        for i, step in enumerate(steps):
            coef = torch.cat([step.coefficients(ridge) for ridge in ridges], 1)
            values = step.at(rows.X.values[test], coef).reshape(len(test), len(ridges), -1)
            found = values.transpose(0, 1) + mean
            out[i, :, test] = found
        for left in range(i + 1, settings.max_iter + 1):  # M did not change after that
            out[left, :, test] = found
    squares = (out[:, :, judged] - rows.Y[judged]).square().sum(-1) @ rows.weights[judged]
    share = rows.weights[judged] / rows.weights[judged].sum()
    spread = (share.unsqueeze(1) * (rows.Y[judged] - share @ rows.Y[judged]).square()).sum()
    return Trial(machine, ridges, squares / (rows.weights[judged].sum() * spread.clamp(min=1e-300)), out)


def _machines(settings: RFMSettings, rows: Rows) -> list[Machine]:
    lens = Lens.of(rows.X.values, rows.weights)
    seen = Points(lens.rows(rows.X.values))
    columns = rows.X.values.shape[1]
    few = [candidate for candidate in settings.candidates if columns <= BY_COLUMNS or not candidate.by_columns]
    compared = few or settings.candidates
    resolved = {each.kernel: resolve(each.kernel, seen, rows.weights, seed=settings.seed) for each in compared}
    kernels = [_scaled(candidate, resolved[candidate.kernel]) for candidate in compared]
    kinds = settings.diagonals if columns > 1 else (True,)
    pairs = zip(kernels, compared, strict=True)
    return [Machine(kernel, kind) for kernel, each in pairs for kind in kinds if kind or not each.by_columns]


def _scaled(candidate: Candidate, resolved: Kernel) -> Kernel:
    if not candidate.unscaled:
        return resolved
    return resolved.replace(length_scale=candidate.factor * resolved.length_scale)
