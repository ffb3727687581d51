"""The body of a tile function: a program as straight-line Triton text, with its numbers kept apart.

Every value is a known number times a computed one. The numbers meet on the host in float64: into the scale of the
data (so that the exponent of a Gaussian *is* the matrix product), into a short vector of constants, and into one
factor of the whole kernel. The text therefore depends on the formula alone, and a new length scale compiles nothing.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from mercer.core.errors import NotTraceable
from mercer.formula.operations import operation
from mercer.formula.symbols import Program, Step
from mercer.operators.backends.fused.dials import LARGE_POWER, SMALLEST_UNIT

LOG2E = math.log2(math.e)


@dataclass(frozen=True)
class Profile:
    """Text that computes `result` from inputs q0, q1, ... (input i times units[i]) and constants c0, c1, ...

    The kernel is `factor` times the result. `exponents` names the inputs in exponents, with the power they have there.
    """

    lines: tuple[str, ...]
    result: str
    factor: float
    constants: tuple[float, ...]
    units: tuple[float, ...]
    exponents: tuple[tuple[int, float], ...] = ()

    @property
    def takes_roots(self) -> bool:
        return any("root(" in line for line in self.lines)

    @property
    def weighted(self) -> str:
        """The result times w; (v + c) u w as (v w + c w) u, where c w is a number for each row."""
        written = dict(line.split(" = ", 1) for line in self.lines)
        factors = re.fullmatch(r"(v\d+) \* (v\d+)", written.get(self.result, ""))
        for a, b in (factors.groups(), factors.groups()[::-1]) if factors else ():
            if total := re.fullmatch(r"(v\d+) \+ (c\d+)", written[a]):
                return f"({total[1]} * w + {total[2]} * w) * {b}"
        return f"{self.result} * w"

    def only_rooted(self, i: int) -> bool:
        """Whether input i enters through its square root alone."""
        uses = [line for line in self.lines if re.search(rf"\bq{i}\b", line)]
        return all(f"= root(q{i}, POLY)" in line for line in uses) and self.result != f"q{i}"


@dataclass(frozen=True)
class _Value:
    """number * name; a known number when there is no name."""

    number: float
    name: str | None = None


class _Writer:
    def __init__(self, units: dict[int, float], inner: set[int]) -> None:
        self.units, self.inner = units, inner
        self.wanted: dict[int, float] = {}
        self.lines: dict[str, str] = {}
        self.constants: list[float] = []
        self.origin: dict[str, tuple[int, float]] = {}
        self.offset: dict[str, tuple[str, float]] = {}
        self.exponents: list[tuple[int, float]] = []

    def new(self, text: str, number: float = 1.0) -> _Value:
        """A line that computes `text`, written once."""
        return _Value(number, self.lines.setdefault(text, f"v{len(self.lines)}"))

    def constant(self, number: float) -> str:
        """A place of its own even for equal numbers, so that the text does not depend on them."""
        self.constants.append(number)
        return f"c{len(self.constants) - 1}"

    def whole(self, value: _Value) -> str:
        """The value itself, its number multiplied in."""
        if value.name is None:
            return self.constant(value.number)
        if value.number == 1.0:
            return value.name
        return str(self.new(f"{self.constant(value.number)} * {value.name}").name)

    def step(self, step: Step, args: list[_Value]) -> _Value:
        number = float(step.value or 0.0)
        match step.op:
            case "input":
                i = int(number)
                self.origin[f"q{i}"] = (i, 1.0)
                return _Value(1.0 / self.units.get(i, 1.0), f"q{i}")
            case "constant":
                return _Value(number)
        fused = operation(step.op).fused
        if fused is None:
            raise NotTraceable(f"the operation {step.op!r} has no fused form")
        value: _Value = fused(self, *args, *(() if step.value is None else (number,)))
        return value

    def add(self, a: _Value, b: _Value) -> _Value:
        if a.name is None:
            a, b = b, a
        if a.name is None:
            return _Value(a.number + b.number)
        if b.number == 0.0:
            return a
        ratio = b.number / a.number
        if b.name is None:
            i, _ = self.origin.get(a.name, (-1, 1.0))
            if i in self.inner:  # powers of the sum then are of the size of the kernel
                self.wanted.setdefault(i, abs(a.number))
            value = self.new(f"{a.name} + {self.constant(ratio)}", a.number)
            self.offset[str(value.name)] = (a.name, ratio)
            return value
        if a.name == b.name:
            total = a.number + b.number
            return _Value(total, a.name if total else None)
        if abs(ratio) == 1.0:
            return self.new(f"{a.name} {'+' if ratio > 0 else '-'} {b.name}", a.number)
        return self.new(f"{a.name} + {self.constant(ratio)} * {b.name}", a.number)

    def mul(self, a: _Value, b: _Value) -> _Value:
        number = a.number * b.number
        if a.name is None or b.name is None or number == 0.0:
            return _Value(number, None if number == 0.0 else a.name or b.name)
        return self.new(f"{a.name} * {b.name}", number)

    def power(self, a: _Value, p: float, *, safe: bool = False) -> _Value:
        try:
            return self._power(a, p, safe=safe)
        except OverflowError:
            raise NotTraceable(f"a number of the formula is too large, in a power of {p:g}") from None

    def _power(self, a: _Value, p: float, *, safe: bool) -> _Value:
        if a.name is None:
            return _Value(0.0 if safe and a.number == 0 else a.number**p)
        if p == 1.0 or p == 0.0:
            return a if p else _Value(1.0)
        if p == int(p) and (p > 0 or (p >= -8 and not safe)):
            return self.whole_power(a, int(p))
        base = _Value(1.0, self.whole(a)) if a.number < 0 else a
        number, name = base.number**p, str(base.name)
        if p == 0.5:
            value = self.new(f"root({name}, POLY)", number)
            if name in self.origin:
                self.origin[str(value.name)] = (self.origin[name][0], 0.5)
            return value
        if p == -0.5:
            # a zero distance has no direction: the floor keeps coincident and padded pairs finite before the mask
            text = f"tl.rsqrt(tl.maximum({name}, 1e-37))"
        elif abs(p) > LARGE_POWER and name in self.offset and self.offset[name][1] > 0:
            x, c = self.offset[name]  # (x + c)^p = c^p (1 + x/c)^p
            text = f"tl.exp2({self.constant(p)} * log2_of_1_plus({self.constant(1.0 / c)} * {x}))"
            number *= c**p
        else:
            log = "accurate_log2" if abs(p) > LARGE_POWER else "tl.log2"
            text = f"tl.exp2({self.constant(p)} * {log}(tl.maximum({name}, {'1e-37' if p < 0 else '0.0'})))"
        if safe:
            text = f"tl.where({name} > 0.0, {text}, 0.0)"
        return self.new(text, number)

    def whole_power(self, a: _Value, p: int) -> _Value:
        """By squaring; a negative power inverts first, and high powers start from a number near the kernel's own."""
        if abs(p) > 3 and a.number != 1.0:
            a = _Value(1.0, self.whole(a))
        base = a if p > 0 else self.new(f"1.0 / {a.name}", 1.0 / a.number)
        result: _Value | None = None
        for bit in reversed(f"{abs(p):b}"):
            if bit == "1":
                result = base if result is None else self.mul(result, base)
            base = self.mul(base, base)
        assert result is not None
        return result

    def exp(self, a: _Value) -> _Value:
        if a.name is None:
            return _Value(math.exp(a.number))
        number = a.number * LOG2E
        if a.name in self.origin:
            i, exponent = self.origin[a.name]
            unit = abs(number) ** (1.0 / exponent)
            if SMALLEST_UNIT <= unit <= 1.0 / SMALLEST_UNIT:
                self.wanted.setdefault(i, unit)
            if abs(number + 1.0) < 1e-9:
                self.exponents.append((i, exponent))
                return self.new(f"exp2_of_minus({a.name}, POLY)")
        return self.new(f"tl.exp2({self.constant(number)} * {a.name})")

    def log(self, a: _Value) -> _Value:
        """log at zero is taken as zero: it only ever multiplies a power of the same zero."""
        if a.name is None:
            return _Value(math.log(a.number) if a.number > 0 else 0.0)
        whole = self.whole(a)
        return self.new(f"tl.where({whole} > 0.0, accurate_log2(tl.maximum({whole}, 1e-37)), 0.0)", 1.0 / LOG2E)


