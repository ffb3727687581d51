"""How good a fit is, from predictions for rows left out and a look at the rows: lines and concerns of reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.data.equal import Kinds
from mercer.data.sample import Sample
from mercer.estimators.common import concerns
from mercer.estimators.common.linear import linear_left_out, linear_probabilities, table_of
from mercer.estimators.common.scores import quantile_score
from mercer.estimators.dials import CLEARLY_LABELS, DISCRETE, FEW_ROWS, LOOKED_AT, MOST_LEFT_OUT, SAME, SOME_ROWS
from mercer.files.kinds import TEXT, Made, Several, Table
from mercer.kernels import Kernel
from mercer.kernels.spread import column_spreads
from mercer.operators.placement import Placement
from mercer.processes.copies import copied
from mercer.processes.observations import Observations
from mercer.selection import AlphaPath
from mercer.selection.left_out import LeftOutPredictions


@dataclass(frozen=True, eq=False)
class Account:
    """Lines and concerns for a report, and how much of the constant's error is gone (R2; NaN where not known)."""

    lines: list[tuple[str, object]] = field(default_factory=list)
    concerns: list[str] = field(default_factory=list)
    skill: float = float("nan")

    def with_concerns(self, found: Iterable[str | None]) -> Account:
        """The same with those concerns that there are."""
        return replace(self, concerns=self.concerns + [words for words in found if words is not None])


ACCOUNT = Made(
    Table({"lines": Several(Several(TEXT, 2)), "concerns": Several(TEXT)}),
    lambda found: Account([(line[0], line[1]) for line in found["lines"]], found["concerns"]),
    lambda account: {"lines": [[label, str(value)] for label, value in account.lines], "concerns": account.concerns},
)
"""An account in a model file, which has no rows to find it from."""


def forecast_account(found: LeftOutPredictions, skill: float) -> Account:
    """How good forecasts of later rows are, beside what rows left out say."""
    w = torch.ones(len(found.values), dtype=torch.float64) if found.weights is None else found.weights
    share = (w / w.sum()).unsqueeze(1)
    spread = (share * (found.targets - (share * found.targets).sum(0)).square()).sum()
    missed = (share * (found.targets - found.values).square()).sum()
    if not float(spread) > 0:
        return Account()
    r2 = 1.0 - float(missed / spread)
    worse = concerns.forecasts_are_worse(r2, skill)
    return Account([("forecasts", f"R2 {r2:.4g} by {found.how}")], [] if worse is None else [worse], r2)


def some_of(sample: Sample, most: int | None = None, some: int | None = None) -> tuple[Sample, str]:
    """Rows with weight that a report can leave out one by one, and how many these are in words: "" for all of them."""
    data = sample.positive()[0]
    most, some = most or MOST_LEFT_OUT, some or SOME_ROWS
    if len(data) <= most:
        return data, ""
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))[:some].sort().values
    return data.take(order), f" of a fit to {some:,} of {len(data):,} rows"


@np.errstate(over="ignore")  # predictions that are far off tiny targets: their R2 is minus infinity
def regression_account(
    sample: Sample, left_out: LeftOutPredictions | None, *, intercept: bool = True, given: bool = False
) -> Account:
    """How good a regression is at the rows of a sample left out, beside the mean and a linear model.

    `given` tells that alpha was not chosen by the data.
    """
    found = Account().with_concerns([concerns.looks_like_classes(sample.targets[:, 0].numpy())])
    if left_out is None or len(left_out.targets) < 3:
        return found
    w = np.ones(len(left_out.targets)) if left_out.weights is None else left_out.weights.numpy()
    unit = _units(left_out.targets.numpy())
    y, f = left_out.targets.numpy() / unit, left_out.values.numpy() / unit
    losses, constant = (y - f) ** 2, np.average(_errors_of_mean(y, w), axis=0, weights=w)
    skills = skill_of(np.average(losses, axis=0, weights=w), constant)
    error, worst = np.sqrt(np.average(losses, axis=0, weights=w)) * unit, int(np.argmin(skills))
    skill, line = float(skills[worst]), f"{_numbers(skills)} by {left_out.how}"
    wrong = concerns.no_better_than_constant(skill, f"R2 {skill:.2g}", "the mean of y")
    linear = linear_left_out(sample) if len(y) == len(sample) else None
    if linear is not None:
        others = (y - linear.numpy() / unit) ** 2
        theirs = skill_of(np.average(others, axis=0, weights=w), constant)
        line += f", {_numbers(theirs)} by a linear model"
        if wrong is None and concerns.worse_than_linear(losses[:, worst], others[:, worst], float(constant[worst]), w):
            wrong = concerns.linear_is_better("R2", skill, float(theirs[worst]), given)
    if not intercept and wrong is not None:
        mean = float(np.average(y[:, worst], weights=w))
        spread = float(np.sqrt(np.average((y[:, worst] - mean) ** 2, weights=w)))
        wrong = concerns.no_intercept(mean * unit[worst], spread * unit[worst]) or wrong
    lines: list[tuple[str, object]] = [("error", f"{_numbers(error)} (root mean square)"), ("R2", line)]
    return replace(found, lines=lines, skill=skill).with_concerns([wrong])


