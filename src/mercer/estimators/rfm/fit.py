"""A fitted recursive feature machine: what it sees, and the ridge regression on what it sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from mercer.core.arrays import Points
from mercer.core.memory import require, resolve_budget
from mercer.data.rows import RowSource
from mercer.data.sample import Sample, Seen
from mercer.estimators.common.account import Account
from mercer.estimators.common.place import device_of
from mercer.estimators.dials import CONSTANT, HELD_OUT, LARGEST_HELD, MATRICES, SEARCHED
from mercer.estimators.rfm.search import Choice, Machine, Search, searched
from mercer.estimators.rfm.settings import RFMSettings
from mercer.estimators.rfm.views import LensRows
from mercer.estimators.ridge import KernelRidge
from mercer.features.lens import Lens
from mercer.features.recursive import rounds
from mercer.selection.calibration import Calibration, calibrate
from mercer.selection.rows import Rows, merged_rows, subsample


@dataclass(frozen=True, eq=False)
class RFMFit:
    """What a fit knows.

    Attributes
    ----------
    settings : RFMSettings
        What was asked for.
    seen : Seen
        What is remembered of the rows.
    lens : Lens
        How the machine sees columns.
    machine : KernelRidge
        The ridge regression on what it sees, of targets less `shift`.
    choice : Choice
        What was chosen, with its cross-fitted error.
    paths : tuple[tuple[Machine, tuple[float, ...]], ...]
        The error of finalists by number of rounds.
    error : Tensor
        Root mean squared error of each target at rows left out; NaN where there were too few rows.
    judged : str
        How it was found: "cross-fitted" or "held out".
    calibration, accuracy : Calibration or None and float
        Of a classifier, probabilities and the share of rows left out that is right.
    classes : array or None
        Of a classifier, the labels.
    out : LeftOut or None
        Rows with predictions that did not see their labels, for reports; not in files.
    told : Account or None
        What the report of a model read from a file says of these rows.
    """

    settings: RFMSettings
    seen: Seen
    lens: Lens
    machine: KernelRidge
    shift: Tensor
    choice: Choice
    paths: tuple[tuple[Machine, tuple[float, ...]], ...]
    error: Tensor
    judged: str
    calibration: Calibration | None = None
    accuracy: float = float("nan")
    classes: np.ndarray | None = None
    out: LeftOut | None = None
    told: Account | None = None

    def values(self, rows: Points) -> Tensor:
        """The functions at the rows, (m, t)."""
        found = torch.as_tensor(self.machine.predict(self.lens.points(rows).values))
        return found.reshape(len(rows), -1) + self.shift.to(found)

    def values_of(self, source: RowSource) -> Tensor:
        """The functions at the rows of a source, (m, t)."""
        found = torch.as_tensor(self.machine.predict(LensRows(source, self.lens)))
        return found.reshape(len(source), -1) + self.shift.to(found)

    @property
    def importances(self) -> Tensor:
        """The shares of the columns in the trace of M."""
        diagonal = self.lens.diagonal
        return diagonal / diagonal.sum()


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Targets and predictions of rows whose labels were not seen, and how: "cross-fitted" or "held out"."""

    rows: Points
    targets: Tensor
    predicted: Tensor
    weights: Tensor
    how: str

    @property
    def error(self) -> Tensor:
        """The root mean squared error of each target."""
        return (self.weights @ (self.predicted - self.targets).square() / self.weights.sum()).sqrt()


@dataclass(frozen=True, eq=False)
class Scale:
    """The means and the standard deviations of the targets, these one where a target is constant."""

    mean: Tensor
    unit: Tensor

    @classmethod
    def of(cls, sample: Sample) -> Scale:
        weights = torch.ones(len(sample)).double() if sample.weights is None else sample.weights
        share, size = weights / weights.sum(), sample.targets.abs().amax(0)
        size = torch.where(size > 0, size, 1.0)  # squares of what is beyond 1e154 are no numbers
        small = sample.targets / size
        mean = share @ small
        unit = (share @ (small - mean).square()).sqrt()
        return cls(mean * size, torch.where(unit > CONSTANT, unit * size, 1.0))

    def back(self, values: Tensor) -> Tensor:
        """Values in the units of the targets."""
        return values.to(self.mean) * self.unit + self.mean


@dataclass(frozen=True, eq=False)
class Learned:
    """What is seen, how it was chosen, and the rows it was learned from beside those held out."""

    search: Search
    lens: Lens
    scale: Scale
    rows: Rows
    held: Rows | None


def fit_rows(settings: RFMSettings, sample: Sample, classes: np.ndarray | None = None) -> RFMFit:
    """A machine for rows in memory; targets of classes are -1 and 1."""
    positive, device = sample.positive()[0], device_of(settings.device, sample.seen)
    learned = _learned(settings, positive, device)
    machine = _machine(settings, learned, device)
    out = _left_out(learned, machine)
    shift = learned.scale.mean
    machine.fit(learned.lens.points(positive.rows).values, positive.targets - shift, positive.weights)
    return _fit(settings, sample.seen, learned, machine, out, classes)


