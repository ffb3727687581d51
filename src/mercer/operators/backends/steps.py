"""The instructions of a plan bound to buffers: what a tile costs besides its numbers is a call for each instruction."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mercer.formula.operations import operation
from mercer.formula.plans import Instruction, Plan
from mercer.formula.symbols import Program
from mercer.operators.backends.costs import costs
from mercer.operators.backends.statistics import TileInput

Places = tuple[Tensor, Tensor]
Step = Callable[["Here"], Any]
Write = Callable[[list[Any], Any], Any]
"""Writes what comes of arguments to a tensor, or to a new one where that is None."""

FUSED: dict[str, tuple[Callable[..., Tensor], str]] = {
    "axpy": (torch.add, "alpha"),
    "addcmul": (torch.addcmul, "value"),
}
"""Two operations in one: torch's function, and what it calls the constant in it."""


@dataclass
class Here:
    """The operands of one tile, where it is on the diagonal, its buffers, and what was computed from vectors alone."""

    left: Sequence[Tensor]
    right: Sequence[Tensor]
    same: Places | None
    tiles: list[Tensor]
    vectors: dict[int, Tensor]


class Steps:
    """A plan on buffers of one size: called with operands it gives the tile."""

    def __init__(
        self, program: Program, plan: Plan, inputs: Sequence[TileInput], tiles: Sequence[Tensor], wide: Tensor | None
    ) -> None:
        self.program, self.inputs, self.tiles, self.wide = program, inputs, tiles, wide
        self.normal = "exp2" in costs().by_numpy and powers_are_normal(plan, inputs, tiles[0].dtype)
        self.known: dict[int, int] = {}
        self.steps = [self._bound(i, step) for i, step in enumerate(plan.instructions)]
        self.result = plan.instructions[-1].buffer or 0

    def __call__(self, left: Sequence[Tensor], right: Sequence[Tensor], same: Places | None) -> Tensor:
        here = Here(left, right, same, list(self.tiles), {})
        for step in self.steps:
            step(here)
        return here.tiles[self.result]

    def _bound(self, i: int, step: Instruction) -> Step:
        out = step.buffer
        if step.op == "input":
            bound = self._input(i, int(step.value or 0), out)
        elif out is not None and all(not isinstance(arg, int) or arg in self.known for arg in step.args):
            bound = self._of_tiles(step, out)
        else:
            write = writer(step.op, step.value, on_cpu=False)
            bound = partial(self._of_vectors, i, write, step.args, out, dict(self.known))
        if out is not None:
            self.known[i] = out
        return bound

    def _input(self, i: int, place: int, out: int | None) -> Step:
        if out is None:
            of_rows = self.program.inputs[place].kind == "left"

            def vector(here: Here) -> None:
                here.vectors[i] = here.left[place] if of_rows else here.right[place]

            return vector
        source, wide = self.inputs[place], self.wide  # not of `self`: buffers would live until the collector comes

        def fill(here: Here) -> None:
            here.tiles[out] = source.fill(here.left[place], here.right[place], here.tiles[out], wide, here.same)

        return fill

    def _of_tiles(self, step: Instruction, out: int) -> Step:
        write = writer(step.op, step.value, on_cpu=self.tiles[out].device.type == "cpu", normal=self.normal)
        places = [(True, self.known[arg]) if isinstance(arg, int) else (False, arg) for arg in step.args]

        def of_tiles(here: Here) -> None:
            write([here.tiles[arg] if is_tile else arg for is_tile, arg in places], here.tiles[out])

        return of_tiles

    @staticmethod
    def _of_vectors(
        i: int, write: Write, inputs: Sequence[Any], out: int | None, known: dict[int, int], here: Here
    ) -> None:
        values = {j: here.tiles[tile] for j, tile in known.items()} | here.vectors
        args = [values[arg] if isinstance(arg, int) else arg for arg in inputs]
        here.vectors[i] = write(args, None if out is None else here.tiles[out])


def powers_are_normal(plan: Plan, inputs: Sequence[TileInput], dtype: torch.dtype) -> bool:
    """Whether powers of two of the pair that is farthest apart are normal numbers; numpy takes the others one by one.

    It is a matter of speed alone: a formula may be farther from zero elsewhere.
    """
    least = math.log2(torch.finfo(dtype).tiny)
    values: list[float] = []
    for step in plan.instructions:
        args = [values[arg] if isinstance(arg, int) else float(arg) for arg in step.args]
        if step.op == "exp2" and not least < args[0] < -least:
            return False
        values.append(_number(step, args, inputs))
    return True


def _number(step: Instruction, args: list[float], inputs: Sequence[TileInput]) -> float:
    """One instruction for the pair that is farthest apart; what is not known is not a number."""
    if step.op == "input":
        return inputs[int(step.value or 0)].farthest
    if step.op == "constant":
        return float(step.value)
    if step.op in FUSED:
        return args[0] + step.value * math.prod(args[1:])
    try:
        return operation(step.op).number(*args, *(() if step.value is None else (step.value,)))
    except (ArithmeticError, ValueError, TypeError):
        return math.nan


def writer(op: str, value: Any, *, on_cpu: bool, normal: bool = False) -> Write:
    """An instruction, from arguments and where the result goes, by the library that is quicker at it on such tiles.

    `normal` where powers of two are normal numbers.
    """
    if on_cpu and op in costs().by_numpy and (op != "exp2" or normal):
        numpy = getattr(np, op)
        return lambda args, out: numpy(args[0].numpy(), out=out.numpy())
    if on_cpu and op == "angle" and "arcsin" in costs().by_numpy:
        return lambda args, out: angle_by_numpy(args[0], out)
    if on_cpu and op == "sqrt" and costs().roots_as_powers:
        return lambda args, out: torch.pow(args[0], -0.5, out=out).reciprocal_()
    if op == "constant":
        return lambda args, out: out.fill_(value)
    if op in FUSED:
        function, name = FUSED[op]
        options = {name: value}
        return lambda args, out: function(*args, out=out, **options)
    write, literal = operation(op).into, () if value is None else (value,)
    return lambda args, out: write(*args, *literal, out=out)


def angle_by_numpy(h: Tensor, out: Tensor) -> None:
    """The angle of versines h, on a CPU.

    >>> h, t = torch.tensor([-1e-9, 0.0, 0.5, 1.0, 2.0 + 1e-6]), torch.empty(5)
    >>> angle_by_numpy(h, t)
    >>> t
    tensor([0.0000, 0.0000, 1.0472, 1.5708, 3.1416])
    """
    half = torch.mul(h, 0.5, out=out).clamp_(0.0, 1.0).numpy()
    np.multiply(np.arcsin(np.sqrt(half, out=half), out=half), 2.0, out=half)
