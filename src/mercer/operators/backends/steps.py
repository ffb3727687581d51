"""The instructions of a plan bound to buffers: what a tile costs besides its numbers is a call for each instruction."""

from __future__ import annotations

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

FUSED: dict[str, tuple[Callable[..., Tensor], str]] = {
    "axpy": (torch.add, "alpha"),
    "addcmul": (torch.addcmul, "value"),
}
"""Two operations in one: torch's function, and what it calls the constant in it."""


@dataclass
class Here:
    """The operands of one tile, where it is on the diagonal, and what was computed from vectors alone."""

    left: Sequence[Tensor]
    right: Sequence[Tensor]
    same: Places | None
    vectors: dict[int, Tensor]


class Steps:
    """A plan on buffers of one size: called with operands it gives the tile."""

    def __init__(
        self, program: Program, plan: Plan, inputs: Sequence[TileInput], tiles: Sequence[Tensor], wide: Tensor | None
    ) -> None:
        self.program, self.inputs, self.tiles, self.wide = program, inputs, tiles, wide
        self.known: dict[int, Tensor] = {}
        self.steps = [self._bound(i, step) for i, step in enumerate(plan.instructions)]
        self.result = tiles[plan.instructions[-1].buffer or 0]

    def __call__(self, left: Sequence[Tensor], right: Sequence[Tensor], same: Places | None) -> Tensor:
        here = Here(left, right, same, {})
        for step in self.steps:
            step(here)
        return self.result

    def _bound(self, i: int, step: Instruction) -> Step:
        out = None if step.buffer is None else self.tiles[step.buffer]
        if step.op == "input":
            bound = self._input(i, int(step.value or 0), out)
        elif out is not None and all(not isinstance(arg, int) or arg in self.known for arg in step.args):
            args = [self.known[arg] if isinstance(arg, int) else arg for arg in step.args]
            written = writer(step.op, args, step.value, out)
            bound = lambda here: written()  # noqa: E731
        else:
            bound = partial(self._of_vectors, i, step, out, dict(self.known))
        if out is not None:
            self.known[i] = out
        return bound

    def _input(self, i: int, place: int, out: Tensor | None) -> Step:
        if out is None:
            of_rows = self.program.inputs[place].kind == "left"

            def vector(here: Here) -> None:
                here.vectors[i] = here.left[place] if of_rows else here.right[place]

            return vector
        source, wide = self.inputs[place], self.wide  # not of `self`: buffers would live until the collector comes

        def fill(here: Here) -> None:
            source.fill(here.left[place], here.right[place], out, wide, here.same)

        return fill

    @staticmethod
    def _of_vectors(i: int, step: Instruction, out: Tensor | None, known: dict[int, Tensor], here: Here) -> None:
        values = known | here.vectors
        args = [values[arg] if isinstance(arg, int) else arg for arg in step.args]
        here.vectors[i] = apply(step.op, args, step.value, out)


def writer(op: str, args: list[Any], value: Any, out: Tensor) -> Callable[[], Any]:
    """An instruction on fixed arguments, by the library that is quicker at it here."""
    if out.device.type == "cpu" and args and isinstance(args[0], Tensor):
        if op in costs().by_numpy:
            return partial(getattr(np, op), args[0].numpy(), out=out.numpy())
        if op == "sqrt" and costs().roots_as_powers:
            return lambda: torch.pow(args[0], -0.5, out=out).reciprocal_()
    if op in FUSED:
        function, name = FUSED[op]
        return partial(function, *args, **{name: value}, out=out)
    write = None if op == "constant" else operation(op).write
    if write is None:
        return partial(apply, op, args, value, out)
    return partial(write, *args, *(() if value is None else (value,)), out=out)


def apply(op: str, args: list[Any], value: Any, out: Tensor | None) -> Tensor:
    """One instruction of a plan, written to `out`."""
    if op == "constant":
        assert out is not None
        return out.fill_(value)
    if op in FUSED:
        function, name = FUSED[op]
        result: Tensor = function(*args, **{name: value}, out=out)
        return result
    return operation(op).into(out, *args, *(() if value is None else (value,)))
