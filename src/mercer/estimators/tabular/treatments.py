"""What becomes of a column: numbers, categories and moments as columns whose share in distances is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.preprocessing import OneHotEncoder

from mercer.core.errors import InputError, InputTypeError
from mercer.data.texts import as_moment, as_number, read_each
from mercer.estimators.dials import LEAST_VARIANCE

OTHER, MISSING = "other levels", "missing"
"""The states of a category that stand for rare and unknown levels, and for gaps."""


DAY = 86_400.0
YEAR = 365.2425 * DAY
PARTS = {"time of year": YEAR, "time of day": DAY}
"""Parts of a date that come again, by their period in seconds."""


class Treatment(Protocol):
    """What becomes of one column."""

    kind: ClassVar[str]

    @property
    def name(self) -> str: ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are made of it."""

    @property
    def words(self) -> str:
        """What becomes of it, for a person."""

    def encode(self, column: np.ndarray) -> np.ndarray:
        """The columns that are made of it, (n, width)."""


@dataclass(frozen=True)
class Number:
    r"""A column of numbers, centred and in units of its spread; gaps are at the centre, and a column of their own.

    `mark` is the decimal mark of numbers that stand in the table as text, `gaps` the share of rows without a value.
    """

    name: str
    center: float
    spread: float
    gaps: float
    mark: str

    kind: ClassVar[str] = "number"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.name, f"{self.name}={MISSING}") if self.gaps else (self.name,)

    @property
    def words(self) -> str:
        return f"number, spread {self.spread:.4g}" + _gap_words(self.gaps) + (" (text)" if self.mark else "")

    def encode(self, column: np.ndarray) -> np.ndarray:
        return _with_gaps((self.read(column) - self.center) / self.spread, self.gaps)

    def read(self, column: np.ndarray) -> np.ndarray:
        """The numbers of a column that may hold text; the error names the first row that is neither."""
        if column.dtype.kind == "b":
            return column.astype(np.float64)
        if column.dtype.kind == "f":
            if np.isinf(column).any():
                raise InputError(f"Column {self.name!r} is infinite in row {int(np.isinf(column).argmax())}.")
            return column
        if column.dtype.kind == "M":
            raise InputTypeError(f"Column {self.name!r} holds dates; it held numbers when the model was fitted.")
        mark = self.mark or "."
        return _read(column, lambda text: as_number(text, mark), self.name, "a number")


@dataclass(frozen=True)
class Category:
    r"""A column of categories: one 0/1 column for each state, less its share p, in units of s,

    .. math:: s^2 = 1 - \sum_k p_k^2,

    so that two rows are as far apart, on average over all pairs, as in a column of numbers of spread one, however many
    states there are. Two states share a column. States are the `levels`, the rest, which stands for rare and
    unknown levels, and gaps; where no level is rare, an unknown one is at the centre. `shares` are those of the
    states, `rare` is the number of rare levels.
    """

    name: str
    levels: tuple[str, ...]
    shares: tuple[float, ...]
    rare: int
    gaps: bool

    kind: ClassVar[str] = "category"

    @property
    def states(self) -> tuple[str, ...]:
        """What a row can be."""
        return (*self.levels, *[OTHER] * (self.rare > 0), *[MISSING] * self.gaps)

    @property
    def columns(self) -> tuple[str, ...]:
        made = self.states[1:] if len(self.states) == 2 else self.states
        return tuple(f"{self.name}={state}" for state in made)

    @property
    def words(self) -> str:
        text = f"category of {len(self.levels)} levels"
        if self.rare:
            text += f", {self.rare:,} rare ones together"
        return text + _gap_words(self.shares[-1] if self.gaps else 0.0)

    def encode(self, column: np.ndarray) -> np.ndarray:
        states, p = self.states, np.array(self.shares)
        ones = _one_hot(states).transform(self.read(column).reshape(-1, 1))
        known = ones.sum(1, keepdims=True) > 0
        ones = np.where(known, ones - p, 0.0) / math.sqrt(spread_of_states(p))
        return ones[:, 1:] * math.sqrt(2.0) if len(states) == 2 else ones

    def read(self, column: np.ndarray) -> np.ndarray:
        """The state of each row, as text."""
        texts, levels = as_texts(column), set(self.levels)
        other = OTHER if self.rare else ""
        state = {text: text if text in levels else other for text in set(texts)} | {None: MISSING}
        return np.array([state[text] for text in texts], dtype=object)


