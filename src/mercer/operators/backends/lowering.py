"""From a kernel's program to a `Plan`: constants folded, and every step given a tile buffer to write to.

A step whose argument is not needed again overwrites it, so a Gaussian runs in one buffer: product, exp.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mercer.core.symbols import Program, Step

FOLDABLE = frozenset({"squared_distance", "inner"})
"""Statistics that are matrix products, so that a constant factor costs nothing."""

BOTH = frozenset({"left", "right"})


@dataclass(eq=False)
class Node:
    """A value of the simplified formula; `extent` says whether it varies with the row, the column or both."""

    op: str
    args: tuple[Node | float, ...]
    value: float | None
    extent: frozenset[str]


@dataclass(frozen=True)
class Instruction:
    """One operation on earlier instructions (given by number) and constants (floats).

    `buffer` is the tile it writes to, None for a value that is only a vector.
    """

    op: str
    args: tuple[int | float, ...]
    value: float | None
    buffer: int | None


@dataclass(frozen=True)
class Plan:
    """Instructions for one tile, the last of which is the kernel's value.

    `factors` multiply the program's inputs: they were taken out of the formula so that the back end can put them
    into its matrix product. `nonnegative` are the inputs that a rounding error must not make negative.
    """

    instructions: tuple[Instruction, ...]
    n_buffers: int
    factors: dict[int, float]
    nonnegative: frozenset[int]


def lower(program: Program, *, same: bool, factors: dict[int, float] | None = None) -> Plan:
    """The plan of a program; without `same` no row of the tile is also one of its columns.

    `factors` are those of another plan of the same program that has to share its inputs.

    >>> from mercer.core.arrays import as_points
    >>> from mercer.kernels import Gaussian
    >>> plan = lower(Gaussian().program(as_points([[0.0]])), same=False)
    >>> [step.op for step in plan.instructions], plan.n_buffers, plan.factors
    (['input', 'exp'], 1, {0: -0.5})
    """
    formula = _Formula(program, same)
    uses = Counter(arg for step in program.steps for arg in step.args)
    values: list[Node | float] = []
    for step in program.steps:
        values.append(formula.translate(step, [values[i] for i in step.args], [uses[i] == 1 for i in step.args]))
    last = values[-1]
    result = last if isinstance(last, Node) else formula.node("constant", (), last)
    nodes = _reachable(formula.nodes, result)
    if factors is None:
        factors = _common_factors(nodes, program)
    result = _without_factors(nodes, result, factors)
    nodes = _reachable(_fused(_reachable(nodes, result)), result)
    instructions, n_buffers = _allocated(nodes)
    return Plan(instructions, n_buffers, factors, _nonnegative(nodes))


class _Formula:
    """Builds nodes, leaving out what multiplies by one, adds zero or can be computed now."""

    def __init__(self, program: Program, same: bool) -> None:
        self.kinds = [statistic.kind for statistic in program.inputs]
        self.same = same
        self.nodes: list[Node] = []

    def node(self, op: str, args: Sequence[Node | float], value: float | None = None) -> Node:
        extent: frozenset[str] = frozenset()
        extent = extent.union(*(arg.extent for arg in args if isinstance(arg, Node)))
        if op == "input":
            kind = self.kinds[_place(value)]
            extent = frozenset({kind}) if kind in BOTH else BOTH
        self.nodes.append(Node(op, tuple(args), value, extent))
        return self.nodes[-1]

    def translate(self, step: Step, args: list[Node | float], only_use: list[bool]) -> Node | float:
        if step.op == "constant":
            return float(step.value or 0.0)
        if step.op == "copy" or (step.op == "pow" and step.value == 1):
            return args[0]
        if step.op == "input" and self.kinds[_place(step.value)] == "same" and not self.same:
            return 0.0
        if args and not any(isinstance(arg, Node) for arg in args):
            return _number(step, [arg for arg in args if isinstance(arg, float)])
        if step.op not in ("add", "mul"):
            return self.node(step.op, args, step.value)
        if isinstance(args[0], float):
            args, only_use = args[::-1], only_use[::-1]
        a, b = args
        if not isinstance(b, float) or not isinstance(a, Node):
            return self.node(step.op, (a, b))
        return self.times(a, b, only_use[0]) if step.op == "mul" else self.plus(a, b)

    def plus(self, a: Node, b: float) -> Node:
        return self.node("add", (a, b)) if b else a

    def times(self, a: Node, b: float, only_use: bool) -> Node | float:
        """The product, with b moved towards the input where that is free: sqrt(s) * b = sqrt(s * b^2)."""
        if b in (0.0, 1.0):
            return a if b else 0.0
        inner = a.args[0] if a.args else None
        if a.op == "mul" and isinstance(a.args[1], float) and isinstance(inner, Node):
            return self.times(inner, a.args[1] * b, False)
        if a.op == "sqrt" and b > 0 and only_use and isinstance(inner, Node):
            return self.node("sqrt", (self.times(inner, b * b, False),))
        return self.node("mul", (a, b))


def _place(value: float | int | None) -> int:
    return int(value or 0)


def _number(step: Step, args: list[float]) -> float:
    if step.op in ("add", "mul"):
        return sum(args) if step.op == "add" else math.prod(args)
    if step.op == "pow":
        return args[0] ** float(step.value or 0.0)
    return min(args) if step.op == "minimum" else float(getattr(math, step.op)(*args))


def _reachable(nodes: list[Node], result: Node) -> list[Node]:
    """The nodes that `result` needs, in order; `result` is the last of them."""
    needed = {result}
    for node in reversed(nodes):
        if node in needed:
            needed.update(arg for arg in node.args if isinstance(arg, Node))
    return [node for node in nodes if node in needed]


def _users(nodes: list[Node]) -> dict[Node, list[Node]]:
    users: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node in nodes:
        for arg in node.args:
            if isinstance(arg, Node):
                users[arg].append(node)
    return users


def _common_factors(nodes: list[Node], program: Program) -> dict[int, float]:
    """The constants of the inputs that are used only as one constant times the input."""
    factors: dict[int, float] = {}
    for node, users in _users(nodes).items():
        if node.op != "input" or program.inputs[_place(node.value)].kind not in FOLDABLE:
            continue
        constants = {user.args[1] if user.op == "mul" else None for user in users}
        if len(constants) == 1 and isinstance(constant := constants.pop(), float):
            factors[_place(node.value)] = constant
    return factors


def _without_factors(nodes: list[Node], result: Node, factors: dict[int, float]) -> Node:
    """Put the input itself wherever it is multiplied by its factor; gives the new result."""
    instead: dict[Node, Node] = {}
    for node, users in _users(nodes).items():
        if node.op == "input" and _place(node.value) in factors:
            instead |= dict.fromkeys(users, node)
    for node in nodes:
        node.args = tuple(instead.get(arg, arg) if isinstance(arg, Node) else arg for arg in node.args)
    return instead.get(result, result)


def _fused(nodes: list[Node]) -> list[Node]:
    """Write y + c * x, where c * x is used only there, as one step."""
    users = _users(nodes)
    for node in nodes:
        if node.op != "add":
            continue
        for x, y in (node.args, node.args[::-1]):
            if not (isinstance(x, Node) and isinstance(y, Node)):
                continue
            if x.op == "mul" and isinstance(x.args[1], float) and len(users[x]) == 1:
                node.op, node.args, node.value = "axpy", (y, x.args[0]), x.args[1]
                break
    return nodes


def _nonnegative(nodes: list[Node]) -> frozenset[int]:
    """All inputs but those used only as exp(s) and s + c with c >= 1, which rounding below zero does not harm."""

    def harmless(user: Node) -> bool:
        return user.op == "exp" or (user.op == "add" and isinstance(user.args[1], float) and user.args[1] >= 1)

    return frozenset(
        _place(node.value)
        for node, users in _users(nodes).items()
        if node.op == "input" and users and not all(harmless(user) for user in users)
    )


def _allocated(nodes: list[Node]) -> tuple[tuple[Instruction, ...], int]:
    """Give each tile a buffer; one that is read for the last time is written over."""
    place = {node: i for i, node in enumerate(nodes)}
    last_use = {arg: i for i, node in enumerate(nodes) for arg in node.args if isinstance(arg, Node)}
    buffers: dict[Node, int] = {}
    free: list[int] = []
    instructions = []
    for i, node in enumerate(nodes):
        dying = {arg for arg in node.args if isinstance(arg, Node) and arg in buffers and last_use[arg] == i}
        free += sorted(buffers.pop(arg) for arg in dying)
        if node.extent == BOTH or node is nodes[-1]:
            buffers[node] = free.pop() if free else len(buffers)
        args = tuple(place[arg] if isinstance(arg, Node) else arg for arg in node.args)
        instructions.append(Instruction(node.op, args, node.value, buffers.get(node)))
    return tuple(instructions), 1 + max(step.buffer for step in instructions if step.buffer is not None)
