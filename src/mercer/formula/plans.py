"""From a program to a `Plan`: constants move into products, and every step is given a tile buffer to write to.

A step whose argument is not needed again overwrites it, so a Gaussian runs in one buffer: product, exp. Plans are kept
by the shape of the formula: the same kernel with other numbers fills them in and lowers nothing.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import eq, ge, gt
from typing import Any

from mercer.formula.numbers import Ledger, Number
from mercer.formula.simplify import Builder, pruned, reduction, rewritten
from mercer.formula.symbols import Program, Step

FOLDABLE = frozenset({"squared_distance", "squared_sum", "inner"})
"""Statistics that are matrix products, so that a constant factor costs nothing."""

BOTH = frozenset({"left", "right"})

MOST_SHAPES = 256
"""Shapes of formulas whose plans are kept."""


@dataclass(eq=False)
class Node:
    """A value of the simplified formula; `extent` says whether it varies with the row, the column or both."""

    op: str
    args: tuple[Node | Number, ...]
    value: Any
    extent: frozenset[str]


@dataclass(frozen=True)
class Instruction:
    """One operation on earlier instructions (given by number) and constants (floats).

    `buffer` is the tile it writes to, None for a value that is only a vector.
    """

    op: str
    args: tuple[Any, ...]
    value: Any
    buffer: int | None


@dataclass(frozen=True)
class Plan:
    """Instructions for one tile, the last of which is the kernel's value.

    `factors` multiply the program's inputs: they were taken out of the formula so that the back end can put them
    into its matrix product. `nonnegative` are the inputs that a rounding error must not make negative, `rooted` those
    of which only the root is used.
    """

    instructions: tuple[Instruction, ...]
    n_buffers: int
    factors: dict[int, Any]
    nonnegative: frozenset[int]
    rooted: frozenset[int] = frozenset()

    def filled_in(self, numbers: Sequence[float]) -> Plan:
        """With the numbers of a program of the same shape."""
        instructions = []
        for step in self.instructions:
            *args, value = [numbers[v.place] if isinstance(v, Number) else v for v in (*step.args, step.value)]
            instructions.append(Instruction(step.op, tuple(args), value, step.buffer))
        factors = {i: numbers[factor.place] for i, factor in self.factors.items()}
        return replace(self, instructions=tuple(instructions), factors=factors)


@dataclass(frozen=True)
class Plans:
    """Two plans of a program that share their inputs: for tiles on the diagonal of one sample, and for others."""

    on_diagonal: Plan
    off_diagonal: Plan


_kept: OrderedDict[Any, list[tuple[Ledger, Plans]]] = OrderedDict()


def plans(program: Program, *, one_sample: bool, spelling: type[Builder] = Builder) -> Plans:
    """The plans of a program; those of an equal shape are used again if they are right for its constants.

    `spelling` writes the formula down for a kind of processor: see `mercer.formula.spelling`.

    >>> from mercer.core.arrays import as_points
    >>> from mercer.kernels import Gaussian
    >>> plan = plans(Gaussian().program(as_points([[0.0]])), one_sample=False).off_diagonal
    >>> [step.op for step in plan.instructions], plan.n_buffers, plan.factors
    (['input', 'exp'], 1, {0: -0.5})
    """
    key, constants = (program.shape, one_sample, spelling), program.constants
    known = _kept.setdefault(key, [])
    _kept.move_to_end(key)
    if len(_kept) > MOST_SHAPES:
        _kept.popitem(last=False)
    fitting = _right_for(constants, known)
    if fitting is None:
        known.append(lower(program, one_sample=one_sample, spelling=spelling))
        fitting = _right_for(constants, known[-1:])
        assert fitting is not None
    numbers, found = fitting
    on = found.on_diagonal.filled_in(numbers)
    return Plans(on, on if found.off_diagonal is found.on_diagonal else found.off_diagonal.filled_in(numbers))


def _right_for(constants: Sequence[float], known: list[tuple[Ledger, Plans]]) -> tuple[list[float], Plans] | None:
    """Plans that are right for the constants, and their numbers."""
    for ledger, found in known:
        numbers = ledger.read(constants)
        if numbers is not None:
            return numbers, found
    return None


def lower(program: Program, *, one_sample: bool, spelling: type[Builder] = Builder) -> tuple[Ledger, Plans]:
    """Plans whose numbers stand in a ledger of the program's constants."""
    ledger = Ledger(program.constants)
    on = _lowered(program, spelling(ledger), same=one_sample)
    if not one_sample:
        return ledger, Plans(on, on)
    return ledger, Plans(on, _lowered(program, spelling(ledger), same=False, factors=on.factors))


def _lowered(program: Program, builder: Builder, *, same: bool, factors: dict[int, Any] | None = None) -> Plan:
    builder, result = rewritten(program, reduction(program, same=same), builder)
    nodes = _nodes(program, builder, result)
    if factors is None:
        factors = _common_factors(nodes, program)
    last = _without_factors(nodes, nodes[-1], factors)
    nodes = _reachable(_fused(_reachable(nodes, last)), last)
    instructions, n_buffers = _allocated(nodes)
    return Plan(instructions, n_buffers, factors, _nonnegative(nodes), _rooted(nodes))


def _nodes(program: Program, builder: Builder, result: int) -> list[Node]:
    """The simplified steps as nodes, the result last; constants of sums and products stand second."""
    steps = pruned(Program(program.inputs, (*builder.steps, Step("copy", (result,))), frozenset())).steps[:-1]
    kinds = [statistic.kind for statistic in program.inputs]
    return _Nodes(kinds).of(steps)


