"""Derivatives of a program as programs, of any order: by its statistics, its constants and its real powers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mercer.formula.materns import with_materns
from mercer.formula.numbers import Ledger
from mercer.formula.operations import operation
from mercer.formula.simplify import Builder
from mercer.formula.symbols import Program, Step


def derivatives(program: Program) -> dict[int, Program]:
    """The derivatives of the value by each input, constant and real power, by index of the step.

    Reverse accumulation on the steps: each derivative contains the forward formula. Slopes of closed Matern forms are
    Matern forms again, since the slope of their product cancels near zero; of a root, without the root, which has none
    at zero.

    >>> from mercer.core.arrays import as_points
    >>> from mercer.kernels import Gaussian
    >>> by_distance = derivatives(Gaussian().program(as_points([[0.0]])))[0]
    >>> [step.op for step in by_distance.steps]
    ['input', 'constant', 'mul', 'exp', 'mul', 'copy']
    """
    program = with_materns(program)
    builder, place = _written(program)
    adjoint: dict[int, int] = {place[-1]: builder.constant(1.0)}
    powers: dict[int, int] = {}

    def give(index: int, value: int) -> None:
        adjoint[index] = builder.add(adjoint[index], value) if index in adjoint else value

    for i, step in reversed(list(enumerate(program.steps))):
        if place[i] not in adjoint or step.op in ("input", "constant"):
            continue
        args, literal, g = tuple(place[a] for a in step.args), float(step.value or 0.0), adjoint[place[i]]
        square = _under_root(program.steps, step.args[0]) if step.op == "matern" and literal > 1.0 else None
        if square is not None:
            inner = builder.mul(g, builder.put("matern", args[0], value=literal - 1.0))
            for arg, factor in _by_square(builder, place, square, literal):
                give(arg, builder.mul(inner, factor))
            continue
        for arg, slope in zip(args, operation(step.op).slopes(builder, place[i], args, literal), strict=True):
            if slope is not None:
                give(arg, builder.mul(g, slope))
        if step.op == "pow" and literal != int(literal):
            powers[i] = builder.mul(g, builder.mul(place[i], builder.put("log", args[0])))
    leaves = [i for i, step in enumerate(program.steps) if step.op in ("input", "constant") and place[i] in adjoint]
    wanted = {i: adjoint[place[i]] for i in leaves} | powers
    return {i: builder.program(program, index) for i, index in sorted(wanted.items())}


def _under_root(steps: Sequence[Step], i: int) -> tuple[int, int, int] | None:
    """The places of sqrt(s), s and c where step i is c sqrt(s), c a constant."""
    a, b = steps[i].args if steps[i].op == "mul" else (i, i)
    for root, factor in ((a, b), (b, a)):
        if steps[root].op == "sqrt" and steps[factor].op == "constant":
            return root, steps[root].args[0], factor
    return None


def _by_square(
    builder: Builder, place: list[int], square: tuple[int, int, int], nu: float
) -> Iterator[tuple[int, int]]:
    r"""Factors of M_(nu-1)(u) in the slopes of M_nu(u), u = c sqrt(s): by s, which is -c^2 / (4 nu - 4), and by c."""
    root, s, c = (place[i] for i in square)
    share = builder.mul(builder.constant(-0.5 / (nu - 1.0)), c)
    yield s, builder.mul(builder.constant(0.5), builder.mul(share, c))
    yield c, builder.mul(share, builder.mul(root, root))


def by_input(program: Program, index: int) -> Program | None:
    """The derivative by one statistic; None where the value does not depend on it.

    >>> from mercer.core.arrays import as_points
    >>> from mercer.kernels import Linear
    >>> print(by_input((Linear() ** 2).program(as_points([[0.0]])), 0))
    v0 = inner
    v1 = constant(2.0)
    v2 = mul(v1, v0)
    v3 = copy(v2)
    """
    found = derivatives(program)
    place = next(i for i, step in enumerate(program.steps) if step.op == "input" and int(step.value or 0) == index)
    return found.get(place)


def _written(program: Program) -> tuple[Builder, list[int]]:
    """The steps as they are, nothing folded: constants are differentiated by."""
    builder = Builder(Ledger(program.constants))
    constants = iter(builder.ledger.constants())
    place: list[int] = []
    for step in program.steps:
        args = tuple(place[a] for a in step.args)
        constant = step.op == "constant"
        place.append(builder.constant(next(constants)) if constant else builder.put(step.op, *args, value=step.value))
    return builder, place