def fit_source(settings: RFMSettings, source: RowSource, some: Sample) -> RFMFit:
    """A machine for rows that are read in parts; `some` of them teach it what to see."""
    positive, device = some.positive()[0], device_of(settings.device, some.seen)
    learned = _learned(settings, positive, device)
    machine = _machine(settings, learned, device)
    out = _left_out(learned, machine)
    machine.fit(LensRows(source, learned.lens, learned.scale.mean))
    return _fit(settings, replace(some.seen, n_rows=source.n_rows), learned, machine, out, None)


def _fit(
    settings: RFMSettings,
    seen: Seen,
    learned: Learned,
    machine: KernelRidge,
    out: LeftOut | None,
    classes: np.ndarray | None,
) -> RFMFit:
    search, shift = learned.search, learned.scale.mean
    error = torch.full_like(shift, torch.nan) if out is None else out.error
    how = "not known" if out is None else out.how
    fit = RFMFit(
        settings, seen, learned.lens, machine, shift, search.best, search.paths, error, how, classes=classes, out=out
    )
    if classes is None or out is None:
        return fit
    codes = codes_of(out.targets)
    right = (codes_of(out.predicted) == codes).to(out.weights)
    accuracy = float(out.weights @ right / out.weights.sum())
    return replace(fit, calibration=calibrate(out.predicted, codes, out.weights), accuracy=accuracy)


def codes_of(decisions: Tensor) -> Tensor:
    """The class of each decision, (m, 1) or (m, classes)."""
    return (decisions[:, 0] > 0).long() if decisions.shape[1] == 1 else decisions.argmax(1)


def _learned(settings: RFMSettings, sample: Sample, device: torch.device) -> Learned:
    """What to see, from rows of positive weight."""
    scale = Scale.of(sample)
    targets = ((sample.targets - scale.mean) / scale.unit).to(device)
    rows = merged_rows(sample.rows, targets, None if sample.weights is None else sample.weights.to(device))
    tell: Callable[[str], None] = print if settings.verbose else lambda text: None
    held, some = None, rows
    if len(rows) > SEARCHED:
        order = subsample(rows, len(rows), settings.seed)
        count = min(LARGEST_HELD, round(HELD_OUT * len(rows)))
        held, rows = order.take(slice(0, count)), order.take(slice(count, None))
        some = rows.take(slice(0, SEARCHED))
    matrices = MATRICES * 8 * max(len(some), min(len(rows), settings.n_learn)) ** 2
    budget = resolve_budget(settings.memory_budget, device)
    require(matrices, budget, "learning features", "Use a smaller n_learn or a larger memory_budget.")
    search = searched(settings, some, tell)
    lens = _lens(search.best, rows.take(slice(0, settings.n_learn)))
    return Learned(search, lens, scale, rows, held)


def _lens(choice: Choice, rows: Rows) -> Lens:
    """The lens after the rounds that were chosen."""
    kernel, lens = choice.machine.kernel, Lens.of(rows.X.values, rows.weights)
    if choice.n_rounds == 0:
        return lens
    targets, kind = rows.Y - (rows.weights @ rows.Y) / rows.total, choice.machine.diagonal
    *_, last = rounds(kernel, lens, rows.X.values, targets, rows.weights, diagonal=kind, count=choice.n_rounds)
    return last.lens


def _machine(settings: RFMSettings, learned: Learned, device: torch.device) -> KernelRidge:
    """The ridge regression on what is seen, not fitted yet."""
    choice = learned.search.best
    names = ("solver", "dtype", "memory_budget", "n_landmarks", "landmarks", "verbose")
    given = {name: getattr(settings, name) for name in names}
    if not isinstance(settings.landmarks, str):
        given |= {"n_landmarks": None, "landmarks": learned.lens.rows(torch.as_tensor(settings.landmarks))}
    given |= {"alpha": choice.ridge, "fit_intercept": False, "device": device, "random_state": settings.seed}
    return KernelRidge(choice.machine.kernel, **given)


def _left_out(learned: Learned, machine: KernelRidge) -> LeftOut | None:
    """Rows with predictions that did not see their labels."""
    search, held, scale = learned.search, learned.held, learned.scale
    if held is None:
        if search.rows is None or search.out is None:
            return None
        rows, found, how = search.rows, search.out, "cross-fitted"
    else:
        seen = learned.rows
        machine.fit(learned.lens.rows(seen.X.values), seen.Y, seen.weights)
        found = torch.as_tensor(machine.predict(learned.lens.rows(held.X.values))).reshape(len(held), -1)
        rows, how = held, "held out"
    return LeftOut(rows.X, scale.back(rows.Y), scale.back(found), rows.weights.cpu(), how)