def quantile_account(sample: Sample, left_out: LeftOutPredictions, levels: Sequence[float]) -> Account:
    """How good quantiles are at the rows of a sample left out: one minus their loss beside that of constant ones."""
    w = np.ones(len(left_out.targets)) if left_out.weights is None else left_out.weights.numpy()
    y = left_out.targets[:, 0].numpy()
    skill = quantile_score(tuple(levels), y, left_out.values.numpy(), w)
    wrong = concerns.no_better_than_constant(skill, f"score {skill:.2g}", "constant quantiles")
    lines: list[tuple[str, object]] = [("score", f"{skill:.4g} by {left_out.how}, zero for constant quantiles")]
    found = concerns.looks_like_classes(sample.targets[:, 0].numpy())
    return Account(lines, skill=skill).with_concerns([found, wrong])


def classification_account(
    sample: Sample, classes: np.ndarray, probabilities: Tensor, how: str, *, given: bool = False
) -> Account:
    """How good a classification is at the rows of a sample left out, beside the shares of classes and a linear model.

    Targets are codes; `probabilities` (n, classes) are by fits that have not seen the row; `given` tells that alpha was
    not chosen by the data.
    """
    codes, K = sample.targets[:, 0].long().numpy(), len(classes)
    w = np.ones(len(codes)) if sample.weights is None else sample.weights.numpy()
    losses = _log_losses(probabilities.cpu().numpy(), codes)
    shares = np.bincount(codes, w, K) / w.sum()
    constant = _log_losses(np.tile(shares, (len(codes), 1)), codes)
    mean, base = np.average(losses, weights=w), np.average(constant, weights=w)
    skill = float(skill_of(mean, base))
    line = f"{mean:.3g} by {how}, {base:.3g} by the shares of classes"
    guess = probabilities.argmax(1).cpu().numpy()
    more = [
        concerns.no_better_than_constant(
            skill, f"log loss {mean:.3g}, {base:.3g} by these", "the shares of the classes"
        ),
        concerns.never_predicted(classes.tolist(), np.bincount(codes, minlength=K), np.bincount(guess, minlength=K)),
    ]
    linear = linear_probabilities(sample, K)
    if linear is not None:
        theirs = _log_losses(linear.numpy(), codes)
        their_mean = float(np.average(theirs, weights=w))
        line += f", {their_mean:.3g} by a linear model"
        if more[0] is None and concerns.worse_than_linear(losses, theirs, float(base), w, CLEARLY_LABELS):
            more.append(concerns.linear_is_better("log loss", float(mean), their_mean, given))
    right = f"{np.average(guess == codes, weights=w):.1%} right, {shares.max():.1%} by the most frequent class"
    return Account([("log loss", line), ("accuracy", right)], skill=skill).with_concerns(more)


def path_account(path: AlphaPath | None) -> Account:
    """How good a fit is whose rows are gone, from the errors that chose alpha."""
    if path is None or path.constant is None:
        return Account()
    skills = skill_of(path.errors.amin(0).cpu().numpy(), path.constant.cpu().numpy())
    least = float(skills.min())
    how = {"loo": "leave-one-out", "gcv": "generalised cross-validation", "folds": "five folds"}[path.criterion]
    name = "R2" if path.measure == "mean squared error" else "score"
    wrong = concerns.no_better_than_constant(least, f"{name} {least:.2g}", "a constant")
    return Account([(name, f"{_numbers(skills)} by {how}")], skill=least).with_concerns([wrong, *edge_of(path)])


def edge_of(path: AlphaPath | None) -> list[str]:
    """Whether alpha is at an end of its path where the error still falls."""
    if path is None or path.constant is None:
        return []
    errors, constant = path.errors.cpu().numpy(), path.constant.cpu().numpy()
    found = [concerns.at_falling_edge(errors[:, j], float(constant[j])) for j in range(errors.shape[1])]
    return [words for words in found if words is not None][:1]


def rows_account(
    sample: Sample, kernel: Kernel, place: Placement, skill: float, *, labels: bool = False, copies: bool = True
) -> list[str]:
    """What the rows and the kernel between them say that no error shows; targets are numbers, or codes of `labels`.

    Without `copies`, rows that repeat others have been spoken of.
    """
    found = [concerns.kernel_values(_similarities(kernel, sample.rows, place, square=sample.square), skill)]
    return [words for words in found if words is not None] + table_concerns(
        sample, kernel, labels=labels, copies=copies
    )


