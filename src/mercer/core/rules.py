"""What a value may be, in words: a type error for what is of another kind, a value error for what does not hold."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, SupportsFloat

import numpy as np
import torch

from mercer.core.errors import InputError, InputTypeError, MercerError


@dataclass(frozen=True)
class Rule:
    """Values of `kind` for which this holds, in words; booleans are numbers only where `kind` says so."""

    kind: Callable[[Any], bool]
    holds: Callable[[Any], bool]
    words: str

    def check(self, name: str, value: object, optional: bool) -> None:
        words = f"{name}={value!r}: must be {self.words}{', or None' * optional}."
        if not self.kind(value):
            raise InputTypeError(words)
        if not self.holds(value):
            raise InputError(words)


@dataclass(frozen=True)
class Reader:
    """Values that a function can read; its errors say what is wrong."""

    read: Callable[[Any], Any]

    def check(self, name: str, value: object, optional: bool) -> None:
        try:
            self.read(value)
        except MercerError as error:
            if name in str(error):
                raise
            kind = InputTypeError if isinstance(error, TypeError) else InputError
            raise kind(f"{name}={value!r}: {error}") from None


Rules = Mapping[str, Rule | Reader]
"""Rules by the name of the parameter."""


def is_flag(value: object) -> bool:
    """Whether a value is True or False, numpy's included."""
    return isinstance(value, bool | np.bool_)


def is_integer(value: object) -> bool:
    """Whether a value is a whole number; True and False are none."""
    return isinstance(value, numbers.Integral) and not is_flag(value)


def is_number(value: object) -> bool:
    """Whether a value is a real number; True and False are none."""
    return isinstance(value, numbers.Real) and not is_flag(value)


def is_numbers(value: object) -> bool:
    """Whether a value is a number, or an array or sequence of numbers."""
    try:
        return as_array(value).dtype.kind in "fiu"
    except (TypeError, ValueError):
        return False


def as_array(value: object) -> np.ndarray:
    """A number, a sequence, an array or a tensor as an array."""
    return np.asarray(value.detach().cpu() if isinstance(value, torch.Tensor) else value)


def is_finite(value: SupportsFloat) -> bool:
    """Whether a number is finite as a float."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def all_hold(holds: Callable[[np.ndarray], Any]) -> Callable[[Any], bool]:
    """Whether there is a number, and this holds for all."""

    def check(value: object) -> bool:
        values = np.atleast_1d(as_array(value).astype(np.float64))
        return bool(values.size and np.isfinite(values).all() and np.all(holds(values)))

    return check


def always(value: object) -> bool:
    """True."""
    return True


def whole(least: int, most: int | None = None) -> Rule:
    """Integers from `least` on, up to `most` where more would not end: each is work that is done.

    >>> whole(1, 1000).words
    'an integer from 1 to 1,000'
    """
    words = f"an integer >= {least}" if most is None else f"an integer from {least:,} to {most:,}"
    return Rule(is_integer, lambda value: least <= value <= (value if most is None else most), words)


def number(holds: Callable[[Any], bool], words: str) -> Rule:
    """Finite numbers."""
    return Rule(is_number, lambda value: is_finite(value) and holds(value), words)


def one_of(*names: str) -> Rule:
    """One of these names."""
    return Rule(lambda value: isinstance(value, str), lambda value: value in names, listed(names))


def name_or(names: tuple[str, ...], kind: Callable[[Any], bool], words: str) -> Rule:
    """One of these names, or something of a kind."""
    return Rule(
        lambda value: isinstance(value, str) or kind(value),
        lambda value: not isinstance(value, str) or value in names,
        f"{', '.join(map(repr, names))} or {words}",
    )


def of_kind(kind: Callable[[Any], bool], words: str) -> Rule:
    """Everything of a kind."""
    return Rule(kind, always, words)


def listed(names: tuple[str, ...]) -> str:
    """'a', 'b' or 'c'."""
    return " or ".join(filter(None, [", ".join(map(repr, names[:-1])), repr(names[-1])]))


FLAG = of_kind(is_flag, "True or False")
SCALE = number(lambda value: value >= 0, "a finite number >= 0")
TUNE = Rule(
    lambda value: isinstance(value, str) or is_flag(value),
    lambda value: not isinstance(value, str) or value in ("scale", "ard"),
    "True, False, 'scale' or 'ard'",
)


def check_arguments(rules: Rules, **given: object) -> None:
    """Raise an error that names the first argument of a function that breaks the rule of its name.

    >>> check_arguments({"draws": whole(1)}, draws=0)
    Traceback (most recent call last):
    mercer.core.errors.InputError: draws=0: must be an integer >= 1.
    """
    for name, value in given.items():
        rules[name].check(name, value, False)


SEED = Rule(
    lambda value: value is None or is_integer(value) or isinstance(value, np.random.RandomState | np.random.Generator),
    lambda value: not is_integer(value) or value >= 0,
    "None, an integer >= 0, a numpy RandomState or a numpy Generator",
)
