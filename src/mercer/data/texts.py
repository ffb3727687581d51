"""Numbers and dates that stand in a table as text: how a column writes them is found once and kept."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np

GAP_WORDS = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "?"})
"""What stands for a missing value, in any case."""
NO_NUMBER = GAP_WORDS | {"none", "-", "--", "."}
"""And what does so among numbers."""

_SPACES = " \u00a0\u202f'\u2019_"
NUMBER = {
    ".": re.compile(
        r"[+-]?(?=[\d.])(\d+|[1-9]\d{0,2}(,\d{3})+|[1-9]\d{0,2}([ \u00a0\u202f'\u2019]\d{3})+)?(\.\d*)?([eE][+-]?\d+)?"
    ),
    ",": re.compile(
        r"[+-]?(?=[\d,])(\d+|[1-9]\d{0,2}(\.\d{3})+|[1-9]\d{0,2}([ \u00a0\u202f'\u2019]\d{3})+)?(,\d*)?([eE][+-]?\d+)?"
    ),
}
"""How numbers are written, by their decimal mark, with or without separators of thousands."""
CODE = re.compile(r"[+-]?0\d")
"""The start of a code such as a postcode: a number is not written with leading zeros."""

ISO = "iso"
FORMATS = {
    "year-month-day": ISO,
    "day.month.year": "%d.%m.%Y",
    "month/day/year": "%m/%d/%Y",
    "day/month/year": "%d/%m/%Y",
    "year/month/day": "%Y/%m/%d",
    "day-month-year": "%d-%m-%Y",
    "day month year": "%d %b %Y",
    "month day, year": "%b %d, %Y",
}
"""Dates, by what a person calls their form; where two fit, the first is taken."""
CLOCKS = ("", " %H:%M", " %H:%M:%S")


def decimal_mark(values: np.ndarray, preferred: str = ".") -> str | None:
    """The decimal mark with which every value reads as a number; None where none does.

    >>> decimal_mark(np.array(["1.5", "2"])), decimal_mark(np.array(["1.234,5"])), decimal_mark(np.array(["00123"]))
    ('.', ',', None)
    """
    texts = {text.strip() for text in values if text is not None}
    texts = {text for text in texts if text.lower() not in NO_NUMBER}
    if not texts or any(CODE.match(text) for text in texts):
        return None
    marks = (preferred, *(mark for mark in NUMBER if mark != preferred))
    return next((mark for mark in marks if all(NUMBER[mark].fullmatch(text) for text in texts)), None)


def as_number(text: str | None, mark: str) -> float | None:
    """A number, NaN for a gap, or None for text that is neither.

    >>> as_number("1.234,5", ","), as_number("n/a", "."), as_number("many", ".")
    (1234.5, nan, None)
    """
    if text is None or text.strip().lower() in NO_NUMBER:
        return float("nan")
    text = text.strip()
    if not NUMBER[mark].fullmatch(text):
        return None
    for sign in (*_SPACES, "," if mark == "." else "."):
        text = text.replace(sign, "")
    return float(text.replace(",", "."))


def date_form(values: np.ndarray) -> str | None:
    """The form in which every value reads as a date, by name; None where none does.

    >>> date_form(np.array(["2024-02-29", "2024-03-01 12:30"])), date_form(np.array(["13.2.2024"]))
    ('year-month-day', 'day.month.year')
    """
    texts = {text for text in values if text is not None and text.strip().lower() not in GAP_WORDS}
    if not texts or not all(any(c.isdigit() for c in text) and len(text) >= 8 for text in texts):
        return None
    return next((form for form in FORMATS if all(as_moment(text, form) is not None for text in texts)), None)


def as_moment(text: str | None, form: str) -> datetime | None:
    """A date, with its time of day, without time zone; None for text that is none.

    >>> as_moment("2024-02-29T12:00:00Z", "year-month-day")
    datetime.datetime(2024, 2, 29, 12, 0)
    """
    if text is None:
        return None
    for clock in CLOCKS:
        try:
            if FORMATS[form] == ISO:
                moment = datetime.fromisoformat(text.strip())
                return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
            return datetime.strptime(text.strip(), FORMATS[form] + clock)
        except ValueError:
            continue
    return None


def read_each(values: np.ndarray, read: Callable[[str | None], object]) -> list[object]:
    """Every value as it reads; equal texts are read once."""
    known = {text: read(text) for text in set(values)}
    return [known[text] for text in values]