def table_concerns(
    sample: Sample, kernel: Kernel | None = None, *, labels: bool = False, copies: bool = True
) -> list[str]:
    """What the table says: units that do not suit the kernel, rows that repeat others, columns that know the target."""
    X = table_of(sample.rows, sample.square)
    if X is None or len(X) < 3:
        return []
    found: list[str | None] = []
    names = [str(name) for name in sample.rows.names or range(X.shape[1])]
    if kernel is not None and _has_one_scale(kernel):
        some = X[np.random.default_rng(0).permutation(len(X))[:SOME_ROWS]]
        spreads = column_spreads(some, np.ones(len(some)), some, np.ones(len(some)))
        found.append(concerns.unlike_units(names, spreads))
    if copies and not _is_discrete(X):
        data = Observations(Points(torch.from_numpy(X)), sample.targets)
        found.append(concerns.repeated(_more_than_one(data), len(X)))
    y = sample.targets[:, 0].numpy()
    known = _leaking(X, y, labels)
    found.append(concerns.leaks([names[j] for j in known]))
    if not known and not labels:
        found.append(concerns.nearly_known(names, _explained(X, y)))
    return [words for words in found if words is not None]


def skill_of(losses: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """One minus the loss in units of that of the constant; zero where the constant is never wrong."""
    safe = np.where(constant > 0, constant, 1.0)
    return np.asarray(np.where(constant > 0, 1.0 - losses / safe, 0.0))


def _numbers(values: np.ndarray) -> str:
    return ", ".join(f"{v:.4g}" for v in np.atleast_1d(values))


def _units(y: np.ndarray) -> np.ndarray:
    """The size of each target: squares of what is beyond 1e154 are no numbers."""
    size = np.abs(y).max(axis=0)
    return np.where(size > 0, size, 1.0)


def _errors_of_mean(y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The squared errors of the mean of the other rows."""
    kept = 1.0 - (w / w.sum()) / np.maximum(w, 1.0)
    return ((y - np.average(y, axis=0, weights=w)) / kept[:, None]) ** 2


def _log_losses(p: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return -np.log(np.clip(p[np.arange(len(codes)), codes], 1e-15, 1.0))


def _similarities(kernel: Kernel, rows: Points, place: Placement, *, square: bool) -> np.ndarray:
    """Correlations of the kernel between different rows."""
    if square:
        return np.empty(0)
    some = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))[:LOOKED_AT]
    if rows.is_tensor:
        some = some[Kinds.of(rows.take(some)).as_they_come().first]
    if len(some) < 3:
        return np.empty(0)
    K = place.matrix(kernel, rows.take(some)).cpu().numpy()
    size = np.sqrt(np.clip(np.diag(K), 0.0, None))
    if not (np.isfinite(size).all() and (size > 0).all()):
        return np.empty(0)
    return np.asarray((K / size[:, None] / size)[np.triu_indices(len(K), 1)])


def _has_one_scale(kernel: Kernel) -> bool:
    """Whether a length scale is one number for all columns."""
    scales = [value for path, value in kernel.tunable().items() if path.endswith("length_scale")]
    return "Subspace" not in repr(kernel) and any(np.ndim(value) == 0 for value in scales)


def _is_discrete(X: np.ndarray) -> bool:
    return all(len(np.unique(column)) < DISCRETE * len(X) for column in X.T)


def _more_than_one(data: Observations) -> int:
    """Rows that repeat an earlier one."""
    twins = copied(data)
    if not bool(twins.any()):
        return 0
    return int(twins.sum()) - len(Kinds.of(data.X.values[twins]))


def _leaking(X: np.ndarray, y: np.ndarray, labels: bool) -> Sequence[int]:
    """Columns that are the target in other units or order, or whose few values each come with one target."""
    if X.shape[1] < 2 or len(X) < 2 * FEW_ROWS or len(np.unique(y)) < 2:
        return []
    return [j for j, column in enumerate(X.T) if _determines(column, y, labels)]


def _explained(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The share of the variance of y that each column explains alone, by a line; none of few rows."""
    if X.shape[1] < 3 or len(X) < 2 * FEW_ROWS:
        return np.zeros(X.shape[1])
    sizes = np.abs(X).max(0), np.abs(y).max()  # squares of what is beyond 1e154 are no numbers
    X, y = X / np.where(sizes[0] > 0, sizes[0], 1.0), y / (sizes[1] or 1.0)
    X, y = X - X.mean(0), y - y.mean()
    norms = np.linalg.norm(X, axis=0) * np.linalg.norm(y)
    return np.asarray(np.divide(X.T @ y, norms, out=np.zeros(len(norms)), where=norms > 0) ** 2)


def _determines(x: np.ndarray, y: np.ndarray, labels: bool) -> bool:
    values, group = np.unique(x, return_inverse=True)
    if len(values) < 2:
        return False
    low = np.full(len(values), np.inf)
    high = -low
    np.minimum.at(low, group, y)
    np.maximum.at(high, group, y)
    one_each = bool((low == high).all())
    if labels:  # the labels by another name
        return one_each and len(values) == len(np.unique(y))
    steps = np.diff(low)
    if one_each and (len(values) <= len(x) / 2 or bool((steps > 0).all() or (steps < 0).all())):
        return True
    x, y = (values / np.abs(values).max() for values in (x, y))  # squares of what is beyond 1e154 are no numbers
    return bool(np.corrcoef(x, y)[0, 1] ** 2 > 1.0 - SAME)