class _Nodes:
    def __init__(self, kinds: list[str]) -> None:
        self.kinds = kinds
        self.nodes: list[Node] = []

    def of(self, steps: Sequence[Step]) -> list[Node]:
        uses = Counter(arg for step in steps for arg in step.args)
        values: list[Node | Number] = []
        for step in steps:
            args = [values[i] for i in step.args]
            values.append(self.translated(step, args, [uses[i] == 1 for i in step.args]))
        last = values[-1]
        return _reachable(self.nodes, last if isinstance(last, Node) else self.node("constant", (), last))

    def node(self, op: str, args: Sequence[Node | Number], value: Any = None) -> Node:
        extent: frozenset[str] = frozenset()
        extent = extent.union(*(arg.extent for arg in args if isinstance(arg, Node)))
        if op == "input":
            kind = self.kinds[_place(value)]
            extent = frozenset({kind}) if kind in BOTH else BOTH
        self.nodes.append(Node(op, tuple(args), value, extent))
        return self.nodes[-1]

    def translated(self, step: Step, args: list[Node | Number], only_use: list[bool]) -> Node | Number:
        if step.op == "constant":
            value: Any = step.value
            return value
        if step.op not in ("add", "mul"):
            return self.node(step.op, args, step.value)
        if isinstance(args[0], Number):
            args, only_use = args[::-1], only_use[::-1]
        a, b = args
        if step.op == "mul" and isinstance(a, Node) and isinstance(b, Number):
            return self.times(a, b, only_use[0])
        return self.node(step.op, (a, b))

    def times(self, a: Node, b: Number, only_use: bool) -> Node:
        """The product, with b moved towards the input where that is free: sqrt(s) * b = sqrt(s * b^2)."""
        if b.holds(eq, 1.0):
            return a
        inner = a.args[0] if a.args else None
        if a.op == "mul" and isinstance(a.args[1], Number) and isinstance(inner, Node):
            return self.times(inner, a.args[1] * b, False)
        if a.op == "sqrt" and only_use and isinstance(inner, Node) and b.holds(gt, 0.0):
            return self.node("sqrt", (self.times(inner, b * b, False),))
        return self.node("mul", (a, b))


def _place(value: Any) -> int:
    return int(value or 0)


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


def _common_factors(nodes: list[Node], program: Program) -> dict[int, Any]:
    """The constants of the inputs that are used only as one constant times the input."""
    factors: dict[int, Any] = {}
    for node, users in _users(nodes).items():
        if node.op != "input" or program.inputs[_place(node.value)].kind not in FOLDABLE:
            continue
        constants = [user.args[1] if user.op == "mul" else None for user in users]
        first = constants[0] if constants else None
        if isinstance(first, Number) and all(isinstance(c, Number) and first.equals(c) for c in constants):
            factors[_place(node.value)] = first
    return factors


def _without_factors(nodes: list[Node], result: Node, factors: dict[int, Any]) -> Node:
    """Put the input itself wherever it is multiplied by its factor; gives the new result."""
    instead: dict[Node, Node] = {}
    for node, users in _users(nodes).items():
        if node.op == "input" and _place(node.value) in factors:
            instead |= dict.fromkeys(users, node)
    for node in nodes:
        node.args = tuple(instead.get(arg, arg) if isinstance(arg, Node) else arg for arg in node.args)
    return instead.get(result, result)


def _fused(nodes: list[Node]) -> list[Node]:
    """Write y + c * x, and a * (1 + c * b) as a + c * a * b, as one step where its parts are used only there."""
    users = _users(nodes)
    for node in nodes:
        if node.op == "mul":
            _fuse_product(node, users)
        if node.op != "add":
            continue
        for x, y in (node.args, node.args[::-1]):
            if not (isinstance(x, Node) and isinstance(y, Node)):
                continue
            if x.op == "mul" and isinstance(x.args[1], Number) and len(users[x]) == 1:
                node.op, node.args, node.value = "axpy", (y, x.args[0]), x.args[1]
                break
    return nodes


def _fuse_product(node: Node, users: dict[Node, list[Node]]) -> None:
    for a, rest in (node.args, node.args[::-1]):
        if not (isinstance(a, Node) and isinstance(rest, Node) and rest.op == "add" and len(users[rest]) == 1):
            continue
        b, one = rest.args
        if isinstance(b, Node) and isinstance(one, Number) and one.holds(eq, 1.0):
            inner = b.args[0] if b.op == "mul" and isinstance(b.args[1], Number) and len(users[b]) == 1 else b
            node.op, node.args = "addcmul", (a, a, inner)
            node.value = 1.0 if inner is b else b.args[1]
            return


def _nonnegative(nodes: list[Node]) -> frozenset[int]:
    """All inputs but those used only as exp(s), 2^s and s + c with c >= 1, which rounding below zero does not harm."""

    def harmless(user: Node) -> bool:
        if user.op in ("exp", "exp2"):
            return True
        constant = user.args[1] if user.op == "add" else None
        return isinstance(constant, Number) and constant.holds(ge, 1.0)

    return frozenset(
        _place(node.value)
        for node, users in _users(nodes).items()
        if node.op == "input" and users and not all(harmless(user) for user in users)
    )


def _rooted(nodes: list[Node]) -> frozenset[int]:
    """The inputs of which only the root is used."""
    return frozenset(
        _place(node.value)
        for node, users in _users(nodes).items()
        if node.op == "input" and users and all(user.op == "sqrt" for user in users)
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
