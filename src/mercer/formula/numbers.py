"""Constants that may change from one evaluation of a formula to the next: what is decided by them is noted."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Operation = Callable[..., Any]


class Ledger:
    """What was computed from the constants of a formula, line by line, and what was asked about it.

    A plan that was made with some constants is right for others as long as every question has the same answer.

    >>> ledger = Ledger([2.0, 3.0])
    >>> a, b = ledger.constants()
    >>> (a * b).value, (a * b).holds(operator.eq, 1.0)
    (6.0, False)
    >>> ledger.read([5.0, 1.0]), ledger.read([0.5, 2.0])
    ([5.0, 1.0, 5.0], None)
    """

    def __init__(self, constants: Sequence[float] = ()) -> None:
        self.n_constants = len(constants)
        self.values: list[Any] = list(constants)
        self.lines: list[tuple[Operation, tuple[int, ...], tuple[float, ...], bool | None]] = []
        self.known: dict[Any, Any] = {}

    def constants(self) -> list[Number]:
        """A number for each constant of the formula."""
        return [Number(self, place) for place in range(self.n_constants)]

    def literal(self, value: float) -> Number:
        """A number that is part of the formula, and never changes."""
        return self.computed(float, (), (value,))

    def computed(self, operation: Operation, places: tuple[int, ...], carried: tuple[float, ...] = ()) -> Number:
        """The number that an operation makes of those at `places` and of what it carries."""
        key = operation, places, carried
        if key not in self.known:
            self.known[key] = len(self.values)
            self.values.append(operation(*map(self.values.__getitem__, places), *carried))
            self.lines.append((*key, None))
        return Number(self, self.known[key])

    def asked(self, test: Operation, places: tuple[int, ...], carried: tuple[float, ...] = ()) -> bool:
        """Whether a test holds; a plan that is kept depends on the answer."""
        key = test, places, carried
        if key not in self.known:
            self.known[key] = bool(test(*map(self.values.__getitem__, places), *carried))
            self.lines.append((*key, self.known[key]))
        answer: bool = self.known[key]
        return answer

    def read(self, constants: Sequence[float]) -> list[float] | None:
        """All numbers for other constants; None where these answer a question differently."""
        values = list(constants)
        for operation, places, carried, answer in self.lines:
            found = operation(*map(values.__getitem__, places), *carried)
            if answer is None:
                values.append(found)
            elif bool(found) != answer:
                return None
        return values


@dataclass(frozen=True, slots=True)
class Number:
    """A value on a line of a ledger."""

    ledger: Ledger
    place: int

    @property
    def value(self) -> float:
        return float(self.ledger.values[self.place])

    def holds(self, test: Operation, *carried: float) -> bool:
        """Whether test(self, *carried)."""
        return self.ledger.asked(test, (self.place,), carried)

    def equals(self, other: Number) -> bool:
        return self.place == other.place or self.ledger.asked(operator.eq, (self.place, other.place))

    def __mul__(self, other: Number) -> Number:
        return self.ledger.computed(operator.mul, (self.place, other.place))

    def __add__(self, other: Number) -> Number:
        return self.ledger.computed(operator.add, (self.place, other.place))
