"""Programs as formulas: the reduced form that back ends take, values over torch, and derivatives as programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from mercer.core.arrays import Warp
from mercer.core.errors import NotTraceable
from mercer.core.symbols import Program, Statistic, Step
from mercer.operators.backends.fused.materns import LARGEST_MATERN, matern_polynomial, with_materns

# Besides the operations of kernel formulas, derivatives use "log", "reciprocal_sqrt" (zero at zero), "safe_pow"
# (zero at zero) and "less" (one where the first value is smaller).


@dataclass
class _Recorder:
    """Records steps once each, folding what is known before any data are seen."""

    steps: dict[Step, int] = field(default_factory=dict)

    def put(self, op: str, *args: int, value: float | int | None = None) -> int:
        return self.steps.setdefault(Step(op, args, value), len(self.steps))

    def constant(self, value: float) -> int:
        return self.put("constant", value=float(value))

    def known(self, index: int) -> float | None:
        step = list(self.steps)[index]
        return float(step.value or 0.0) if step.op == "constant" else None

    def add(self, a: int, b: int) -> int:
        x, y = self.known(a), self.known(b)
        if x is not None and y is not None:
            return self.constant(x + y)
        return b if x == 0.0 else a if y == 0.0 else self.put("add", a, b)

    def mul(self, a: int, b: int) -> int:
        x, y = self.known(a), self.known(b)
        if x is not None and y is not None:
            return self.constant(x * y)
        if x == 0.0 or y == 0.0:
            return self.constant(0.0)
        return b if x == 1.0 else a if y == 1.0 else self.put("mul", a, b)

    def program(self, source: Program, result: int) -> Program:
        return _pruned(Program(source.inputs, (*self.steps, Step("copy", (result,))), source.exact))


def reduced(program: Program, *, same: bool = False) -> Program:
    """The same formula with closed Matern forms and no unused inputs; without `same`, for two different samples."""
    rec = _Recorder()
    place: list[int] = []
    for step in program.steps:
        args = [place[a] for a in step.args]
        if step.op == "input" and program.inputs[int(step.value or 0)].kind == "same" and not same:
            place.append(rec.constant(0.0))
        elif step.op == "copy":
            place.append(args[0])
        elif step.op == "add":
            place.append(rec.add(*args))
        elif step.op == "mul":
            place.append(rec.mul(*args))
        elif step.op == "matern":
            place.append(_closed_matern(rec, args[0], float(step.value or 0.0)))
        else:
            place.append(rec.put(step.op, *args, value=step.value))
    return rec.program(program, place[-1])


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
    rec = _Recorder()
    place: list[int] = []
    for step in program.steps:
        i = int(step.value or 0) if step.op == "input" else -1
        first = leader.get((program.inputs[i].kind, program.inputs[i].warps), i) if i >= 0 else -1
        if i < 0 or first == i or not _mergeable(program.inputs[i]):
            place.append(rec.put(step.op, *(place[a] for a in step.args), value=step.value))
            continue
        ratio = _length(program.inputs[first]) / _length(program.inputs[i])
        power = 2 if program.inputs[i].kind == "squared_distance" else 1
        place.append(rec.put("mul", rec.put("input", value=first), rec.constant(ratio**power)))
    sharp = {leader.get((program.inputs[i].kind, program.inputs[i].warps), i) for i in program.exact}
    return rec.program(Program(program.inputs, program.steps, frozenset(program.exact | sharp)), place[-1])


def _mergeable(statistic: Statistic) -> bool:
    return statistic.kind in ("squared_distance", "l1_distance") and isinstance(statistic.length_scale, float | int)


def _length(statistic: Statistic) -> float:
    assert isinstance(statistic.length_scale, float | int)
    return float(statistic.length_scale)


def is_zero(program: Program) -> bool:
    """Whether a reduced program is the constant zero."""
    constant = program.steps[0]
    return len(program.steps) == 2 and constant.op == "constant" and constant.value == 0.0


def _closed_matern(rec: _Recorder, u: int, nu: float) -> int:
    """exp(-u) times a polynomial of u at nu = p + 1/2."""
    p = round(nu - 0.5)
    if abs(nu - 0.5 - p) > 1e-12 or p > LARGEST_MATERN:
        raise NotTraceable(f"a Matern kernel of order nu={nu:g} needs a Bessel function")
    value = rec.constant(0.0)
    for factor in reversed(matern_polynomial(p)):  # Horner, from the highest power of u
        value = rec.add(rec.mul(value, u), rec.constant(factor))
    return rec.mul(value, rec.put("exp", rec.mul(rec.constant(-1.0), u)))


def transposed(program: Program) -> Program:
    """The program of k(z, x): left and right functions change places."""
    swap = {"left": "right", "right": "left"}
    inputs = tuple(type(s)(swap.get(s.kind, s.kind), s.warps, s.length_scale, s.function) for s in program.inputs)
    return Program(inputs, program.steps, program.exact)


def evaluate(program: Program, inputs: Sequence[Tensor]) -> Tensor:
    """The program's value from the values of its inputs, in torch."""
    values: list[Tensor] = []
    for step in program.steps:
        a = [values[i] for i in step.args]
        number = float(step.value or 0.0)
        match step.op:
            case "input":
                value = inputs[int(number)]
            case "constant":
                value = torch.full_like(inputs[0], number) if inputs else torch.tensor(number)
            case "add":
                value = a[0] + a[1]
            case "mul":
                value = a[0] * a[1]
            case "pow":
                value = a[0] ** number
            case "exp":
                value = a[0].exp()
            case "sqrt":
                value = a[0].sqrt()
            case "minimum":
                value = torch.minimum(a[0], a[1])
            case "copy":
                value = a[0]
            case "log":
                value = a[0].log()
            case "reciprocal_sqrt":
                value = torch.where(a[0] > 0, a[0].rsqrt(), 0.0)
            case "safe_pow":
                value = torch.where(a[0] > 0, a[0] ** number, 0.0)
            case "less":
                value = (a[0] < a[1]).to(a[0])
            case _:
                raise NotTraceable(f"the operation {step.op!r} has no fused form")
        values.append(value)
    return values[-1]


