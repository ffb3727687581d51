"""Constants that may change from one evaluation of a formula to the next: what is decided by them is noted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Rule = Callable[[Sequence[float]], float]
Test = Callable[[float], bool]


class Number:
    """A value computed from a formula's constants by `rule`; answers about it are kept in `asked`.

    A plan that was made with some constants is right for others as long as every question has the same answer.

    >>> asked = []
    >>> a, b = numbers([2.0, 3.0], asked)
    >>> (a * b).value, (a * b).is_(1.0)
    (6.0, False)
    >>> same_answers(asked, [5.0, 1.0]), same_answers(asked, [0.5, 2.0])
    (True, False)
    """

    __slots__ = ("asked", "rule", "value")

    def __init__(self, value: float, rule: Rule, asked: list[Question]) -> None:
        self.value, self.rule, self.asked = value, rule, asked

    def holds(self, test: Test) -> bool:
        answer = test(self.value)
        self.asked.append((self.rule, test, answer))
        return answer

    def is_(self, value: float) -> bool:
        return self.holds(lambda number: number == value)

    def apply(self, operation: Callable[..., float], *others: Number) -> Number:
        """operation(self, *others)."""
        rules = [self.rule, *(other.rule for other in others)]
        value = operation(self.value, *(other.value for other in others))
        return Number(value, lambda constants: operation(*(rule(constants) for rule in rules)), self.asked)

    def __mul__(self, other: Number) -> Number:
        return self.apply(lambda a, b: a * b, other)

    def __add__(self, other: Number) -> Number:
        return self.apply(lambda a, b: a + b, other)

    def equals(self, other: Number) -> bool:
        if self is other:
            return True
        difference = self.apply(lambda a, b: float(a == b), other)
        return difference.is_(1.0)


Question = tuple[Rule, Test, bool]


def numbers(values: Sequence[float], asked: list[Question]) -> list[Number]:
    """A `Number` for each constant of a formula."""
    return [Number(value, lambda constants, i=i: constants[i], asked) for i, value in enumerate(values)]  # type: ignore[misc]


def same_answers(asked: Sequence[Question], constants: Sequence[float]) -> bool:
    """Whether other constants answer all questions alike."""
    return all(test(rule(constants)) == answer for rule, test, answer in asked)
