"""Symbols that record a kernel's formula: the one Python formula becomes a straight-line `Program` for back ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mercer.core.arrays import Warp
from mercer.core.errors import NotTraceable


@dataclass(frozen=True)
class Statistic:
    """A quantity of a pair of points that a program takes as input.

    `kind` is "squared_distance", "squared_sum" (|x + z|^2), "l1_distance", "inner", "same" (one where
    both are the same row of one sample), "left" or "right" (`function` of x alone, of z alone). Points pass through
    `warps`, in order, and distances are divided by `length_scale` (a float or one per column).
    """

    kind: str
    warps: tuple[Warp, ...] = ()
    length_scale: float | tuple[float, ...] = 1.0
    function: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Step:
    """One operation on the values of earlier steps.

    `value` is the literal an operation carries: the number of a "constant", the place in `Program.inputs` of
    an "input", the exponent of a "pow", the order of a "matern".
    """

    op: str
    args: tuple[int, ...] = ()
    value: float | int | None = None


ANY_CONSTANT = Step("constant")


@dataclass(frozen=True)
class Program:
    """A kernel as straight-line code; the last step is the kernel's value.

    `exact` names the inputs whose errors near zero are magnified by a square root: back ends must
    compute those from differences where points nearly coincide.
    """

    inputs: tuple[Statistic, ...]
    steps: tuple[Step, ...]
    exact: frozenset[int]

    @property
    def constants(self) -> tuple[float, ...]:
        """The values of the constant steps, in order."""
        return tuple(float(step.value or 0.0) for step in self.steps if step.op == "constant")

    @property
    def shape(self) -> tuple[Any, ...]:
        """What programs of the same formula with other numbers have in common."""
        steps = tuple([ANY_CONSTANT if step.op == "constant" else step for step in self.steps])
        return tuple([statistic.kind for statistic in self.inputs]), steps

    def __str__(self) -> str:
        return "\n".join(f"v{i} = {self._line(step)}" for i, step in enumerate(self.steps))

    def _line(self, step: Step) -> str:
        if step.op == "input":
            return self.inputs[int(step.value or 0)].kind
        values = [f"v{i}" for i in step.args] + ([] if step.value is None else [repr(step.value)])
        return f"{step.op}({', '.join(values)})"


class Tape:
    """Collects steps while a formula runs over symbols; equal steps are recorded once."""

    def __init__(self) -> None:
        self.inputs: dict[Statistic, int] = {}
        self.steps: dict[Step, int] = {}
        self.exact: set[int] = set()

    def input(self, statistic: Statistic, *, exact: bool = False) -> Symbol:
        index = self.inputs.setdefault(statistic, len(self.inputs))
        if exact:
            self.exact.add(index)
        return self.record(Step("input", value=index))

    def constant(self, value: float) -> Symbol:
        return self.record(Step("constant", value=float(value)))

    def record(self, step: Step) -> Symbol:
        return Symbol(self, self.steps.setdefault(step, len(self.steps)))

    def program(self, result: Symbol | float) -> Program:
        """The finished program that computes `result`."""
        if not isinstance(result, Symbol):
            result = self.constant(result)
        if result.index != len(self.steps) - 1:
            self.record(Step("copy", (result.index,)))
        return Program(tuple(self.inputs), tuple(self.steps), frozenset(self.exact))


class Symbol:
    """A value on the tape; arithmetic on it records steps."""

    __slots__ = ("index", "tape")
    __array_ufunc__ = None

    def __init__(self, tape: Tape, index: int) -> None:
        self.tape = tape
        self.index = index

    def apply(self, op: str, *others: Symbol | float, value: float | None = None) -> Symbol:
        """Record `op` on this symbol and `others`; `value` is the literal that the operation carries."""
        symbols = [o if isinstance(o, Symbol) else self.tape.constant(o) for o in others]
        return self.tape.record(Step(op, (self.index, *(s.index for s in symbols)), value))

    def __add__(self, other: Symbol | float) -> Symbol:
        return self.apply("add", other)

    def __mul__(self, other: Symbol | float) -> Symbol:
        return self.apply("mul", other)

    def __neg__(self) -> Symbol:
        return self.apply("mul", -1.0)

    def __sub__(self, other: Symbol | float) -> Symbol:
        return self.apply("add", -other)

    def __rsub__(self, other: Symbol | float) -> Symbol:
        return (-self).apply("add", other)

    def __pow__(self, exponent: float) -> Symbol:
        return self.apply("pow", value=float(exponent))

    def __truediv__(self, other: Symbol | float) -> Symbol:
        return self.apply("mul", other ** (-1.0))

    def __rtruediv__(self, other: Symbol | float) -> Symbol:
        return (self ** (-1.0)).apply("mul", other)

    __radd__ = __add__
    __rmul__ = __mul__

    def _undecided(self, *_: object) -> bool:
        raise NotTraceable("its formula compares values, which are not known while it is traced")

    __bool__ = __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _undecided
    __hash__ = None  # type: ignore[assignment]
