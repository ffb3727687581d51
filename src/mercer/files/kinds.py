"""Kinds of values in a model file: what each field may hold is said as data, and checked before it is used."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Protocol

from mercer.core.errors import ModelFileError

LARGEST_WHOLE = 2**53


class Kind(Protocol):
    """What a value may be."""

    @property
    def words(self) -> str:
        """It, in words."""

    def check(self, value: Any, where: str) -> Any:
        """The value, or a ModelFileError that says where it is wrong."""


@dataclass(frozen=True)
class Plain:
    """A value by itself, for which a question is answered with yes.

    >>> TEXT.check(3, "the note")
    Traceback (most recent call last):
    mercer.core.errors.ModelFileError: the note is 3, expected text
    """

    words: str
    fits: Callable[[Any], bool]

    def check(self, value: Any, where: str) -> Any:
        if not self.fits(value):
            raise ModelFileError(f"{where} is {value!r:.60}, expected {self.words}")
        return value


@dataclass(frozen=True)
class Either:
    """A value of the first kind that fits."""

    kinds: tuple[Kind, ...]

    @property
    def words(self) -> str:
        return " or ".join(kind.words for kind in self.kinds)

    def check(self, value: Any, where: str) -> Any:
        for kind in self.kinds:
            try:
                return kind.check(value, where)
            except ModelFileError:
                continue
        raise ModelFileError(f"{where} is {value!r:.60}, expected {self.words}")


@dataclass(frozen=True)
class OrNothing:
    """A value of a kind, or None."""

    kind: Kind

    @property
    def words(self) -> str:
        return f"{self.kind.words} or nothing"

    def check(self, value: Any, where: str) -> Any:
        return None if value is None else self.kind.check(value, where)


@dataclass(frozen=True)
class Several:
    """A list of values of one kind.

    >>> Several(number()).check([1.0, "x"], "alphas")
    Traceback (most recent call last):
    mercer.core.errors.ModelFileError: alphas[1] is 'x', expected a number
    """

    kind: Kind
    least: int = 0

    @property
    def words(self) -> str:
        return f"a list ({self.kind.words})" + (f" of at least {self.least}" if self.least else "")

    def check(self, value: Any, where: str) -> Any:
        if not isinstance(value, list) or len(value) < self.least:
            raise ModelFileError(f"{where} is {value!r:.60}, expected {self.words}")
        for i, entry in enumerate(value):
            self.kind.check(entry, f"{where}[{i}]")
        return value


@dataclass(frozen=True)
class Pairs:
    """A dictionary whose keys need not be text, as a list of pairs."""

    key: Kind
    kind: Kind

    @property
    def words(self) -> str:
        return f"a list of pairs ({self.key.words}, {self.kind.words})"

    def check(self, value: Any, where: str) -> Any:
        for pair in Several(Plain("a pair", lambda v: isinstance(v, list) and len(v) == 2)).check(value, where):
            self.kind.check(pair[1], f"{where}[{self.key.check(pair[0], where)!r:.60}]")
        return value


@dataclass(frozen=True)
class Table:
    """An object with these fields and no others; those it `may_lack` have defaults.

    >>> Table({"k": whole(1)}).check({"k": 0}, "the kernel")
    Traceback (most recent call last):
    mercer.core.errors.ModelFileError: the kernel.k is 0, expected a whole number >= 1
    """

    fields: Mapping[str, Kind]
    may_lack: Collection[str] = ()

    @property
    def words(self) -> str:
        return f"an object with the fields {', '.join(self.fields)}"

    def check(self, value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise ModelFileError(f"{where} is {value!r:.60}, expected {self.words}")
        missing = self.fields.keys() - value.keys() - set(self.may_lack)
        unknown = value.keys() - self.fields.keys()
        for what, names in (("lacks", missing), ("has an unknown field", unknown)):
            if names:
                raise ModelFileError(f"{where} {what} {min(names)!r:.60}")
        for name, entry in value.items():
            self.fields[name].check(entry, f"{where}.{name}")
        return value


def number(least: float = -math.inf, *, above: float = -math.inf, below: float = math.inf, finite: bool = True) -> Kind:
    """A number in a range."""
    limits = [(f">= {least:g}", least), (f"> {above:g}", above), (f"< {below:g}", below)]
    words = " and ".join(text for text, limit in limits if math.isfinite(limit))

    def fits(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        inside = value >= least and (value > above or above == -math.inf) and (value < below or below == math.inf)
        return inside and (math.isfinite(value) or not finite)

    return Plain(f"a number {words}".rstrip(), fits)


def whole(least: int = 0) -> Kind:
    """A whole number."""
    return Plain(f"a whole number >= {least}", lambda v: type(v) is int and least <= v <= LARGEST_WHOLE)


def one_of(*values: Any) -> Kind:
    """One of some words, or None."""
    known = tuple(v for v in values if v is not None)
    shown = ", ".join(map(repr, values))
    return Plain(shown, lambda v: (v is None and None in values) or (isinstance(v, str) and v in known))


def optional(kind: Kind) -> Kind:
    """A kind, or None."""
    return OrNothing(kind)


def of_dataclass(cls: Any) -> Table:
    """The fields of a dataclass by their annotations; those with defaults may be lacking."""
    kinds = {f.name: BY_ANNOTATION[str(f.type)] for f in fields(cls)}
    return Table(kinds, may_lack=[f.name for f in fields(cls) if f.default is not MISSING])


ANYTHING: Kind = Plain("anything", lambda value: True)
ANY_TABLE: Kind = Plain("an object", lambda value: isinstance(value, dict))
"""These two are for what is checked where it is read."""
FLAG: Kind = Plain("true or false", lambda value: isinstance(value, bool))
TEXT: Kind = Plain("text", lambda value: isinstance(value, str))
TEXTS: Kind = Several(TEXT)

BY_ANNOTATION: dict[str, Kind] = {
    "str": TEXT,
    "bool": FLAG,
    "int": whole(),
    "float": number(finite=False),
    "float | None": optional(number(finite=False)),
    "tuple[float, ...]": Several(number(finite=False)),
    "tuple[str, ...]": TEXTS,
}