@dataclass(frozen=True)
class Moment:
    """A column of dates: the time elapsed in units of its spread, and the parts that come again.

    `form` says how dates are written where they are text. The times of year and of day are points on circles, the day
    of the week is a category.
    """

    name: str
    center: float
    spread: float
    gaps: float
    parts: tuple[str, ...]
    form: str

    kind: ClassVar[str] = "date"

    @property
    def columns(self) -> tuple[str, ...]:
        names = [self.name]
        for part in self.parts:
            names += [f"{self.name}, {part}{mark}" for mark in _marks(part)]
        return (*names, f"{self.name}={MISSING}") if self.gaps else tuple(names)

    @property
    def words(self) -> str:
        written = f" (text, {self.form})" if self.form else ""
        return "date: " + ", ".join(("time elapsed", *self.parts)) + _gap_words(self.gaps) + written

    def encode(self, column: np.ndarray) -> np.ndarray:
        seconds = self.read(column)
        made = [(seconds - self.center) / self.spread]
        for part in self.parts:
            if part in PARTS:
                angle = 2 * np.pi * seconds / PARTS[part]
                made += [np.cos(angle), np.sin(angle)]
            else:
                day = np.floor(seconds / DAY) % 7
                made += [np.where(np.isnan(day), np.nan, (day == k) - 1 / 7) / math.sqrt(6 / 7) for k in range(7)]
        return _with_gaps(np.column_stack(made), self.gaps)

    def read(self, column: np.ndarray) -> np.ndarray:
        """Seconds since 1970; the error names the first row that is no date."""
        if column.dtype.kind == "M":
            return seconds_of(column)
        if column.dtype.kind == "f" and bool(np.isnan(column).all()):
            return column  # gaps alone have no kind
        if column.dtype.kind != "O" or not self.form:
            raise InputTypeError(f"Column {self.name!r} holds no dates; it held dates when the model was fitted.")
        return _read(column, lambda text: _seconds_in(text, self.form), self.name, f"a date ({self.form})")


@dataclass(frozen=True)
class LeftOut:
    """A column that is not used, and why."""

    name: str
    why: str

    kind: ClassVar[str] = "left out"

    @property
    def columns(self) -> tuple[str, ...]:
        return ()

    @property
    def words(self) -> str:
        return f"left out: {self.why}"

    def encode(self, column: np.ndarray) -> np.ndarray:
        return np.empty((len(column), 0))


def spread_of_states(p: np.ndarray) -> float:
    """The square of the unit of a category's columns."""
    return max(float(1.0 - np.square(p).sum()), LEAST_VARIANCE)


def seconds_of(moments: np.ndarray) -> np.ndarray:
    """Seconds since 1970, NaN for gaps."""
    return np.where(np.isnat(moments), np.nan, moments.astype("datetime64[us]").astype(np.int64) / 1e6)


def as_texts(column: np.ndarray) -> list[str | None]:
    """The levels of a column of any kind, None for gaps; whole numbers without a decimal point.

    >>> as_texts(np.array([1.0, 2.5, np.nan]))
    ['1', '2.5', None]
    """
    if column.dtype.kind == "f":
        return [None if v != v else str(int(v)) if v.is_integer() else repr(v) for v in column.tolist()]
    if column.dtype.kind == "M":
        return [None if np.isnat(v) else str(v) for v in column]
    return [None if v is None else str(v) for v in column.tolist()]


def _one_hot(states: tuple[str, ...]) -> OneHotEncoder:
    known = np.array(states, dtype=object)
    encoder = OneHotEncoder(categories=[known], handle_unknown="ignore", sparse_output=False)
    return encoder.fit(known.reshape(-1, 1))


def _with_gaps(values: np.ndarray, gaps: float) -> np.ndarray:
    """Columns with zeros for gaps, and where there were some a column that tells of them."""
    values = values if values.ndim == 2 else values[:, None]
    empty = np.isnan(values).any(1)
    filled = np.where(np.isnan(values), 0.0, values)
    if not gaps:
        return filled
    told = (empty - gaps) / math.sqrt(spread_of_states(np.array([gaps, 1.0 - gaps])) / 2.0)
    return np.column_stack([filled, told])


def _read(column: np.ndarray, read: Any, name: str, what: str) -> np.ndarray:
    found = read_each(column, read)
    if None in found:
        row = found.index(None)
        raise InputError(f"Column {name!r} is {column[row]!r} in row {row}; expected {what}, as in the training rows.")
    return np.array(found, dtype=np.float64)


def _seconds_in(text: str | None, form: str) -> float | None:
    if text is None or not text.strip():
        return math.nan
    moment = as_moment(text, form)
    return None if moment is None else float(np.datetime64(moment, "us").astype(np.int64) / 1e6)


def _marks(part: str) -> tuple[str, ...]:
    if part in PARTS:
        return (" (cos)", " (sin)")
    return tuple(f"={day}" for day in ("Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"))  # 1970 began on a Thursday


def _gap_words(share: float) -> str:
    return f", {share:.1%} missing" if share else ""
