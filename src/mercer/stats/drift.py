"""`DriftDetector`: do new rows still come from where the reference came from?"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from mercer.core.errors import InputError, ModelFileError
from mercer.core.report import Report, make_report
from mercer.core.seeding import as_seed
from mercer.estimators.common.base import all_or_nothing
from mercer.files.fields import Field, Fields, Group, read, written
from mercer.files.kinds import TEXTS, Several, Table, number, optional, whole
from mercer.files.persistence import register, save
from mercer.stats.arguments import check
from mercer.stats.columns import found_columns
from mercer.stats.differences_plot import plot_columns
from mercer.stats.families import column_scales
from mercer.stats.reference import COLUMN, from_state, reference
from mercer.stats.run_length import Watch, checked_run_length
from mercer.stats.samples import in_words
from mercer.stats.two_sample import TwoSampleResult, check_count, two_sample_test

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARAMS = Table({"level": number(above=0, below=1), "n_resamples": whole(1), "max_rows": whole(2),
                "expected_run_length": whole(10), "random_state": optional(whole())})  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class DriftResult(TwoSampleResult):
    """The result of `DriftDetector.test`: a `TwoSampleResult` with a decision. X is the reference, Y the new rows.

    Attributes
    ----------
    level : float
        The probability of `drift` where there is none.
    """

    level: float = field(kw_only=True)

    @property
    def drift(self) -> bool:
        """Whether the new rows differ from the reference, at the level of the detector."""
        return self.pvalue <= self.level

    def plot(self, ax: Axes | None = None) -> Axes:
        """How far each column has moved."""
        return plot_columns(self.columns(), ax)

    def _finding(self) -> str:
        n = f"{self.pooled.n:,} new rows"
        if not self.drift:
            return f"No drift found in {n}"
        found = [replace(c, name=in_words(c.name, self.pooled.points.names)) for c in self.columns()]
        named, none = found_columns(found, self.level)
        more = f" and {len(named) - 3} more" if len(named) > 3 else ""
        return f"Drift in {n}: {', '.join(named[:3])}{more} moved" if named else f"Drift in {n}, though {none}"


@dataclass(frozen=True)
class DriftStatus:
    """What `DriftDetector.update` says after the rows so far.

    Attributes
    ----------
    drift : bool
        Whether there was an alarm since the last reset.
    at : int or None
        The number of the row of the alarm, counted from 1; None without one.
    n_seen : int
        Rows since the last reset.
    statistic, threshold : float
        An alarm is a statistic above the threshold.
    columns : tuple[tuple[str, float], ...]
        Names of the columns whose mean or spread has moved most lately, with how far, in deviations.
    """

    drift: bool
    at: int | None
    n_seen: int
    statistic: float
    threshold: float
    columns: tuple[tuple[str, float], ...]

    def __repr__(self) -> str:
        if not self.drift:
            return f"No drift in {self.n_seen:,} rows (statistic {self.statistic:.3g}, alarm at {self.threshold:.3g})."
        name, moved = self.columns[0]
        return f"Drift since about row {self.at:,} of {self.n_seen:,}, most in {name} (by {moved:+.2g} deviations)."


@register
class DriftDetector(BaseEstimator):
    """Says whether new rows still come from the distribution of the reference, and which columns moved.

    Rows are numbers, or data frames with text, categories, booleans, dates and gaps, which are encoded as by
    `mercer.tabular`. `test` compares a batch with the reference by `two_sample_test`; its false alarms have exactly the
    probability `level`. `update` watches single rows in bounded memory; without drift an alarm comes after
    `expected_run_length` rows on average, which is calibrated by simulated streams of the reference at the first
    update. To `update`, levels and gaps that the reference does not have lie at the centre of their column.

    Parameters
    ----------
    level : float
        The probability that `test` finds drift where there is none.
    expected_run_length : int
        Rows that `update` takes in on average before a false alarm.
    max_rows : int
        Random rows of the reference that are kept, and of a batch that are compared.
    n_resamples : int
        Permutations of `test`; at least 1 / level.
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None
        The seed; None is 0.
    memory_budget : int, str or None
        Bytes, or text such as "2GiB"; by default half of what is free.

    Attributes
    ----------
    n_rows_ : int
        Rows of the reference.
    n_features_in_, feature_names_in_ : int, array of str
        As in scikit-learn.

    References
    ----------
    Rabanser, Günnemann and Lipton, *Failing loudly: an empirical study of methods for detecting dataset shift*, 2019;
    Keriven, Garreau and Poli, *NEWMA*, 2020.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> detector = DriftDetector(random_state=0).fit(rng.normal(size=(500, 3)))
    >>> detector.test(rng.normal(size=(100, 3))).drift
    False
    >>> detector.test(rng.normal(size=(100, 3)) + [0, 1, 0])
    Drift in 100 new rows: column 1 moved (p = 0.002, the smallest that 500 resamples can give; MMD of 20 kernels,
    fused, 500 permutations).
    """

    def __init__(
        self,
        *,
        level: float = 0.05,
        expected_run_length: int = 10_000,
        max_rows: int = 1000,
        n_resamples: int = 500,
        random_state: Any = None,
        memory_budget: Any = None,
    ) -> None:
        self.level = level
        self.expected_run_length = expected_run_length
        self.max_rows = max_rows
        self.n_resamples = n_resamples
        self.random_state = random_state
        self.memory_budget = memory_budget

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep a sample of the reference; y is ignored."""
        found = reference(X)
        if len(found) < 2:
            raise InputError(f"X has {len(found)} row; a reference needs at least two.")
        self.n_rows_, self.n_features_in_ = len(found), found.n_columns
        if hasattr(self, "feature_names_in_"):
            delattr(self, "feature_names_in_")
        if found.names:
            self.feature_names_in_ = np.array(found.names, dtype=object)
        self._seed = as_seed(self.random_state)
        self._reference = _some(found, self.max_rows, self._seed).looked_at()
        self._watch: Watch | None = None
        return self

    def test(self, X: Any) -> DriftResult:
        """Compare a batch of new rows with the reference."""
        new = self._rows(X)
        if len(new) < 2:
            raise InputError(f"X has {len(new)} row; test needs at least two. Pass single rows to update.")
        found = two_sample_test(
            self._reference.rows, _some(new, self.max_rows, self._seed).rows, n_resamples=self.n_resamples,
            random_state=self._seed, memory_budget=self.memory_budget,
        )  # fmt: skip
        return DriftResult(**{f.name: getattr(found, f.name) for f in fields(found)}, level=self.level)

    def update(self, X: Any) -> DriftStatus:
        """Take in new rows, one or more, in the order in which they came."""
        new = self._rows(X)
        if self._watch is None:
            values = self._reference.points.values.double().cpu()
            self._watch = Watch.calibrated(
                values, values.mean(0), column_scales(values), checked_run_length(self.expected_run_length), self._seed
            )
        self._watch.see(self._reference.encoded(new).values.cpu())
        return self._status(self._watch)

    def reset(self) -> Self:
        """Forget the rows that `update` has seen, such as after an alarm was looked into."""
        check_is_fitted(self)
        if self._watch is not None:
            self._watch.begin_again()
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the detector, with what it has seen, to one safetensors file; `mercer.load(path)` reads it back."""
        check_is_fitted(self)
        save(self, path)

    def report(self) -> Report:
        """The reference, and what was seen so far."""
        check_is_fitted(self)
        lines: list[tuple[str, object]] = [
            ("reference", f"{self.n_rows_:,} rows of {self.n_features_in_} columns, {len(self._reference):,} kept"),
            ("batches", f"permutation test at level {self.level:g}"),
            ("single rows", f"one false alarm in {self.expected_run_length:,} rows"),
        ]
        watch = self._watch
        if watch is not None:
            lines += [("seen", f"{watch.n_seen:,} rows"), ("state", repr(self._status(watch)))]
        few = len(self._reference) < 100
        return make_report(
            "DriftDetector", lines, ["A reference of less than 100 rows finds large drift only."] if few else []
        )

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._reference.new(X)

    def _status(self, watch: Watch) -> DriftStatus:
        names = self._reference.labels
        mean, spread = watch.columns.numpy()
        moved = np.where(np.abs(mean) >= np.abs(spread) / 2, mean, spread / 2)
        order = np.argsort(-np.abs(moved), kind="stable")[:5]
        columns = tuple((names[i], float(moved[i])) for i in order)
        alarm = watch.alarm_at
        return DriftStatus(alarm is not None, alarm, watch.n_seen, watch.statistic, watch.threshold, columns)

    def _check_parameters(self) -> None:
        check(level=self.level, max_rows=self.max_rows, random_state=self.random_state)
        check(memory_budget=self.memory_budget)
        check_count(self.n_resamples)
        if self.n_resamples + 1 < 1 / self.level:
            raise InputError(
                f"n_resamples={self.n_resamples}: p-values below level={self.level} need at least "
                f"{int(np.ceil(1 / self.level)) - 1}."
            )
        checked_run_length(self.expected_run_length)

    def to_state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Plain data and arrays, from which `from_state` makes an equal object."""
        watch = self._watch
        reference, arrays = self._reference.to_state()
        found = {
            "params": {name: getattr(self, name) for name in PARAMS.fields} | {"random_state": self._seed},
            "reference": reference,
            "n_rows": self.n_rows_,
            "watch": None if watch is None else vars(watch),
            "watched": {} if watch is None else watch.arrays(),
            "rows": arrays,
        }
        return written(FIELDS, SimpleNamespace(**found))

    @classmethod
    def from_state(cls, meta: dict[str, Any], arrays: dict[str, Tensor]) -> Self:
        """The object that `to_state` described."""
        found = read(FIELDS, meta, arrays, cls.__name__)[0]
        model = cls(**found["params"])
        model._check_parameters()
        watch = found["watch"]
        if watch is None and found["watched"]:
            raise ModelFileError("it has arrays of a watch, but no watch")
        model._reference, model._seed = from_state(found["reference"], found["rows"]), as_seed(model.random_state)
        if found["rows"]:
            raise ModelFileError(f"the arrays {sorted(found['rows'])} do not belong to it")
        model.n_rows_, model.n_features_in_ = found["n_rows"], model._reference.n_columns
        if model._reference.names is not None:
            model.feature_names_in_ = np.array(model._reference.names, dtype=object)
        model._watch = None if watch is None else Watch.from_state(watch, found["watched"])
        if model._watch is not None and len(model._watch.scale) != len(model._reference.labels):
            raise ModelFileError("the watch and the reference have different columns")
        return model


WATCH = Table({"threshold": number(), "n_seen": whole(), "statistic": number(), "alarm_at": optional(whole(1))})


FIELDS: Fields = {
    "params": Field(PARAMS),
    "reference": Field(Table({"columns": optional(TEXTS), "table": optional(Several(COLUMN, 1))})),
    "n_rows": Field(whole(2)),
    "watch": Field(optional(WATCH)),
    "watched": Group("watch_"),
    "rows": Group(""),
}
"""What is saved of a detector; its rows are a table or an array, which `from_state` checks."""


def _some(rows: Any, most: int, seed: int) -> Any:
    """At most so many rows, each as likely."""
    if len(rows) <= most:
        return rows
    return rows.take(np.sort(np.random.default_rng(seed).choice(len(rows), size=most, replace=False)))
