"""Several programs of the same statistics as one: steps that are equal are made once, and factors are kept apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mercer.formula.operations import operation
from mercer.formula.symbols import Program, Statistic

POWERS = ("pow", "safe_pow")
HALVES = (-0.5, -1.5, -2.5, -3.5)


@dataclass(frozen=True)
class Scaled:
    """A number times what stands at a place; without a place, the number."""

    factor: float
    place: int | None


class SharedSteps:
    """Programs lowered together. Half-integer powers of one tensor come from one reciprocal root.

    >>> from mercer.kernels import InverseMultiquadric
    >>> from mercer.stats.base_formula import base_formula
    >>> formula = base_formula(InverseMultiquadric(1.0), 1)
    >>> both = SharedSteps([formula.value, formula.slopes[0], formula.seconds[0, 0]])
    >>> found = both({formula.terms[0].statistic: torch.tensor([3.0], dtype=torch.float64)})
    >>> [factor * float(tensor) for factor, tensor in found]
    [0.5, -0.0625, 0.0234375]
    """

    def __init__(self, programs: Sequence[Program]) -> None:
        self.lines: list[tuple[Any, ...]] = []
        self._places: dict[tuple[Any, ...], int] = {}
        self.results = [self._lowered(program) for program in programs]

    def __call__(self, values: dict[Statistic, Tensor]) -> list[tuple[float, Tensor | None]]:
        """For each program a factor and a tensor, which is None where the value is constant."""
        made: list[Tensor] = []
        for op, args, literal in self.lines:
            if op == "input":
                made.append(values[literal])
            elif op == "times":
                made.append(made[args[0]] * literal)
            elif op == "plus":
                made.append(made[args[0]] + literal)
            elif op == "product":
                made.append(made[args[0]] * made[args[1]])
            elif op == "root":
                made.append(torch.rsqrt(made[args[0]]))
            else:
                made.append(operation(op).tensor(*(made[a] for a in args), *([] if literal is None else [literal])))
        return [(r.factor, None if r.place is None else made[r.place]) for r in self.results]

    def _lowered(self, program: Program) -> Scaled:
        found: list[Scaled] = []
        for step in program.steps:
            if step.op == "input":
                found.append(Scaled(1.0, self._line("input", (), program.inputs[int(step.value or 0)])))
            elif step.op == "constant":
                found.append(Scaled(float(step.value or 0.0), None))
            else:
                found.append(self._step(step.op, [found[a] for a in step.args], step.value))
        return found[-1]

    def _step(self, op: str, args: list[Scaled], literal: Any) -> Scaled:
        constants = [arg for arg in args if arg.place is None]
        if op == "copy":
            return args[0]
        if len(constants) == len(args):
            tensors = [torch.tensor(arg.factor, dtype=torch.float64) for arg in args]
            return Scaled(float(operation(op).tensor(*tensors, *([] if literal is None else [literal]))), None)
        if op == "mul":
            places = [arg.place for arg in args if arg.place is not None]
            place = places[0] if len(places) == 1 else self._line("product", tuple(sorted(places)))
            return Scaled(args[0].factor * args[1].factor, place)
        if op == "add" and constants:
            (other,) = (arg for arg in args if arg.place is not None)
            return Scaled(1.0, self._line("plus", (self._plain(other),), constants[0].factor))
        places = [self._plain(arg) for arg in args]
        if op in POWERS and literal in HALVES and self._is_positive(places[0]):
            return Scaled(1.0, self._power(places[0], literal))
        return Scaled(1.0, self._line(op, tuple(places), literal))

    def _plain(self, arg: Scaled) -> int:
        assert arg.place is not None
        return arg.place if arg.factor == 1.0 else self._line("times", (arg.place,), arg.factor)

    def _is_positive(self, place: int) -> bool:
        op, args, literal = self.lines[place]
        return op == "plus" and literal > 0 and self._is_not_negative(args[0])

    def _is_not_negative(self, place: int) -> bool:
        op, args, literal = self.lines[place]
        if op == "input":
            return bool(literal.kind == "squared_distance")
        return op in ("times", "plus") and literal >= 0 and self._is_not_negative(args[0])

    def _power(self, base: int, exponent: float) -> int:
        root = self._line("root", (base,))
        if exponent == HALVES[0]:
            return root
        return self._line("product", (self._power(base, exponent + 1.0), self._line("product", (root, root))))

    def _line(self, op: str, args: tuple[int, ...], literal: Any = None) -> int:
        key = (op, args, literal)
        if key not in self._places:
            self._places[key] = len(self.lines)
            self.lines.append(key)
        return self._places[key]