def profile(program: Program) -> Profile:
    """The text of a reduced program; written twice, the second time in the units that the first one wished for.

    >>> from mercer.core.arrays import as_points
    >>> from mercer.kernels import Matern
    >>> text = profile(Matern(nu=1.5).program(as_points([[0.0]])))
    >>> for line in text.lines:
    ...     print(line)
    v0 = root(q0, POLY)
    v1 = v0 + c0
    v2 = exp2_of_minus(v0, POLY)
    v3 = v1 * v2
    >>> text.weighted
    '(v0 * w + c0 * w) * v2'
    """
    units: dict[int, float] = {}
    inner = {i for i, statistic in enumerate(program.inputs) if statistic.kind == "inner"}
    for _ in range(2):
        writer = _Writer(units, inner)
        values: list[_Value] = []
        for step in program.steps:
            values.append(writer.step(step, [values[a] for a in step.args]))
        units = writer.wanted | units
    result = values[-1]
    if result.name is None:  # a constant kernel
        name, factor = str(writer.new("tl.full((BM, BN), 1.0, tl.float32)").name), result.number
    else:
        name, factor = result.name, result.number
    return Profile(
        _needed(writer.lines, name),
        name,
        factor,
        tuple(writer.constants),
        tuple(units.get(i, 1.0) for i in range(len(program.inputs))),
        tuple(writer.exponents),
    )


def _needed(lines: dict[str, str], result: str) -> tuple[str, ...]:
    """The lines in order, without those (spare squares) that nothing reads."""
    kept: list[str] = []
    wanted = {result}
    for text, name in reversed(lines.items()):
        if name in wanted:
            wanted.update(re.findall(r"\bv\d+\b", text))
            kept.append(f"{name} = {text}")
    return tuple(reversed(kept))
