"""A smooth kernel as a function of squared distances and inner products, with its first and second slopes."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any

import torch
from torch import Tensor

from mercer.core.arrays import Columns, Points
from mercer.core.errors import InputError, NotTraceable
from mercer.formula.derivatives import by_input
from mercer.formula.evaluate import evaluate
from mercer.formula.symbols import Program, Statistic, Step, Symbol
from mercer.kernels import Kernel
from mercer.stats.dials import LARGEST_WEIGHT

KINDS = ("squared_distance", "inner")


@dataclass(frozen=True)
class Term:
    """A statistic sum_j w_j (x_j - y_j)^2 ("squared_distance") or sum_j w_j x_j y_j ("inner")."""

    statistic: Statistic
    weights: tuple[float, ...]

    @property
    def is_distance(self) -> bool:
        return self.statistic.kind == "squared_distance"


@dataclass(frozen=True)
class BaseFormula:
    """The value of a kernel and its slopes by its statistics, as programs.

    >>> from mercer.kernels import Gaussian
    >>> formula = base_formula(Gaussian(2.0), 3)
    >>> formula.terms[0].weights, sorted(formula.seconds)
    ((0.25, 0.25, 0.25), [(0, 0)])
    """

    terms: tuple[Term, ...]
    value: Program
    slopes: dict[int, Program]
    seconds: dict[tuple[int, int], Program]

    @property
    def has_roots(self) -> bool:
        """Whether a distance itself, not squared, occurs in the formula."""
        return any(step.op == "sqrt" for step in self.value.steps)


@functools.lru_cache(maxsize=64)
def base_formula(kernel: Kernel, d: int) -> BaseFormula:
    """What the Stein kernel needs of a base kernel on d columns, or an error that says why it cannot be one."""
    smoothness = kernel.properties.smoothness
    if smoothness is not None and smoothness <= 1:
        raise InputError(
            f"{kernel!r} is too rough for a Stein kernel, which takes two derivatives; use InverseMultiquadric, "
            "Gaussian or a Matern kernel of order above 1."
        )
    try:
        program = kernel.program(Points(torch.zeros(2, d, dtype=torch.float64)))
        terms = tuple(_term(kernel, statistic, d) for statistic in program.inputs)
        slopes = {i: p for i, term in enumerate(terms) if (p := slope(program, term.statistic)) is not None}
        pairs = [(i, j) for i, j in combinations_with_replacement(range(len(terms)), 2) if i in slopes]
        seconds = {(i, j): p for i, j in pairs if (p := slope(slopes[i], terms[j].statistic)) is not None}
    except NotTraceable as reason:
        raise InputError(f"{kernel!r} cannot be the base of a Stein kernel: {reason}.") from None
    return BaseFormula(terms, program, slopes, seconds)


def slope(program: Program, statistic: Statistic) -> Program | None:
    """The derivative of a program by one of its statistics; None where it does not depend on it."""
    return by_input(program, program.inputs.index(statistic)) if statistic in program.inputs else None


def at(program: Program, values: dict[Statistic, Any]) -> Any:
    """The value of a program from tensors or from symbols."""
    inputs = [values[statistic] for statistic in program.inputs]
    symbol = next((v for v in values.values() if isinstance(v, Symbol)), None)
    if symbol is None:
        like = next(v for v in values.values() if isinstance(v, Tensor))
        return evaluate(program, inputs) if inputs else like.new_tensor(_constant(program))
    if not inputs:
        return _constant(program)
    places: list[int] = []
    for step in program.steps:
        if step.op == "input":
            places.append(inputs[int(step.value or 0)].index)
        else:
            made = symbol.tape.record(Step(step.op, tuple(places[a] for a in step.args), step.value))
            places.append(made.index)
    return Symbol(symbol.tape, places[-1])


def _constant(program: Program) -> float:
    return float(evaluate(program, []))


def _inverse_square(width: float) -> float:
    return width**-2 if width > LARGEST_WEIGHT**-0.5 else math.inf


def _term(kernel: Kernel, statistic: Statistic, d: int) -> Term:
    plain = all(isinstance(warp, Columns) for warp in statistic.warps)
    if statistic.kind not in KINDS or not plain:
        raise InputError(
            f"{kernel!r} cannot be the base of a Stein kernel: it is not a smooth function of squared distances and "
            "inner products of columns."
        )
    columns = list(range(d))
    for warp in statistic.warps:
        assert isinstance(warp, Columns)
        columns = [columns[i] for i in warp.positions(len(columns), None)]
    weights = [0.0] * d
    scale = statistic.length_scale
    for i, column in enumerate(columns):
        width = scale[i] if isinstance(scale, tuple) else scale
        weights[column] += _inverse_square(float(width)) if statistic.kind == "squared_distance" else 1.0
    if not 0 < max(weights) < LARGEST_WEIGHT:
        raise InputError(
            f"{kernel!r:.100} has too small or too large a length scale for a Stein kernel; scale the columns."
        )
    return Term(statistic, tuple(weights))
