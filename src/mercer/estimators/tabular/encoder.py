"""`TableEncoder`: looks at every column of a table once, and turns tables like it into numbers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.core.errors import InputError
from mercer.data.table import Table
from mercer.data.texts import date_form, decimal_mark
from mercer.estimators.dials import FEWEST, MAX_LEVELS, RARE, RARE_SHARE, SPREAD_ROWS
from mercer.estimators.tabular.treatments import (
    DAY,
    PARTS,
    YEAR,
    Category,
    LeftOut,
    Moment,
    Number,
    Treatment,
    as_texts,
    seconds_of,
)
from mercer.kernels.spread import column_spreads

KINDS = ("number", "category", "date", "drop")
"""What a user may ask of a column."""


ID_NAMES = re.compile(
    r"(id|ids|uuid|guid|key|index|idx|row|rows|rownames?|row_?(names?|number|id|no)|unnamed: ?\d+|nr|no)?"
)
ID_ENDS = re.compile(r".*([_\s.-](id|uuid|guid|key)|[a-z](ID|Id))")


@dataclass(frozen=True)
class TableEncoder:
    """The treatment of each column of a table.

    >>> table = Table.of({"size": [80.0, 95.0, 60.0, None], "city": ["Oslo", "Rome", "Oslo", "Rome"]})
    >>> encoder = TableEncoder.looking_at(table, rare=2)
    >>> encoder.columns
    ('size', 'size=missing', 'city=Rome')
    >>> encoder.encode(table).round(2)[:, 0]
    array([ 0.12,  1.16, -1.28,  0.  ])
    """

    treatments: tuple[Treatment, ...]

    @classmethod
    def looking_at(
        cls,
        table: Table,
        weights: np.ndarray | None = None,
        kinds: Mapping[str, str] | None = None,
        max_levels: int = MAX_LEVELS,
        rare: int = RARE,
    ) -> TableEncoder:
        """The treatments that suit the columns of a table; `kinds` says which one a column has to get."""
        kinds = dict(kinds or {})
        _check_kinds(kinds, table)
        w = np.ones(len(table)) if weights is None else weights
        look = _Look(w, max_levels, rare, table.named)
        found = [look.at(name, column, kinds.get(name)) for name, column in table.columns.items()]
        if found and not any(t.columns for t in found):  # an id is better than nothing
            found = [look.at(name, column, kinds.get(name), keep=True) for name, column in table.columns.items()]
        if not any(t.columns for t in found):
            reasons = "; ".join(f"{t.name!r} is {t.words}" for t in found[:5])
            raise InputError(f"X has no column to learn from: {reasons or '0 feature(s) (no columns)'}.")
        return cls(tuple(found))

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are made."""
        return tuple(name for treatment in self.treatments for name in treatment.columns)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The columns that are not used."""
        return tuple(t for t in self.treatments if isinstance(t, LeftOut))

    def positions(self, columns: Sequence[int | str]) -> tuple[int, ...]:
        """The places of the columns that are made of some columns of the table, which are given by name or place."""
        names = [t.name for t in self.treatments]
        wanted = {names[c] if isinstance(c, int) else c for c in columns}
        unknown = sorted(wanted - set(names))
        if unknown:
            raise InputError(f"Column {unknown[0]!r} is used by a kernel but is not in the table.")
        owners = [t.name for t in self.treatments for _ in t.columns]
        found = tuple(j for j, owner in enumerate(owners) if owner in wanted)
        if not found:
            raise InputError(f"The columns {sorted(wanted)} are used by a kernel, but they are left out.")
        return found

    def encode(self, table: Table) -> np.ndarray:
        """A table of numbers, (n, width)."""
        missing = [t.name for t in self.treatments if t.columns and t.name not in table.columns]
        if missing:
            raise InputError(
                f"X has no column {missing[0]!r}; its columns are {', '.join(map(repr, table.names[:20]))}."
            )
        made = [t.encode(table.columns[t.name]) for t in self.treatments if t.columns]
        return np.column_stack(made)


@dataclass(frozen=True)
class _Look:
    """How columns are looked at: rows with their weights, and when a level is rare."""

    weights: np.ndarray
    max_levels: int
    rare: int
    named: bool

    def at(self, name: str, column: np.ndarray, kind: str | None, keep: bool = False) -> Treatment:
        """The treatment of a column."""
        if kind == "drop":
            return LeftOut(name, "as asked")
        if kind == "category":
            return self.category(name, column)
        if kind is None and not keep and (why := self.useless(name, column)):
            return LeftOut(name, why)
        if column.dtype.kind == "M":
            return self.moment(name, column, "")
        if column.dtype.kind == "O":
            mark = decimal_mark(column) if kind in (None, "number") else None
            if mark or kind == "number":
                return self.number(name, column, mark or ".")
            form = date_form(column)
            if form:
                return self.moment(name, column, form)
            if kind == "date":
                raise InputError(f"Column {name!r} should be a date, but cannot be read as one.")
            return self.category(name, column)
        if kind == "date":
            raise InputError(f"Column {name!r} should be a date, but holds numbers.")
        return self.number(name, column, "")

    def useless(self, name: str, column: np.ndarray) -> str | None:
        """Why a column cannot tell rows apart in a way that new rows share."""
        texts = as_texts(column)
        known = [text for text in texts if text is not None]
        if not known:
            return "no values"
        different = len(set(known))
        if different == 1 and len(known) == len(texts):
            return f"constant, {known[0]:.40}"
        if not self.named or different < len(known) or len(known) < FEWEST:
            return None
        called = ID_NAMES.fullmatch(name.strip().lower()) or ID_ENDS.fullmatch(name)
        whole = column.dtype.kind == "f" and bool((column[~np.isnan(column)] % 1 == 0).all())
        if called and (whole or column.dtype.kind == "O"):
            return "an id, different in every row"
        if column.dtype.kind == "O" and decimal_mark(column) is None and date_form(column) is None:
            return "text that is different in every row"
        return None

    def number(self, name: str, column: np.ndarray, mark: str) -> Number:
        values = Number(name, 0.0, 1.0, 0.0, mark).read(column)
        center, spread, gaps = self.spread(values)
        return Number(name, center, spread, gaps, mark)

    def moment(self, name: str, column: np.ndarray, form: str) -> Moment:
        seconds = Moment(name, 0.0, 1.0, 0.0, (), form).read(column) if form else seconds_of(column)
        center, spread, gaps = self.spread(seconds)
        known = seconds[~np.isnan(seconds)]
        span, parts = float(np.ptp(known)) if len(known) else 0.0, []
        if span > YEAR:
            parts.append("time of year")
        if span >= 7 * DAY and len(np.unique(np.floor(known / DAY) % 7)) > 1:
            parts.append("day of the week")
        if span > DAY and np.ptp(known % PARTS["time of day"]) > 0:
            parts.append("time of day")
        return Moment(name, center, spread, gaps, tuple(parts), form)

    def category(self, name: str, column: np.ndarray) -> Category | LeftOut:
        counts: Counter[str | None] = Counter()
        for text, weight in zip(as_texts(column), self.weights.tolist(), strict=True):
            counts[text] += weight
        gaps, total = counts.pop(None, 0.0), float(self.weights.sum())
        order = sorted(counts, key=lambda level: (-counts[level], level))
        enough = order[: self.max_levels]
        if len(order) > 2:
            least = min(self.rare, max(2.0, RARE_SHARE * total))
            enough = [level for level in enough if counts[level] >= least]
        if not enough:
            return LeftOut(name, f"{len(order):,} levels, none of them frequent")
        levels = sorted(map(str, enough))
        rest = sum(counts[level] for level in order) - sum(counts[level] for level in levels)
        shares = [counts[level] for level in levels] + [rest] * (len(levels) < len(order)) + [gaps] * (gaps > 0)
        return Category(name, tuple(levels), tuple(s / total for s in shares), len(order) - len(levels), bool(gaps > 0))

    def spread(self, values: np.ndarray) -> tuple[float, float, float]:
        """Centre, spread and share of gaps."""
        known = ~np.isnan(values) & (self.weights > 0)
        x, w = values[known], self.weights[known]
        if not len(x):
            return 0.0, 1.0, 0.0
        few = np.linspace(0, len(x) - 1, min(len(x), SPREAD_ROWS)).astype(int)
        few = few if len(few) == len(x) else np.random.default_rng(0).permutation(len(x))[:SPREAD_ROWS]
        spread = float(column_spreads(x[:, None], w, x[few, None], w[few])[0])
        center = float(np.average(x, weights=w))
        center = center if math.isfinite(center) else 0.0
        return (
            center,
            spread if spread > 0 else 1.0,
            float(1.0 - w.sum() / self.weights.sum()) if len(x) < len(values) else 0.0,
        )


def _check_kinds(kinds: Mapping[str, Any], table: Table) -> None:
    for name, kind in kinds.items():
        if name not in table.columns:
            raise InputError(f"columns has {name!r}, which is no column of X.")
        if kind not in KINDS:
            raise InputError(f"columns[{name!r}]={kind!r}: choose one of {', '.join(map(repr, KINDS))}.")
