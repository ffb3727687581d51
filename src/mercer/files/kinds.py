"""Kinds of values in a model file: what a field may hold, and both ways between it and plain data."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from typing import Any

from mercer.core.errors import ModelFileError

LARGEST_WHOLE = 2**53


class Kind:
    """What a value may be: its words, what a file's plain data stand for, and back."""

    words: str

    def read(self, value: Any, where: str) -> Any:
        """What the plain data stand for, or a ModelFileError that says where they are wrong."""
        raise NotImplementedError

    def plain(self, value: Any) -> Any:
        """The value as plain data."""
        return value


@dataclass(frozen=True)
class Plain(Kind):
    """A value by itself, for which a question is answered with yes.

    >>> TEXT.read(3, "the note")
    Traceback (most recent call last):
    mercer.core.errors.ModelFileError: the note is 3, expected text
    """

    words: str
    fits: Callable[[Any], bool]

    def read(self, value: Any, where: str) -> Any:
        return value if self.fits(value) else _refused(self, value, where)


@dataclass(frozen=True)
class Made(Kind):
    """What a function makes of plain data of a kind, and another takes back.

    >>> Made(whole(), range, len).read(3, "the rows"), Made(whole(), range, len).plain(range(3))
    (range(0, 3), 3)
    """

    kind: Kind
    make: Callable[[Any], Any]
    back: Callable[[Any], Any]

    @property
    def words(self) -> str:  # type: ignore[override]
        return self.kind.words

    def read(self, value: Any, where: str) -> Any:
        return self.make(self.kind.read(value, where))

    def plain(self, value: Any) -> Any:
        return self.kind.plain(self.back(value))


@dataclass(frozen=True)
class Either(Kind):
    """Plain data of the first kind that fits."""

    kinds: tuple[Kind, ...]

    @property
    def words(self) -> str:  # type: ignore[override]
        return " or ".join(kind.words for kind in self.kinds)

    def read(self, value: Any, where: str) -> Any:
        for kind in self.kinds:
            try:
                return kind.read(value, where)
            except ModelFileError:
                continue
        return _refused(self, value, where)


@dataclass(frozen=True)
class OrNothing(Kind):
    """A value of a kind, or None."""

    kind: Kind

    @property
    def words(self) -> str:  # type: ignore[override]
        return f"{self.kind.words} or nothing"

    def read(self, value: Any, where: str) -> Any:
        return None if value is None else self.kind.read(value, where)

    def plain(self, value: Any) -> Any:
        return None if value is None else self.kind.plain(value)


@dataclass(frozen=True)
class Several(Kind):
    """A list of values of one kind.

    >>> Several(number()).read([1.0, "x"], "alphas")
    Traceback (most recent call last):
    mercer.core.errors.ModelFileError: alphas[1] is 'x', expected a number
    """

    kind: Kind
    least: int = 0

    @property
    def words(self) -> str:  # type: ignore[override]
        return f"a list ({self.kind.words})" + (f" of at least {self.least}" if self.least else "")

    def read(self, value: Any, where: str) -> Any:
        if not isinstance(value, list) or len(value) < self.least:
            _refused(self, value, where)
        return [self.kind.read(entry, f"{where}[{i}]") for i, entry in enumerate(value)]

    def plain(self, value: Any) -> Any:
        return [self.kind.plain(entry) for entry in value]


@dataclass(frozen=True)
class Pairs(Kind):
    """A dictionary whose keys need not be text, as a list of pairs."""

    key: Kind
    kind: Kind

    @property
    def words(self) -> str:  # type: ignore[override]
        return f"a list of pairs ({self.key.words}, {self.kind.words})"

    def read(self, value: Any, where: str) -> Any:
        pairs = Several(Plain("a pair", lambda v: isinstance(v, list) and len(v) == 2)).read(value, where)
        return {self.key.read(key, where): self.kind.read(entry, f"{where}[{key!r:.60}]") for key, entry in pairs}

    def plain(self, value: Any) -> Any:
        return [[self.key.plain(key), self.kind.plain(entry)] for key, entry in value.items()]


@dataclass(frozen=True)
class Table(Kind):
    """An object with these fields and no others; those it `may_lack` have defaults.

    >>> Table({"k": whole(1)}).read({"k": 0}, "the kernel")
    Traceback (most recent call last):
    mercer.core.errors.ModelFileError: the kernel.k is 0, expected a whole number >= 1
    """

    fields: Mapping[str, Kind]
    may_lack: Collection[str] = ()

    @property
    def words(self) -> str:  # type: ignore[override]
        return f"an object with the fields {', '.join(self.fields)}"

    def read(self, value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            _refused(self, value, where)
        missing = self.fields.keys() - value.keys() - set(self.may_lack)
        unknown = value.keys() - self.fields.keys()
        for what, names in (("lacks", missing), ("has an unknown field", unknown)):
            if names:
                raise ModelFileError(f"{where} {what} {min(names)!r:.60}")
        return {name: self.fields[name].read(entry, f"{where}.{name}") for name, entry in value.items()}

    def plain(self, value: Any) -> Any:
        return {name: kind.plain(value[name]) for name, kind in self.fields.items()}


@dataclass(frozen=True)
class Record(Kind):
    """A dataclass, as an object with its fields: kinds are those of the annotations but for its `own`.

    Fields with a default may be lacking; those of which `own` says None are not saved.
    """

    made: Any
    own: Mapping[str, Kind | None] = field(default_factory=dict)

    @cached_property
    def table(self) -> Table:
        """The fields."""
        kinds = {f.name: self.own[f.name] if f.name in self.own else BY_ANNOTATION[f.type] for f in fields(self.made)}
        optional = [f.name for f in fields(self.made) if f.default is not MISSING]
        return Table({name: kind for name, kind in kinds.items() if kind is not None}, optional)

    @property
    def words(self) -> str:  # type: ignore[override]
        return self.table.words

    def read(self, value: Any, where: str) -> Any:
        return self.made(**self.table.read(value, where))

    def plain(self, value: Any) -> Any:
        return self.table.plain(vars(value))


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


def _refused(kind: Kind, value: Any, where: str) -> Any:
    raise ModelFileError(f"{where} is {value!r:.60}, expected {kind.words}")


ANY_TABLE: Kind = Plain("an object", lambda value: isinstance(value, dict))
"""This is for what is checked where it is read."""
FLAG: Kind = Plain("true or false", lambda value: isinstance(value, bool))
TEXT: Kind = Plain("text", lambda value: isinstance(value, str))
TEXTS: Kind = Several(TEXT)

BY_ANNOTATION: dict[Any, Kind] = {
    "str": TEXT,
    "bool": FLAG,
    "int": whole(),
    "float": number(finite=False),
    "float | None": optional(number(finite=False)),
    "tuple[float, ...]": Made(Several(number(finite=False)), tuple, list),
    "tuple[str, ...]": Made(TEXTS, tuple, list),
}
