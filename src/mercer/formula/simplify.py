"""The one simplifier: formulas are written down again, each step once, with what is known folded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import eq
from typing import Any

from mercer.core.arrays import Warp
from mercer.formula.materns import LARGEST_MATERN, matern_polynomial
from mercer.formula.numbers import Ledger, Number
from mercer.formula.operations import operation
from mercer.formula.symbols import Program, Statistic, Step


@dataclass
class Builder:
    """Records steps once each. Constants are `Number`s: what is folded because of them is noted in the ledger."""

    ledger: Ledger
    steps: dict[Step, int] = field(default_factory=dict)
    constants: dict[int, Number] = field(default_factory=dict)

    def put(self, op: str, *args: int, value: Any = None) -> int:
        return self.steps.setdefault(Step(op, args, value), len(self.steps))

    def constant(self, value: float | Number) -> int:
        """A constant; a float is part of the formula, and never changes."""
        number = value if isinstance(value, Number) else self.ledger.literal(value)
        place = next((i for i, known in self.constants.items() if known.equals(number)), None)
        if place is None:
            place = self.put("constant", value=number)
            self.constants[place] = number
        return place

    def apply(self, op: str, args: tuple[int, ...], literal: float | None = None) -> int:
        """A step, or what it comes to."""
        if op == "copy" or (op == "pow" and literal == 1):
            return args[0]
        known = [self.constants[arg].place for arg in args if arg in self.constants]
        if args and len(known) == len(args):
            carried = () if literal is None else (literal,)
            return self.constant(self.ledger.computed(operation(op).number, tuple(known), carried))
        if op in ("add", "mul"):
            return self.add(*args) if op == "add" else self.mul(*args)
        return self.put(op, *args, value=literal)

    def add(self, a: int, b: int) -> int:
        x, y = self.constants.get(a), self.constants.get(b)
        if x is not None and y is not None:
            return self.constant(x + y)
        if x is not None and x.holds(eq, 0.0):
            return b
        return a if y is not None and y.holds(eq, 0.0) else self.put("add", a, b)

    def mul(self, a: int, b: int) -> int:
        x, y = self.constants.get(a), self.constants.get(b)
        if x is not None and y is not None:
            return self.constant(x * y)
        for factor, other in ((x, b), (y, a)):
            if factor is None:
                continue
            if factor.holds(eq, 0.0):
                return self.constant(0.0)
            if factor.holds(eq, 1.0):
                return other
        return self.put("mul", a, b)

    def program(self, source: Program, result: int) -> Program:
        """The steps that `result` needs, with plain numbers."""
        steps = [
            Step("constant", (), self.constants[i].value) if i in self.constants else step
            for i, step in enumerate(self.steps)
        ]
        return pruned(Program(source.inputs, (*steps, Step("copy", (result,))), source.exact))


def rewritten(
    program: Program, rule: Callable[[Builder, Step, tuple[int, ...]], int | None], builder: Builder | None = None
) -> tuple[Builder, int]:
    """The program written again; `rule` gives the place of a step that it replaces, None for any other.

    The ledger of a `builder` is that of the program's constants.
    """
    builder = builder or Builder(Ledger(program.constants))
    constants = iter(builder.ledger.constants())
    place: list[int] = []
    for step in program.steps:
        args = tuple(place[a] for a in step.args)
        if step.op == "constant":
            place.append(builder.constant(next(constants)))
            continue
        found = rule(builder, step, args)
        place.append(builder.apply(step.op, args, step.value) if found is None else found)
    return builder, place[-1]


def reduced(program: Program, *, same: bool = False) -> Program:
    """The same formula with closed Matern forms and no unused inputs; without `same`, for two different samples.

    >>> from mercer.core.arrays import as_points
    >>> from mercer.kernels import Gaussian
    >>> print(reduced((1.0 * Gaussian(2.0) + 0.0).program(as_points([[0.0]]))))
    v0 = squared_distance
    v1 = constant(-0.5)
    v2 = mul(v0, v1)
    v3 = exp(v2)
    v4 = copy(v3)
    """
    builder, result = rewritten(program, reduction(program, same=same))
    return builder.program(program, result)


def reduction(program: Program, *, same: bool) -> Callable[[Builder, Step, tuple[int, ...]], int | None]:
    """The rule of `reduced`."""

    def rule(builder: Builder, step: Step, args: tuple[int, ...]) -> int | None:
        if step.op == "input" and program.inputs[int(step.value or 0)].kind == "same" and not same:
            return builder.constant(0.0)
        return closed_matern(builder, args[0], float(step.value or 0.0)) if step.op == "matern" else None

    return rule


FARTHEST = 1e4
"""Where exp(-u) is zero in any precision, and the sixth power of u is a number."""


def closed_matern(builder: Builder, u: int, nu: float) -> int | None:
    """exp(-u) times a polynomial of u at nu = p + 1/2; None at other orders."""
    p = round(nu - 0.5)
    if abs(nu - 0.5 - p) > 1e-12 or p > LARGEST_MATERN:
        return None
    if p > 2:  # u is at most the root of the largest number, whose third power would be infinite
        u = builder.put("minimum", u, builder.constant(FARTHEST))
    value = builder.constant(0.0)
    for factor in reversed(matern_polynomial(p)):  # Horner, from the highest power of u
        value = builder.add(builder.mul(value, u), builder.constant(factor))
    return builder.mul(value, builder.put("exp", builder.mul(builder.constant(-1.0), u)))


def merged(program: Program) -> Program:
    """Distances of the same points with different scalar length scales are one distance, times constants.

    The smallest length scale stays, since it decides how accurate the distance has to be.
    """
    leader: dict[tuple[str, tuple[Warp, ...]], int] = {}
    for i, s in enumerate(program.inputs):
        if _mergeable(s):
            best = leader.setdefault((s.kind, s.warps), i)
            if _length(s) < _length(program.inputs[best]):
                leader[s.kind, s.warps] = i

    def rule(builder: Builder, step: Step, _: tuple[int, ...]) -> int | None:
        if step.op != "input":
            return None
        own = program.inputs[int(step.value or 0)]
        first = leader.get((own.kind, own.warps), -1)
        if not _mergeable(own) or program.inputs[first] is own:
            return None
        ratio = _length(program.inputs[first]) / _length(own)
        power = 2 if own.kind == "squared_distance" else 1
        return builder.put("mul", builder.put("input", value=first), builder.constant(ratio**power))

    sharp = {leader.get((program.inputs[i].kind, program.inputs[i].warps), i) for i in program.exact}
    builder, result = rewritten(program, rule)
    return builder.program(Program(program.inputs, program.steps, frozenset(program.exact | sharp)), result)


def _mergeable(statistic: Statistic) -> bool:
    return statistic.kind in ("squared_distance", "l1_distance") and isinstance(statistic.length_scale, float | int)


def _length(statistic: Statistic) -> float:
    assert isinstance(statistic.length_scale, float | int)
    return float(statistic.length_scale)


def is_zero(program: Program) -> bool:
    """Whether a reduced program is the constant zero."""
    constant = program.steps[0]
    return len(program.steps) == 2 and constant.op == "constant" and constant.value == 0.0


def times_sign(program: Program, left: Statistic, right: Statistic) -> Program:
    """The program times sign(left - right), for two end values."""
    builder, result = rewritten(program, lambda *_: None)
    n = len(program.inputs)
    a, b = builder.put("input", value=n), builder.put("input", value=n + 1)
    minus = builder.mul(builder.constant(-1.0), builder.put("less", a, b))
    sign = builder.add(builder.put("less", b, a), minus)
    widened = Program((*program.inputs, left, right), program.steps, program.exact)
    return builder.program(widened, builder.mul(result, sign))


def pruned(program: Program) -> Program:
    """Without the steps that the result does not need, and without the inputs that no step reads."""
    needed: set[int] = {len(program.steps) - 1}
    for i in range(len(program.steps) - 1, -1, -1):
        if i in needed:
            needed.update(program.steps[i].args)
    used = sorted({int(program.steps[i].value or 0) for i in needed if program.steps[i].op == "input"})
    new_input = {old: new for new, old in enumerate(used)}
    new_place: dict[int, int] = {}
    steps: list[Step] = []
    for i, step in enumerate(program.steps):
        if i in needed:
            new_place[i] = len(steps)
            value = new_input[int(step.value or 0)] if step.op == "input" else step.value
            steps.append(Step(step.op, tuple(new_place[a] for a in step.args), value))
    exact = frozenset(new_input[i] for i in program.exact if i in new_input)
    return Program(tuple(program.inputs[i] for i in used), tuple(steps), exact)