def times_sign(program: Program, left: Statistic, right: Statistic) -> Program:
    """The program times sign(left - right), for two end values."""
    rec = _Recorder()
    for step in program.steps:
        rec.put(step.op, *step.args, value=step.value)
    n = len(program.inputs)
    a, b = rec.put("input", value=n), rec.put("input", value=n + 1)
    minus = rec.mul(rec.constant(-1.0), rec.put("less", a, b))
    sign = rec.add(rec.put("less", b, a), minus)
    widened = Program((*program.inputs, left, right), program.steps, program.exact)
    return rec.program(widened, rec.mul(len(program.steps) - 1, sign))


def derivatives(program: Program) -> dict[int, Program]:
    """The derivatives of the kernel by each input, constant and real power, as programs, by index of the step.

    Reverse accumulation on the steps: each derivative contains the forward formula.
    """
    program = with_materns(program)
    rec = _Recorder()
    for step in program.steps:
        rec.put(step.op, *step.args, value=step.value)
    adjoint: dict[int, int] = {len(program.steps) - 1: rec.constant(1.0)}
    powers: dict[int, int] = {}

    def give(index: int, value: int) -> None:
        adjoint[index] = rec.add(adjoint[index], value) if index in adjoint else value

    for i in range(len(program.steps) - 1, -1, -1):
        if i not in adjoint:
            continue
        step, g = program.steps[i], adjoint[i]
        a = step.args
        number = float(step.value or 0.0)
        match step.op:
            case "add":
                give(a[0], g)
                give(a[1], g)
            case "mul":
                give(a[0], rec.mul(g, a[1]))
                give(a[1], rec.mul(g, a[0]))
            case "exp":
                give(a[0], rec.mul(g, i))
            case "sqrt":
                give(a[0], rec.mul(g, rec.mul(rec.constant(0.5), rec.put("reciprocal_sqrt", a[0]))))
            case "pow":
                whole = number == int(number) and number >= 1
                slope = rec.put("pow" if whole else "safe_pow", a[0], value=number - 1.0)
                give(a[0], rec.mul(g, rec.mul(rec.constant(number), slope)))
                if number != int(number):
                    powers[i] = rec.mul(g, rec.mul(i, rec.put("log", a[0])))
            case "minimum":
                first = rec.put("less", a[0], a[1])
                give(a[0], rec.mul(g, first))
                give(a[1], rec.mul(g, rec.add(rec.constant(1.0), rec.mul(rec.constant(-1.0), first))))
            case "matern":  # d/du M_nu(u) = -u M_(nu-1)(u) / (2 nu - 2)
                if number == 0.5:
                    slope = rec.mul(rec.constant(-1.0), i)
                else:
                    inner = rec.mul(a[0], rec.put("matern", a[0], value=number - 1.0))
                    slope = rec.mul(rec.constant(-1.0 / (2.0 * number - 2.0)), inner)
                give(a[0], rec.mul(g, slope))
            case "copy":
                give(a[0], g)
    wanted = {i: adjoint[i] for i in adjoint if program.steps[i].op in ("input", "constant")} | powers
    return {i: rec.program(program, index) for i, index in sorted(wanted.items())}


def _pruned(program: Program) -> Program:
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
